#include <benchmark/benchmark.h>

#include <sstream>

#include "harness/statistics.h"
#include "tests/bench/rows.h"

namespace fusebench {

namespace {

void MedianInterval(benchmark::State& state) {
  const std::vector<double> samples = bench::rows_of(1).front().samples_us;
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(median_interval(samples));
  }
}
BENCHMARK(MedianInterval);

void RowToLine(benchmark::State& state) {
  const Row row = bench::rows_of(1).front();
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(reports::to_line(to_json(row)));
  }
}
BENCHMARK(RowToLine)->Unit(benchmark::kMicrosecond);

void ReadRecords(benchmark::State& state) {
  const std::string lines = bench::lines_of(bench::rows_of(static_cast<std::size_t>(state.range(0))));
  for (auto unused : state) {
    (void)unused;
    std::istringstream in(lines);
    benchmark::DoNotOptimize(reports::read_records(in));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(lines.size()));
}
BENCHMARK(ReadRecords)->ArgName("cases")->Arg(10)->Arg(300)->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace fusebench
