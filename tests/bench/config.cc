#include "harness/config.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <fstream>

namespace fusebench {

namespace {

// An entry whose lists multiply to `count` cases.
void write_sweep(const std::filesystem::path& path, std::int64_t count) {
  std::ofstream out(path);
  out << "name: bench\nsweep:\n  - op: block\n    model: llama3-8b\n    batch: [1, 2]\n    seq: [";
  for (std::int64_t i = 0; i < count / 2; ++i) out << (i == 0 ? "" : ", ") << 64 * (i + 1);
  out << "]\n";
}

// Where 10 cases take longer than 1000, the time is the kernel's: glibc gives the heap's top back after each small load
// (MALLOC_TRIM_THRESHOLD_=1000000000 shows the work alone).
void LoadConfig(benchmark::State& state) {
  const auto path =
      std::filesystem::temp_directory_path() / ("fusebench-bench-" + std::to_string(::getpid()) + ".yaml");
  write_sweep(path, state.range(0));
  for (auto unused : state) {
    (void)unused;
    const Config config = load_config(path, Backend::cpu);
    if (config.cases.size() != static_cast<std::size_t>(state.range(0))) state.SkipWithError("cases are missing");
  }
  std::filesystem::remove(path);
}
BENCHMARK(LoadConfig)->ArgName("cases")->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace fusebench
