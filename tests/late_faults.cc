// Kernels that are right when they are verified and wrong later, or wrong where a check might not look.
#include <algorithm>
#include <memory>

#include "harness/case_run.h"
#include "tests/catch.h"
#include "tests/faults.h"

using namespace fusebench;
using faults::Bench;
using faults::Launched;

namespace {

constexpr int kVerified = 2;  // launches until a variant is verified: one that prepares, one that is checked

Case attention_case() { return faults::attention_case(DType::fp32); }

std::int64_t unsampled_row(const Case& c, const VerifyRows& verify) {
  const std::vector<std::int64_t> sampled = choose_rows(c, verify);
  std::int64_t row = 1;
  while (std::binary_search(sampled.begin(), sampled.end(), row)) ++row;
  return row;
}

// Spoils the launches that come after the verified one.
Variant spoiled_late(const Bench& bench, const std::string& name, const faults::Spoil& spoil) {
  return faults::spoiled(bench, name, [spoil, launches = std::make_shared<int>(0)](const Launched& l) {
    if (++*launches > kVerified) spoil(l);
  });
}

// What naive does, in plans that a test may change.
Variant altered(const std::string& name, const std::function<void(const Case&, Plan&)>& alter) {
  return {.name = name,
          .op = Op::attention,
          .backend = Backend::cpu,
          .dtypes = {DType::fp32},
          .plan = [alter](const Case& c, const Target& target) {
            Plan plan = registry().find(Op::attention, Backend::cpu, "naive")->plan(c, target);
            alter(c, plan);
            return plan;
          }};
}

// Runs a step's launch only where `awake` says so of the plan's launches, counted from 1.
void sleep_unless(Plan& plan, std::size_t first_step, const std::function<bool(int)>& awake) {
  for (std::size_t i = first_step; i < plan.steps().size(); ++i) {
    plan.steps()[i].launch = [run = plan.steps()[i].launch, awake, launches = std::make_shared<int>(0)](
                                 const Exec& exec, const Bindings& bound) {
      if (awake(++*launches)) run(exec, bound);
    };
  }
}

// A tensor that one more step "writes", so that it has a place in the arena.
void add_stray_write(Plan& plan, TensorId id, std::int64_t at_byte) {
  plan.add(
      {.name = "stray", .kernel = "fault", .writes = {plan.all(id)}, .launch = [=](const Exec&, const Bindings& bound) {
         bound.at<std::byte>(id)[at_byte] = std::byte{1};
       }});
}

}  // namespace

TEST_CASE("in hot mode a timed launch cannot live on its warm-up's output", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.cache = {CacheMode::hot};
  const auto awake = [](int launch) { return launch <= kVerified || launch % 2 == 1; };
  bench.variants.add(altered("sleeps", [&](const Case&, Plan& plan) { sleep_unless(plan, 0, awake); }));
  // All but the last step: the intermediates of the warm-up are there to be used.
  bench.variants.add(altered("dozes", [&](const Case&, Plan& plan) {
    sleep_unless(plan, 0, awake);
    const Plan naive = registry().find(Op::attention, Backend::cpu, "naive")->plan(attention_case(), {});
    plan.steps().back().launch = naive.steps().back().launch;
  }));
  for (const char* name : {"sleeps", "dozes"}) {
    const Row row = bench.run_one(attention_case(), name);
    INFO(name << ": " << row.reason);
    CHECK(row.verdict == Verdict::fail);
    CHECK_THAT(row.reason, ContainsSubstring("a timed launch"));
  }
  CHECK(bench.run_one(attention_case(), "fused").verdict == Verdict::pass);
}

TEST_CASE("a row that the oracle did not sample is checked in timed launches too", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.verify.rows_per_case = 16;
  const std::int64_t row = unsampled_row(attention_case(), bench.measure.verify);
  bench.variants.add(spoiled_late(bench, "stops", [row](const Launched& l) { l.fill(row, row + 1, 128, 0xff); }));
  bench.variants.add(spoiled_late(bench, "mixes", [row](const Launched& l) { l.copy(row, 0, 1); }));
  for (const char* name : {"stops", "mixes"}) {
    const Row got = bench.run_one(attention_case(), name);
    INFO(name << ": " << got.reason);
    CHECK(got.verdict == Verdict::fail);
    CHECK_THAT(got.reason, ContainsSubstring("a timed launch"));
  }
}

TEST_CASE("what a timed launch damages is its own failure, not that of the variants after it", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.samples = 6;
  bench.variants.add(spoiled_late(bench, "late_input", [](const Launched& l) { l.device.fill(l.at("v"), 0x11, 64); }));
  bench.variants.add(spoiled_late(bench, "late_overrun", [](const Launched& l) { l.device.fill(l.out(140), 1, 1); }));
  const CaseResult result = run_case(attention_case(), {"naive", "late_input", "late_overrun", "fused"}, bench.context);
  REQUIRE(result.rows.size() == 4);
  CHECK(result.rows[0].verdict == Verdict::pass);
  CHECK_THAT(result.rows[1].reason, ContainsSubstring("a timed launch: changed an input"));
  CHECK_THAT(result.rows[2].reason, ContainsSubstring("a timed launch: wrote"));
  CHECK(result.rows[3].verdict == Verdict::pass);
}

TEST_CASE("a write far past a tensor, or past what a plan made for itself, is found", "[case_run]") {
  Bench bench(Backend::cpu);
  bench.variants.add(faults::spoiled(bench, "far", [](const Launched& l) {
    l.device.fill(l.out(140) + 300, 1, 1);  // behind the guard of 256 bytes
  }));
  bench.variants.add(altered("past_workspace", [](const Case&, Plan& plan) {
    // Alone with the plan's largest tensors in the arena, so that its end is the arena's.
    const TensorId id = plan.workspace("stray", DType::fp32, 1 << 20, 1);
    add_stray_write(plan, id, plan.tensor(id).bytes());
  }));
  bench.variants.add(altered("past_prepared", [](const Case&, Plan& plan) {
    const TensorId id = plan.prepared("stray", DType::fp32, 64, 1);
    add_stray_write(plan, id, plan.tensor(id).bytes());
  }));
  bench.variants.add(altered("changes_prepared", [](const Case&, Plan& plan) {
    const TensorId id = plan.prepared("stray", DType::fp32, 64, 1);
    plan.add_prepare({.name = "make", .kernel = "fault", .launch = [id](const Exec&, const Bindings& bound) {
                        std::fill_n(bound.at<float>(id), 64, 0.F);
                      }});
    add_stray_write(plan, id, 0);
  }));
  const auto reason = [&](const char* name) {
    const Row row = bench.run_one(attention_case(), name);
    CHECK(row.verdict == Verdict::fail);
    return row.reason;
  };
  CHECK_THAT(reason("far"), ContainsSubstring("out"));
  CHECK_THAT(reason("past_workspace"), ContainsSubstring("past the end of its workspace"));
  CHECK_THAT(reason("past_prepared"), ContainsSubstring("past the end of its prepared tensors"));
  CHECK_THAT(reason("changes_prepared"), ContainsSubstring("changed a prepared tensor"));
}
