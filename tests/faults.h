// Variants that are wrong on purpose (what a right plan computes, followed by one step that spoils it), and a bench to
// run them on: what the CPU's and the GPU's tests of a case's run share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/case_run.h"
#include "tests/files.h"

namespace fusebench::faults {

/// Runs cases on one backend with a registry of its own, which begins with all that the build has.
struct Bench {
  std::unique_ptr<Device> device;
  Registry variants;
  Measure measure{.warmup = 1, .samples = 3, .load = LoadMode::burst};  // nothing to settle before so few samples
  testing::TempFolder folder;
  OracleCache cache{folder.path()};
  CaseContext context;

  explicit Bench(Backend backend) : Bench(backend == Backend::cuda ? open_cuda_device(0) : open_cpu_device()) {
    for (const Op op : kOps) {
      for (const Variant* variant : registry().all(op, backend)) variants.add(*variant);
    }
  }
  /// With no variants yet.
  explicit Bench(std::unique_ptr<Device> opened)
      : device(std::move(opened)),
        context{.device = *device,
                .variants = variants,
                .measure = measure,
                .oracle_cache = cache,
                .source = [](const Case& c) { return std::make_unique<DrawnSource>(c); },
                .note = [](const std::string&) {},
                .repro = [](const Case&, const std::string& variant) { return "repro " + variant; }} {}
  Backend backend() const { return device->facts().backend; }
  Row run_one(const Case& c, const std::string& variant) { return run_case(c, {variant}, context).rows.at(0); }
};

/// Attention over two batches, grouped heads and a past: 140 rows of 128 elements.
inline Case attention_case(DType dtype) {
  return canonical({.op = Op::attention,
                    .dtype = dtype,
                    .dim = 128,
                    .heads = 4,
                    .kv_heads = 2,
                    .batch = 2,
                    .seq = 70,
                    .past = 3,
                    .causal = true});
}

/// What a fault may touch: the device, a tensor's address by name, and the bytes of an element.
struct Launched {
  Device& device;
  std::function<std::byte*(const char*)> at;
  std::int64_t element_bytes;

  std::byte* out(std::int64_t row, std::int64_t col = 0) const { return at("out") + (row * 128 + col) * element_bytes; }
  /// Overwrites rows [first, last) of columns [0, cols) with a byte; 0xff makes NaN.
  void fill(std::int64_t first, std::int64_t last, std::int64_t cols, std::uint8_t byte) const {
    for (std::int64_t row = first; row < last; ++row) device.fill(out(row), byte, cols * element_bytes);
  }
  /// Overwrites `count` rows at `to` with those at `from`.
  void copy(std::int64_t to, std::int64_t from, std::int64_t count) const {
    std::vector<std::byte> rows(static_cast<std::size_t>(count * 128 * element_bytes));
    device.copy_out(rows.data(), out(from), static_cast<std::int64_t>(rows.size()));
    device.copy_in(out(to), rows.data(), static_cast<std::int64_t>(rows.size()));
  }
};
using Spoil = std::function<void(const Launched&)>;

inline Variant spoiled(const Bench& bench, const std::string& name, const Spoil& spoil) {
  const Backend backend = bench.backend();
  Device& device = *bench.device;
  return {.name = name,
          .op = Op::attention,
          .backend = backend,
          .dtypes = {DType::fp16, DType::bf16, DType::fp32},
          .plan = [=, &device](const Case& c, const Target& target) {
            Plan plan = registry().find(Op::attention, backend, "naive")->plan(c, target);
            const Plan names = plan;
            plan.add({.name = "spoil", .kernel = "fault", .launch = [=, &device](const Exec&, const Bindings& bound) {
                        spoil({device, [&](const char* tensor) { return bound.at<std::byte>(names.op_tensor(tensor)); },
                               bytes_of(c.dtype)});
                      }});
            return plan;
          }};
}

struct Fault {
  const char* name;
  const char* says;  // in the reason
  Spoil spoil;
};

inline std::vector<Fault> wrong_kernels() {
  return {
      {"drops_tile", "got 0", [](const Launched& l) { l.fill(64, 128, 64, 0); }},
      {"nan_in_one_element", "got nan",
       [](const Launched& l) { l.device.fill(l.out(139, 127), 0xff, l.element_bytes); }},
      {"zeros", "all zero", [](const Launched& l) { l.fill(0, 140, 128, 0); }},
      {"untouched", "not finite", [](const Launched& l) { l.fill(0, 140, 128, 0xff); }},
      {"past_the_end", "past the end of out", [](const Launched& l) { l.device.fill(l.out(140), 1, 1); }},
      {"changes_its_input", "changed an input", [](const Launched& l) { l.device.fill(l.at("k"), 0x11, 2); }},
      {"batch_0_alone", "out", [](const Launched& l) { l.copy(70, 0, 70); }},
  };
}

}  // namespace fusebench::faults
