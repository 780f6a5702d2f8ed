#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "reports/csv.h"
#include "reports/html.h"
#include "reports/summary.h"
#include "reports/write.h"
#include "tests/bench/rows.h"

namespace fusebench {

namespace {

reports::Records records_of(std::int64_t cases) {
  std::istringstream in(bench::lines_of(bench::rows_of(static_cast<std::size_t>(cases))));
  return reports::read_records(in);
}

void ResultsCsv(benchmark::State& state) {
  const reports::Records records = records_of(state.range(0));
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(reports::results_csv(records));
  }
}
BENCHMARK(ResultsCsv)->ArgName("cases")->Arg(10)->Arg(300)->Unit(benchmark::kMillisecond);

void HtmlPage(benchmark::State& state) {
  const reports::Records records = records_of(state.range(0));
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(reports::html_page(records));
  }
}
BENCHMARK(HtmlPage)->ArgName("cases")->Arg(10)->Arg(300)->Unit(benchmark::kMillisecond);

void Summary(benchmark::State& state) {
  const reports::Records records = records_of(state.range(0));
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(reports::summary(records, {}));
  }
}
BENCHMARK(Summary)->ArgName("cases")->Arg(10)->Arg(300)->Unit(benchmark::kMillisecond);

// Reading the records, and writing CSV and page to the disk.
void WriteReports(benchmark::State& state) {
  const auto folder = std::filesystem::temp_directory_path() / ("fusebench-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "results.jsonl", std::ios::binary)
      << bench::lines_of(bench::rows_of(static_cast<std::size_t>(state.range(0))));
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(reports::write_reports(folder));
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(WriteReports)->ArgName("cases")->Arg(10)->Arg(300)->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace fusebench
