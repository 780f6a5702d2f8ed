// A case becomes rows: right variants pass, and every kind of wrong kernel gets its verdict.
#include "harness/case_run.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <limits>

#include "harness/dump.h"
#include "tests/catch.h"
#include "tests/faults.h"

using namespace fusebench;

namespace {

struct Bench {
  std::unique_ptr<Device> device = open_cpu_device();
  Registry variants;
  Measure measure{.warmup = 1, .samples = 3};
  OracleCache cache{std::filesystem::temp_directory_path() / "fusebench-test-no-cache" / std::to_string(getpid())};
  CaseContext context{.device = *device,
                      .variants = variants,
                      .measure = measure,
                      .oracle_cache = cache,
                      .source = [](const Case& c) { return std::make_unique<DrawnSource>(c); },
                      .note = [](const std::string&) {},
                      .repro = [](const Case&, const std::string& variant) { return "repro " + variant; }};

  Bench() {
    for (const Op op : kOps) {
      for (const Variant* variant : registry().all(op, Backend::cpu)) variants.add(*variant);
    }
  }
  Row run_one(const Case& c, const std::string& variant) {
    const CaseResult result = run_case(c, {variant}, context);
    REQUIRE(result.rows.size() == 1);
    return result.rows.front();
  }
};

Case attention_case() {
  return canonical({.op = Op::attention,
                    .dtype = DType::fp32,
                    .dim = 128,
                    .heads = 4,
                    .kv_heads = 2,
                    .batch = 2,
                    .seq = 70,
                    .past = 3,
                    .causal = true});
}
constexpr std::int64_t kRowBytes = 128 * 4;

}  // namespace

TEST_CASE("every op's variants pass on the CPU, with past and grouped heads", "[case_run]") {
  Bench bench;
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
      const CaseResult result = run_case(c, default_variants(bench.variants, op, Backend::cpu), bench.context);
      REQUIRE(result.rows.size() == 3);
      for (const Row& row : result.rows) {
        INFO(case_id(c) << " " << row.variant << ": " << row.reason);
        CHECK(row.verdict == Verdict::pass);
        CHECK(row.samples_us.size() == 4);
        CHECK(row.deterministic.value == true);
        CHECK(*row.bytes_modelled.value >= row.bytes_compulsory);
        CHECK(row.speedup_vs_naive.value.has_value());
      }
    }
  }
}

TEST_CASE("wrong kernels get their verdict", "[case_run]") {
  struct Fault {
    const char* name;
    const char* reason;
    faults::Spoil spoil;
  };
  const std::vector<Fault> wrong = {
      {"drops_tile", "got 0",
       [](const Exec&, const auto& at) {
         for (int row = 64; row < 128; ++row) std::memset(at("out") + row * kRowBytes + 256, 0, 64 * 4 / 2);
       }},
      {"nan_in_one_element", "got nan",
       [](const Exec&, const auto& at) {
         const float nan = std::numeric_limits<float>::quiet_NaN();
         std::memcpy(at("out") + 139 * kRowBytes + 508, &nan, 4);
       }},
      {"zeros", "all zero", [](const Exec&, const auto& at) { std::memset(at("out"), 0, 140 * kRowBytes); }},
      {"untouched", "not finite", [](const Exec&, const auto& at) { std::memset(at("out"), 0xff, 140 * kRowBytes); }},
      {"past_the_end", "past the end of out",
       [](const Exec&, const auto& at) { at("out")[140 * kRowBytes + 3] = std::byte{1}; }},
      {"changes_its_input", "changed an input", [](const Exec&, const auto& at) { at("k")[100] ^= std::byte{1}; }},
      {"batch_0_alone", "out",
       [](const Exec&, const auto& at) { std::memcpy(at("out") + 70 * kRowBytes, at("out"), 70 * kRowBytes); }},
  };
  Bench bench;
  for (const Fault& fault : wrong) {
    bench.variants.add(faults::spoiled(fault.name, Op::attention, Backend::cpu, fault.spoil));
    const Row row = bench.run_one(attention_case(), fault.name);
    INFO(fault.name << ": " << row.reason);
    CHECK(row.verdict == Verdict::fail);
    CHECK_THAT(row.reason, ContainsSubstring(fault.reason));
    CHECK(row.samples_us.empty());
    // What the fault damaged is whole again for the next variant.
    const CaseResult after = run_case(attention_case(), {fault.name, "fused"}, bench.context);
    CHECK(after.rows[1].verdict == Verdict::pass);
  }
}

TEST_CASE("a kernel that stops writing once it was checked fails by its last timed launch", "[case_run]") {
  Bench bench;
  const auto launches = std::make_shared<std::atomic<int>>(0);
  bench.variants.add(faults::spoiled("lazy", Op::attention, Backend::cpu, [launches](const Exec&, const auto& at) {
    if (++*launches > 3) std::memset(at("out"), 0xff, 140 * kRowBytes);
  }));
  const Row row = bench.run_one(attention_case(), "lazy");
  CHECK(row.verdict == Verdict::fail);
  CHECK_THAT(row.reason, ContainsSubstring("last timed launch"));
  CHECK(row.deterministic.value == false);
}

TEST_CASE("a fault in a row that the oracle did not sample is found through naive", "[case_run]") {
  Bench bench;
  bench.measure.verify.rows_per_case = 16;
  const Case c = attention_case();
  const std::vector<std::int64_t> sampled = choose_rows(c, bench.measure.verify);
  std::int64_t row_index = 1;
  while (std::find(sampled.begin(), sampled.end(), row_index) != sampled.end()) ++row_index;
  bench.variants.add(faults::spoiled("one_row", Op::attention, Backend::cpu, [row_index](const Exec&, const auto& at) {
    std::memcpy(at("out") + row_index * kRowBytes, at("out"), kRowBytes);
  }));
  const Row row = bench.run_one(c, "one_row");
  CHECK(row.verdict == Verdict::fail);
  CHECK_THAT(row.reason, ContainsSubstring("row " + std::to_string(row_index)));
}

TEST_CASE("what cannot run says why, and the others go on", "[case_run]") {
  Bench bench;
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
