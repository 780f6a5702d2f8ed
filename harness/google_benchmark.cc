#include "harness/google_benchmark.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

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
// Returns the first that it does not know, or nothing.
std::string initialise(std::vector<std::string>& flags) {
  static std::string program = "fusebench";
  std::vector<char*> arguments = {program.data()};
  for (std::string& flag : flags) arguments.push_back(flag.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  return count > 1 ? fmt::format("{}: Google Benchmark does not know it", arguments[1]) : std::string();
}

// "--benchmark_format" and "json" of "--benchmark_format=json".
std::pair<std::string_view, std::string_view> split(std::string_view flag) {
  const std::size_t equals = flag.find('=');
  if (equals == std::string_view::npos) return {flag, {}};
  return {flag.substr(0, equals), flag.substr(equals + 1)};
}

bool is_writable(const std::filesystem::path& file) {
  const bool is_new = !std::filesystem::exists(file);
  const bool opens = std::ofstream(file, std::ios::app).is_open();
  if (opens && is_new) std::filesystem::remove(file);
  return opens;
}

// Values on which Google Benchmark ends the process, with a code that is not ours.
std::string mistake_in(std::string_view flag) {
  static const std::map<std::string_view, std::vector<std::string_view>> kChoices = {
      {"--benchmark_format", {"console", "json", "csv"}},
      {"--benchmark_out_format", {"console", "json", "csv"}},
      {"--benchmark_time_unit", {"ns", "us", "ms", "s"}},
  };
  const auto [name, value] = split(flag);
  const auto choices = kChoices.find(name);
  if (choices != kChoices.end() &&
      std::find(choices->second.begin(), choices->second.end(), value) == choices->second.end()) {
    return fmt::format("{}: give one of {}", flag, fmt::join(choices->second, ", "));
  }
  if (name == "--benchmark_out" && !is_writable(value)) return fmt::format("{}: the file cannot be written", flag);
  return {};
}

}  // namespace

std::string benchmark_name(const Row& row) {
  return fmt::format("{}/{}/{}{},{}", case_id(row.c), row.variant, name_of(row.cache), row.graph ? ",graph" : "",
                     name_of(row.load));
}

std::string mistake_in(std::vector<std::string> benchmark_flags) {
  for (const std::string& flag : benchmark_flags) {
    std::string mistake = mistake_in(std::string_view(flag));
    if (!mistake.empty()) return mistake;
  }
  return initialise(benchmark_flags);
}

int report_through_google_benchmark(const std::vector<Row>& rows, std::vector<std::string> benchmark_flags) {
  const std::string unknown = initialise(benchmark_flags);
  if (!unknown.empty()) {
    std::fputs((unknown + "\n").c_str(), stderr);
    return 2;
  }
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
