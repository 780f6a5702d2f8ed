// What a row's figures say, on a device: where a cold and a hot row's bytes come from, that counters leave timings as
// they were, and that a small slowdown shows.
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "harness/case_run.h"
#include "harness/statistics.h"
#include "reports/compare.h"
#include "tests/catch.h"
#include "tests/faults.h"
#include "tests/skip.h"

using namespace fusebench;
using faults::Bench;

namespace {

bool skipped() { return cuda_device_count() == 0 && testing::skip("no CUDA device"); }

bool skip_without_counters(Device& device) {
  try {
    device.open_counters();
    return false;
  } catch (const std::exception& failure) {
    return testing::skip(failure.what());
  }
}

Case rmsnorm_of(std::int64_t seq, std::int64_t dim) {
  return canonical({.op = Op::rmsnorm, .dtype = DType::fp16, .dim = dim, .seq = seq});
}

// fused, and behind it a kernel that does nothing for so long.
Variant slowed(const Bench& bench, Op op, const double& us) {
  Device& device = *bench.device;
  return {.name = "slowed",
          .op = op,
          .backend = Backend::cuda,
          .dtypes = {DType::fp16},
          .plan = [op, &us, &device](const Case& c, const Target& target) {
            Plan plan = registry().find(op, Backend::cuda, "fused")->plan(c, target);
            plan.add({.name = "delay", .kernel = "delay", .launch = [us = us, &device](const Exec&, const Bindings&) {
                        device.launch_delay(us);
                      }});
            return plan;
          }};
}

reports::Records records_of(const Row& row, const char* as_variant) {
  reports::Json json = to_json(row);
  json["variant"] = as_variant;
  return {.header = {{"schema", 1}, {"device", {{"uuid", "GPU-0"}}}}, .rows = {std::move(json)}};
}

}  // namespace

TEST_CASE("cold rows of 16 MiB read them from DRAM, hot rows do not, as a stream and as a graph",
          "[gpu][measurement]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  if (skip_without_counters(*bench.device)) return;
  bench.measure.cache = {CacheMode::cold, CacheMode::hot};
  bench.measure.graph = {false, true};
  const Case c = rmsnorm_of(2048, 4096);
  const CaseResult result = run_case(c, {"cublas", "fused"}, bench.context);
  REQUIRE(result.rows.size() == 8);
  for (const Row& row : result.rows) {
    INFO(row.variant << (row.graph ? ", graph" : ", stream") << ": " << row.reason << row.dram_read_bytes.reason);
    REQUIRE(row.verdict == Verdict::pass);
    REQUIRE(row.dram_read_bytes.value);
    const double read = static_cast<double>(*row.dram_read_bytes.value) / (16 << 20);
    std::printf("%s, %s, %s: %.3f of 16 MiB read, %.2f us\n", row.variant.c_str(), row.graph ? "graph" : "stream",
                std::string(name_of(row.cache)).c_str(), read, median(row.samples_us));
    if (row.cache == CacheMode::cold) {
      CHECK(std::abs(read - 1) < 0.02);
    } else {
      CHECK(read < 0.1);
    }
    CHECK(to_json(row)["l2_resident"] == (row.cache == CacheMode::hot));
  }
}

TEST_CASE("counting leaves later timings as they were", "[gpu][measurement]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  if (skip_without_counters(*bench.device)) return;
  bench.measure.samples = 50;
  bench.measure.load = LoadMode::sustained;
  const Case c = rmsnorm_of(4096, 4096);
  bench.measure.traffic = false;
  const double before_us = median(bench.run_one(c, "fused").samples_us);
  bench.measure.traffic = true;
  bench.run_one(c, "fused");
  const double after_us = median(bench.run_one(c, "fused").samples_us);
  INFO(before_us << " us before any counting, " << after_us << " us after it");
  CHECK(std::abs(after_us / before_us - 1) < 0.03);
}

TEST_CASE("a kernel that takes 3% longer comes out slower", "[gpu][measurement]") {
  if (skipped()) return;
  const std::vector<Case> cases = {
      rmsnorm_of(16384, 8192),
      canonical({.op = Op::swiglu, .dtype = DType::fp16, .hidden = 14336, .batch = 2, .seq = 2048}),
      canonical({.op = Op::attention,
                 .dtype = DType::fp16,
                 .dim = 4096,
                 .heads = 32,
                 .kv_heads = 8,
                 .batch = 2,
                 .seq = 2048,
                 .causal = true})};
  for (const Case& c : cases) {
    Bench bench(Backend::cuda);
    // Without a noise table 2% are assumed, which leaves 1% for the intervals. Where the power limit moves the clock
    // from turn to turn (attention), 200 samples reached it in one of two runs.
    bench.measure = {.warmup = 5, .samples = 400, .max_seconds = 60, .traffic = false, .verify = {.rows_per_case = 16}};
    const Row base = bench.run_one(c, "fused");
    const double base_us = median(base.samples_us);
    REQUIRE(base_us > 50);
    const Row again = bench.run_one(c, "fused");
    // A further launch overlaps with the end of the one before it, so what it costs is found by trying.
    double delay_us = 0.03 * base_us;
    bench.variants.add(slowed(bench, c.op, delay_us));
    Row slower = bench.run_one(c, "slowed");
    for (int attempt = 0; attempt < 3 && std::abs(median(slower.samples_us) / base_us - 1.03) > 0.002; ++attempt) {
      delay_us += 1.03 * base_us - median(slower.samples_us);
      slower = bench.run_one(c, "slowed");
    }
    const auto compared = [&](const Row& row) {
      return reports::compare(records_of(base, "fused"), records_of(row, "fused")).rows.at(0);
    };
    const reports::ComparedRow of_again = compared(again);
    const reports::ComparedRow of_slower = compared(slower);
    const auto said = [](const reports::ComparedRow& row) {
      const reports::Ratio ratio = row.ratio.value();
      return fmt::format("{:.4f} [{:.4f}, {:.4f}] {}", ratio.value, ratio.lo.value(), ratio.hi.value(),
                         reports::name_of(row.kind));
    };
    const std::string all =
        fmt::format("{}, {:.2f} us: again {}, slowed {}", case_id(c), base_us, said(of_again), said(of_slower));
    std::puts(all.c_str());
    INFO(all);
    CHECK(of_slower.kind == reports::Kind::slower);
    CHECK((of_again.kind == reports::Kind::same || of_again.kind == reports::Kind::unsure));
  }
}
