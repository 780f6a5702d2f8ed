#include "harness/google_benchmark.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <memory>

namespace fusebench {

namespace {

// Why a row's time must not be read as a result; empty when it may.
std::string fault_of(const Row& row) {
  if (row.verdict != Verdict::pass) return fmt::format("{}: {}", name_of(row.verdict), row.reason);
  if (row.samples_us.empty()) return row.timing_reason.empty() ? "not timed" : row.timing_reason;
  return {};
}

void put_counters(benchmark::State& state, const Row& row) {
  state.SetBytesProcessed(row.bytes_compulsory);
  if (row.flops > 0) {  // a counter of zeros has a coefficient of variation of 0/0, which is not JSON
    state.counters["flops"] = row.flops;
    state.counters["flops_per_second"] = benchmark::Counter(row.flops, benchmark::Counter::kIsRate);
  }
  if (row.bytes_modelled.value) state.counters["modelled_bytes"] = static_cast<double>(*row.bytes_modelled.value);
  state.SetLabel(row.kernel);
}

void register_fault(const std::string& name, const std::string& fault) {
  benchmark::RegisterBenchmark(name.c_str(), [fault](benchmark::State& state) { state.SkipWithError(fault.c_str()); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

// Google Benchmark calls the function once a repetition, in order; the sample's number outlives the calls.
void register_samples(const std::string& name, const Row& row) {
  auto next = std::make_shared<std::size_t>(0);
  benchmark::RegisterBenchmark(name.c_str(),
                               [&row, next](benchmark::State& state) {
                                 const double us = row.samples_us[(*next)++ % row.samples_us.size()];
                                 for (auto unused : state) {
                                   (void)unused;
                                   state.SetIterationTime(us * 1e-6);
                                 }
                                 put_counters(state, row);
                               })
      ->Iterations(1)
      ->Repetitions(static_cast<int>(row.samples_us.size()))
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

// Google Benchmark takes main's arguments, removes those that it knows, and keeps the pointer to the program's name.
bool initialise(std::vector<std::string>& flags) {
  static std::string program = "fusebench";
  std::vector<char*> arguments = {program.data()};
  for (std::string& flag : flags) arguments.push_back(flag.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  return !benchmark::ReportUnrecognizedArguments(count, arguments.data());
}

}  // namespace

std::string benchmark_name(const Row& row) {
  return fmt::format("{}/{}/{}{},{}", case_id(row.c), row.variant, name_of(row.cache), row.graph ? ",graph" : "",
                     name_of(row.load));
}

int report_through_google_benchmark(const std::vector<Row>& rows, std::vector<std::string> benchmark_flags) {
  if (!initialise(benchmark_flags)) return 2;
  benchmark::ClearRegisteredBenchmarks();
  for (const Row& row : rows) {
    const std::string fault = fault_of(row);
    if (fault.empty()) {
      register_samples(benchmark_name(row), row);
    } else {
      register_fault(benchmark_name(row), fault);
    }
  }
  // Named, since 1.7.1 frees the reporter that it would choose by itself, and a second run in one process needs it.
  benchmark::RunSpecifiedBenchmarks(benchmark::CreateDefaultDisplayReporter());
  benchmark::ClearRegisteredBenchmarks();  // they refer to `rows`
  return 0;
}

}  // namespace fusebench
