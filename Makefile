# The front door; README.md says what each command does. PRESET names one of CMakePresets.json's.
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)
export JOBS

.DEFAULT_GOAL := help
.PHONY: help setup configure build run test gpu-check lint format bench clean

help: ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile
	@echo "PRESET=release|debug|cpu|asan|travel picks the build (now $(PRESET)), JOBS=N how many compilers run (now $(JOBS))"

setup:
	@tools/setup build

configure: setup
	@cmake --preset $(PRESET) --log-level=NOTICE $(CMAKE_FLAGS) >/dev/null # its errors and notices come on stderr

build: configure ## install what is missing, configure, compile
	@cmake --build $(BUILD) -j $(JOBS)

run: configure ## build, then run configs/quick.yaml on the GPU, or on the CPU where there is none
	@cmake --build $(BUILD) -j $(JOBS) --target fusebench
	$(BUILD)/fusebench run configs/quick.yaml

test: build ## build and run all tests; those that need a GPU are skipped where there is none
	@tools/setup test
	@tests/run_tests $(BUILD)

gpu-check: setup ## on a machine with a GPU: device tests, sanitiser, sweeps
	@tools/gpu_check

lint: configure ## check formatting and run clang-tidy over host code
	@tools/setup lint
	@tools/lint $(BUILD)

format: ## let clang-format rewrite every source
	@tools/setup lint
	@tools/lint --format

bench: configure ## measure the harness's own CPU work with Google Benchmark
	@cmake --build $(BUILD) -j $(JOBS) --target bench_harness
	$(BUILD)/tests/bench/bench_harness

clean: ## remove what was built; runs under out/ stay
	rm -rf build
