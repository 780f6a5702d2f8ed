// A case becomes rows: right variants pass, and every kind of wrong kernel gets its verdict.
#include "harness/case_run.h"

#include <algorithm>
#include <atomic>

#include "harness/nvml.h"
#include "harness/sampler.h"
#include "tests/catch.h"
#include "tests/fake_bench.h"

using namespace fusebench;
using faults::Bench;
using faults::Launched;
using testing::FakeBench;

namespace {

Case attention_case() { return faults::attention_case(DType::fp32); }

// Small enough for many launches.
Case small_case() { return canonical({.op = Op::mlp, .dtype = DType::fp32, .dim = 64, .hidden = 32, .seq = 16}); }

// naive of the small case, whose last step runs only where `writes` says so of the plan's launches, counted from 1.
Variant writes_when(const std::string& name, const std::function<bool(int)>& writes) {
  Variant variant = *registry().find(Op::mlp, Backend::cpu, "naive");
  variant.name = name;
  variant.plan = [plan = variant.plan, writes](const Case& c, const Target& target) {
    Plan made = plan(c, target);
    Launch& last = made.steps().back().launch;
    last = [run = last, writes, launches = std::make_shared<int>(0)](const Exec& exec, const Bindings& bound) {
      if (writes(++*launches)) run(exec, bound);
    };
    return made;
  };
  return variant;
}

}  // namespace

TEST_CASE("every op's variants pass on the CPU, with past and grouped heads", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.max_seconds = 0.05;  // few rounds of steps, each of which costs a flush
  for (const Op op : kOps) {
    for (const std::int64_t past : {0, 5}) {
      const Case c = canonical({.op = op,
                                .dtype = DType::fp32,
                                .dim = 96,
                                .hidden = 80,
                                .heads = 6,
                                .kv_heads = 3,
                                .batch = 2,
                                .seq = 9,
                                .past = past,
                                .causal = true,
                                .rope = Pairing::half});
      const std::vector<std::string> names = default_variants(bench.variants, op, Backend::cpu);
      const CaseResult result = run_case(c, names, bench.context);
      REQUIRE(names.size() >= 3);
      REQUIRE(result.rows.size() == names.size());
      for (const Row& row : result.rows) {
        INFO(case_id(c) << " " << row.variant << ": " << row.reason);
        CHECK(row.verdict == Verdict::pass);
        CHECK(row.samples_us.size() == 3);
        CHECK(row.deterministic.value == true);
        CHECK(*row.bytes_modelled.value >= row.bytes_compulsory);
        CHECK(row.speedup_vs_naive.value.has_value());
      }
    }
  }
}

TEST_CASE("wrong kernels get their verdict", "[case_run]") {
  Bench bench(Backend::cpu);
  for (const faults::Fault& fault : faults::wrong_kernels()) {
    bench.variants.add(faults::spoiled(bench, fault.name, fault.spoil));
    // What a fault damaged is whole again for the variant that comes after it.
    const CaseResult result = run_case(attention_case(), {fault.name, "fused"}, bench.context);
    INFO(fault.name << ": " << result.rows[0].reason);
    CHECK(result.rows[0].verdict == Verdict::fail);
    CHECK_THAT(result.rows[0].reason, ContainsSubstring(fault.says));
    CHECK(result.rows[0].samples_us.empty());
    CHECK(result.rows[1].verdict == Verdict::pass);
  }
}

TEST_CASE("a kernel that stops writing once it was checked fails by its timed launches", "[case_run]") {
  Bench bench(Backend::cpu);
  const auto launches = std::make_shared<std::atomic<int>>(0);
  bench.variants.add(faults::spoiled(bench, "lazy", [launches](const Launched& l) {
    if (++*launches > 3) l.fill(0, 140, 128, 0xff);
  }));
  const Row row = bench.run_one(attention_case(), "lazy");
  CHECK(row.verdict == Verdict::fail);
  CHECK_THAT(row.reason, ContainsSubstring("a timed launch"));
  CHECK(row.deterministic.value == false);
}

TEST_CASE("a fault in a row that the oracle did not sample is found through naive", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.verify.rows_per_case = 16;
  const Case c = attention_case();
  const std::vector<std::int64_t> sampled = choose_rows(c, bench.measure.verify);
  std::int64_t missed = 1;
  while (std::find(sampled.begin(), sampled.end(), missed) != sampled.end()) ++missed;
  bench.variants.add(faults::spoiled(bench, "one_row", [missed](const Launched& l) { l.copy(missed, 0, 1); }));
  const Row row = bench.run_one(c, "one_row");
  CHECK(row.verdict == Verdict::fail);
  CHECK_THAT(row.reason, ContainsSubstring("row " + std::to_string(missed)));
}

TEST_CASE("what cannot run says why, and the others go on", "[case_run]") {
  Bench bench(Backend::cpu);
  Case half = attention_case();
  half.dtype = DType::fp16;
  CHECK(bench.run_one(half, "naive").verdict == Verdict::unsupported);
  CHECK_THAT(bench.run_one(half, "naive").reason, ContainsSubstring("fp32, not fp16"));
  CHECK_THAT(bench.run_one(attention_case(), "cublas").reason, ContainsSubstring("naive, eigen, fused"));

  bench.variants.add({.name = "greedy",
                      .op = Op::attention,
                      .backend = Backend::cpu,
                      .dtypes = {DType::fp32},
                      .plan = [](const Case& c, const Target& target) {
                        Plan plan = registry().find(Op::attention, Backend::cpu, "naive")->plan(c, target);
                        const TensorId huge = plan.workspace("huge", DType::fp32, std::int64_t{1} << 31, 1 << 12);
                        plan.steps().front().writes.push_back(plan.all(huge));
                        return plan;
                      }});
  bench.variants.add({.name = "throws",
                      .op = Op::attention,
                      .backend = Backend::cpu,
                      .dtypes = {DType::fp32},
                      .plan = [](const Case& c, const Target& target) {
                        Plan plan = registry().find(Op::attention, Backend::cpu, "naive")->plan(c, target);
                        plan.add({.name = "x", .kernel = "x", .launch = [](const Exec&, const Bindings&) {
                                    throw std::runtime_error("call failed");
                                  }});
                        return plan;
                      }});
  const CaseResult result = run_case(attention_case(), {"greedy", "throws", "fused"}, bench.context);
  REQUIRE(result.rows.size() == 3);
  CHECK(result.rows[0].verdict == Verdict::unsupported);
  CHECK_THAT(result.rows[0].reason, ContainsSubstring("bytes of device memory"));
  CHECK(result.rows[1].verdict == Verdict::error);
  CHECK(result.rows[1].reason == "call failed");
  CHECK(result.rows[2].verdict == Verdict::pass);

  bench.measure.graph = {false, true};
  const CaseResult modes = run_case(attention_case(), {"fused"}, bench.context);
  REQUIRE(modes.rows.size() == 2);
  CHECK(modes.rows[0].verdict == Verdict::pass);
  CHECK(modes.rows[1].verdict == Verdict::unsupported);
}

TEST_CASE("a kernel that leaves out launches passes neither cold nor hot", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.samples = 6;
  // The second launch is the one that is verified. Hot samples launch twice, and time the second.
  const auto every_second = [](int launch) { return launch <= 2 || launch % 2 == 1; };
  const auto two_of_three = [](int launch) { return launch <= 2 || launch % 3 != 0; };
  bench.variants.add(writes_when("every_second", every_second));
  bench.variants.add(writes_when("two_of_three", two_of_three));
  for (const CacheMode mode : {CacheMode::cold, CacheMode::hot}) {
    bench.measure.cache = {mode};
    for (const char* name : {"every_second", "two_of_three"}) {
      const Row row = bench.run_one(small_case(), name);
      INFO(name << " " << name_of(mode) << ": " << row.reason);
      CHECK(row.cache == mode);
      CHECK(row.verdict == Verdict::fail);
      CHECK_THAT(row.reason, ContainsSubstring("a timed launch"));
      CHECK(row.samples_us.size() >= 6);
      CHECK(row.deterministic.value == false);
    }
  }
}

TEST_CASE("under sustained load too, what is timed is what is checked", "[case_run]") {
  FakeBench bench;
  bench.measure.cache = {CacheMode::cold, CacheMode::hot};
  bench.measure.samples = 12;  // more than a turn
  bench.variants.add(
      testing::entered_on_cuda(writes_when("two_of_three", [](int launch) { return launch <= 2 || launch % 3 != 0; })));
  const CaseResult result = run_case(small_case(), {"two_of_three", "fused"}, bench.context);
  REQUIRE(result.rows.size() == 4);
  for (const Row& row : result.rows) {
    INFO(row.variant << " " << name_of(row.cache) << ": " << row.reason);
    CHECK(row.verdict == (row.variant == "fused" ? Verdict::pass : Verdict::fail));
    CHECK(row.samples_us == std::vector<double>(12, bench.fake.work_us));
  }
}

TEST_CASE("one variant is sampled against itself where the context asks, once a mode", "[case_run]") {
  FakeBench bench;
  bench.measure.cache = {CacheMode::cold, CacheMode::hot};
  bench.fake.cold_extra_us = 10e3;
  const auto launches = std::make_shared<int>(0);
  bench.variants.add(testing::entered_on_cuda(writes_when("counted", [launches](int) { return ++*launches > 0; })));
  const auto run = [&](bool control) {
    *launches = 0;
    bench.context.control = control;
    return run_case(small_case(), {"naive", "counted"}, bench.context);
  };
  const CaseResult without = run(false);
  const int launches_without = *launches;
  CHECK(without.controls.empty());
  const CaseResult with = run(true);
  CHECK(*launches > launches_without);
  REQUIRE(with.controls.size() == 2);
  CHECK(with.controls[0].median_us == 40e3);
  CHECK(with.controls[1].median_us == 30e3);
  CHECK(with.controls[0].ratio == 1);
  CHECK(with.controls[1].ratio == 1);
  // The second of the pair is no row, and lends the first no samples.
  REQUIRE(with.rows.size() == without.rows.size());
  for (const Row& row : with.rows) {
    CHECK(row.verdict == Verdict::pass);
    CHECK(row.samples_us.size() == 3);
  }
}

TEST_CASE("without a variant that is timed there is no control", "[case_run]") {
  FakeBench bench;
  bench.context.control = true;
  bench.variants.add(testing::entered_on_cuda(writes_when("idle", [](int) { return false; })));
  const CaseResult result = run_case(small_case(), {"idle"}, bench.context);
  CHECK(result.rows.at(0).verdict == Verdict::fail);
  CHECK(result.controls.empty());
}

TEST_CASE("a case tells where its time went", "[case_run]") {
  FakeBench bench;
  bench.fake.traffic = [](std::size_t) { return Traffic{}; };
  const double start = steady_seconds();
  const CaseResult result = run_case(small_case(), {"naive"}, bench.context);
  const double all = steady_seconds() - start;
  double sum = 0;
  std::vector<std::string> stages;
  for (const auto& [stage, seconds] : result.stage_seconds) {
    CHECK(seconds >= 0);
    sum += seconds;
    stages.push_back(stage);
  }
  CHECK(stages ==
        std::vector<std::string>{"binding", "inputs", "oracle", "samples", "steps", "traffic", "verification"});
  CHECK(sum > 0);
  CHECK(sum <= all);
}

TEST_CASE("a row has its turns' mean power and what held the clock down in half of them", "[case_run]") {
  FakeBench bench;
  bench.measure.samples = 20;  // two turns of ten
  bench.fake.mhz = [](double) { return 1500.0; };
  bench.fake.read_sensors = [&bench] {
    // Before the verification, each warm-up and each sample.
    const auto flushes = std::count(bench.fake.log.begin(), bench.fake.log.end(), "flush");
    const bool in_first_turn = flushes <= 1 + bench.measure.warmup + 10;
    return DeviceState{.power_w = in_first_turn ? 600.0 : 700.0,
                       .temperature_c = 50.0,
                       .clock_events = in_first_turn ? std::uint64_t{kGpuIdle | kPowerCap} : std::uint64_t{kGpuIdle}};
  };
  const Row row = run_case(small_case(), {"naive"}, bench.context).rows.at(0);
  CHECK(row.power_w.value == 650);
  CHECK(row.temperature_c.value == 50);
  CHECK(row.clock_limits.value == clock_event_words(kPowerCap));
  CHECK(row.samples_mhz == std::vector<double>(20, 1500));
}
