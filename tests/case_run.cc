// A case becomes rows: right variants pass, and every kind of wrong kernel gets its verdict.
#include "harness/case_run.h"

#include <algorithm>
#include <atomic>

#include "tests/catch.h"
#include "tests/faults.h"

using namespace fusebench;
using faults::Bench;
using faults::Launched;

namespace {

Case attention_case() { return faults::attention_case(DType::fp32); }

}  // namespace

TEST_CASE("every op's variants pass on the CPU, with past and grouped heads", "[case_run]") {
  Bench bench(Backend::cpu);
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
