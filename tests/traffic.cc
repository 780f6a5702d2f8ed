// Which pieces of a plan are counted, from which state of the cache, and what becomes of the counts and of failures.
#include "harness/traffic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/bound.h"
#include "tests/catch.h"
#include "tests/fake_bench.h"

using namespace fusebench;
using testing::BoundSteps;
using testing::FakeBench;
using testing::FakeDevice;

namespace {

// The i-th counted piece: figures that tell it from all others.
Traffic numbered(std::size_t i) {
  const auto n = static_cast<std::int64_t>(i + 1);
  return {
      .dram_read_bytes = 1000 * n, .dram_write_bytes = n, .l2_bytes = 7 * n, .gpu_us = 1.0 * static_cast<double>(n)};
}

struct Counted {
  FakeDevice device;
  std::string log;
  PlanTraffic traffic;

  explicit Counted(CacheMode mode) {
    device.traffic = numbered;
    const BoundSteps steps(
        device, {{"a", [this] { device.log.emplace_back("a"); }}, {"b", [this] { device.log.emplace_back("b"); }}});
    const auto counters = device.open_counters();
    const auto launch = [&] {
      device.log.emplace_back("graph");
      steps.plan().launch();
    };
    device.log.clear();
    traffic = count_traffic(device, *counters, steps.plan(), launch, mode);
    log = fmt::format("{}", fmt::join(device.log, " "));
  }
};

Case small_case() { return canonical({.op = Op::mlp, .dtype = DType::fp32, .dim = 64, .hidden = 32, .seq = 4}); }

}  // namespace

TEST_CASE("cold: each count starts from a flushed cache, steps in place from what the step before left", "[traffic]") {
  const Counted cold(CacheMode::cold);
  CHECK(cold.log ==
        "flush ( graph a b ) ( drain ) "  // the plan
        "flush ( a ) ( b ) "              // its steps in place
        "flush ( a ) ( drain ) "          // alone
        "flush ( b ) ( drain )");
}

TEST_CASE("hot: each count comes behind an uncounted launch of the same, and nothing is flushed", "[traffic]") {
  const Counted hot(CacheMode::hot);
  CHECK(hot.log ==
        "graph a b ( graph a b ) ( drain ) "
        "graph a b ( a ) ( b ) "
        "a ( a ) ( drain ) "
        "b ( b ) ( drain )");
}

TEST_CASE("late writes are kept apart for the plan and belong to a step alone", "[traffic]") {
  for (const CacheMode mode : {CacheMode::cold, CacheMode::hot}) {
    const PlanTraffic traffic = Counted(mode).traffic;
    // In the order of the pieces: plan, drain, a, b in place, a alone, drain, b alone, drain.
    CHECK(traffic.plan.dram_read_bytes == 1000);
    CHECK(traffic.plan.dram_write_bytes == 1);
    CHECK(traffic.plan.l2_bytes == 7);
    CHECK(traffic.plan.gpu_us == 1);
    CHECK(traffic.late_write_bytes == 2);
    REQUIRE(traffic.in_place.size() == 2);
    CHECK(traffic.in_place[0].dram_read_bytes == 3000);
    CHECK(traffic.in_place[0].dram_write_bytes == 3);
    CHECK(traffic.in_place[1].dram_read_bytes == 4000);
    CHECK(traffic.in_place[1].dram_write_bytes == 4);
    REQUIRE(traffic.alone.size() == 2);
    // What a drain reads is the harness's own.
    CHECK(traffic.alone[0].dram_read_bytes == 5000);
    CHECK(traffic.alone[0].dram_write_bytes == 5 + 6);
    CHECK(traffic.alone[1].dram_read_bytes == 7000);
    CHECK(traffic.alone[1].dram_write_bytes == 7 + 8);
  }
}

TEST_CASE("a failure of the counters comes out", "[traffic]") {
  FakeDevice device;
  device.count_failure = "cuptiDecode: no permission";
  const BoundSteps steps(device, {{"a", [] {}}});
  const auto counters = device.open_counters();
  const auto launch = [&] { steps.plan().launch(); };
  CHECK_THROWS_WITH(count_traffic(device, *counters, steps.plan(), launch, CacheMode::cold),
                    "cuptiDecode: no permission");
}

TEST_CASE("a row carries what its plan and steps moved", "[traffic]") {
  FakeBench bench;
  bench.fake.traffic = numbered;
  bench.measure.cache = {CacheMode::cold, CacheMode::hot};
  const CaseResult result = run_case(small_case(), {"naive", "fused"}, bench.context);
  REQUIRE(result.rows.size() == 4);
  for (const Row& row : result.rows) {
    INFO(row.variant << " " << name_of(row.cache) << ": " << row.reason);
    CHECK(row.verdict == Verdict::pass);
    CHECK(row.traffic_source == "a script");
    CHECK(row.dram_read_bytes.value == 1000);
    CHECK(row.dram_write_bytes.value == 1 + 2);
    CHECK(row.dram_late_write_bytes.value == 2);
    CHECK(row.l2_bytes.value == 7);
    const auto steps = static_cast<std::int64_t>(row.steps.size());
    REQUIRE(steps > 0);
    for (std::int64_t i = 0; i < steps; ++i) {
      const StepRow& step = row.steps[static_cast<std::size_t>(i)];
      CHECK(step.dram_read_bytes.value == 1000 * (3 + i));
      CHECK(step.dram_write_bytes.value == 3 + i);
      CHECK(step.alone_dram_read_bytes.value == 1000 * (3 + steps + 2 * i));
      CHECK(step.alone_dram_write_bytes.value == (3 + steps + 2 * i) + (4 + steps + 2 * i));
    }
    CHECK(to_json(row)["traffic_reason"].is_null());
  }
  CHECK(bench.fake.counters_open == 0);
  CHECK_FALSE(bench.fake.timed_beside_counters);
}

TEST_CASE("without counters a row is timed and passes, with why its traffic is unknown", "[traffic]") {
  FakeBench bench;
  bench.fake.traffic = numbered;
  std::string why;
  SECTION("the sweep does not ask") {
    bench.measure.traffic = false;
    bench.fake.open_failure = "opened all the same";
    why = "not measured: the sweep says traffic: false";
  }
  SECTION("they cannot be opened") {
    bench.fake.open_failure = "counters are for administrators alone";
    why = bench.fake.open_failure;
  }
  SECTION("they fail while they count") {
    bench.fake.count_failure = "a count went wrong";
    why = bench.fake.count_failure;
  }
  const CaseResult result = run_case(small_case(), {"naive", "fused"}, bench.context);
  REQUIRE(result.rows.size() == 2);
  CHECK(result.lost.empty());
  for (const Row& row : result.rows) {
    INFO(row.variant << ": " << row.reason);
    CHECK(row.verdict == Verdict::pass);
    CHECK(row.samples_us.size() == 3);
    CHECK_FALSE(row.dram_read_bytes.value.has_value());
    const auto json = to_json(row);
    CHECK(json["traffic_reason"] == why);
    CHECK(json["dram_write_bytes"].is_null());
    CHECK(json["traffic_source"] == "model");
    CHECK(json["l2_resident_reason"] == why);
    for (const auto& step : json["steps"]) CHECK(step["traffic_reason"] == why);
  }
  CHECK(bench.fake.counters_open == 0);
}

TEST_CASE("a row that failed is not counted, and says why", "[traffic]") {
  FakeBench bench;
  bench.fake.traffic = numbered;
  Variant wrong = *registry().find(Op::mlp, Backend::cpu, "naive");
  wrong.name = "idle";
  wrong.plan = [plan = wrong.plan](const Case& c, const Target& target) {
    Plan idle = plan(c, target);
    idle.steps().back().launch = [](const Exec&, const Bindings&) {};
    return idle;
  };
  bench.variants.add(testing::entered_on_cuda(wrong));
  const CaseResult result = run_case(small_case(), {"naive", "idle"}, bench.context);
  CHECK(result.rows.at(0).dram_read_bytes.value == 1000);
  CHECK(result.rows.at(1).verdict == Verdict::fail);
  CHECK_FALSE(result.rows.at(1).dram_read_bytes.value.has_value());
  CHECK_FALSE(result.rows.at(1).dram_read_bytes.reason.empty());
}
