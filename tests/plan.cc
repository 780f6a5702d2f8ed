// Plans: sums, and a workspace whose tensors share memory only when they are never alive together.
#include "harness/plan.h"

#include <random>

#include "tests/catch.h"

using namespace fusebench;

namespace {

Plan empty_plan() {
  return Plan(spec_of(canonical({.op = Op::rmsnorm, .dtype = DType::fp32, .dim = 8, .batch = 2, .seq = 3})));
}

Step touching(std::vector<Access> reads, std::vector<Access> writes, const std::string& kernel = "k") {
  return {.name = "s", .kernel = kernel, .reads = std::move(reads), .writes = std::move(writes)};
}

/// Whether both are touched, one before and one after or at some step, read off step by step.
bool alive_at(const Plan& plan, TensorId id, std::size_t step) {
  const auto touches = [&](std::size_t s) {
    for (const auto* accesses : {&plan.steps()[s].reads, &plan.steps()[s].writes}) {
      for (const Access& access : *accesses) {
        if (access.tensor == id) return true;
      }
    }
    return false;
  };
  bool before = false;
  bool after = false;
  for (std::size_t s = 0; s <= step; ++s) before = before || touches(s);
  for (std::size_t s = step; s < plan.steps().size(); ++s) after = after || touches(s);
  return before && after;
}

bool ever_alive_together(const Plan& plan, TensorId a, TensorId b) {
  for (std::size_t step = 0; step < plan.steps().size(); ++step) {
    if (alive_at(plan, a, step) && alive_at(plan, b, step)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a plan begins with the op's tensors, and sums what its steps declare", "[plan]") {
  Plan plan = empty_plan();
  const TensorId x = plan.op_tensor("x");
  const TensorId y = plan.op_tensor("y");
  CHECK(plan.tensor(x).bytes() == 2 * 3 * 8 * 4);
  CHECK_THROWS_AS(plan.op_tensor("z"), std::out_of_range);

  const TensorId w = plan.workspace("w", DType::fp16, 5, 7);
  const TensorId prepared = plan.prepared("p", DType::fp32, 3, 3);
  CHECK_THROWS_AS(plan.op_tensor("w"), std::out_of_range);
  plan.add(touching({plan.all(x)}, {plan.all(w)}, "first")).flops = 10;
  plan.add(touching({plan.all(w), Plan::part(prepared, 12)}, {plan.all(y)}, "second")).flops = 5;
  plan.add(touching({plan.all(y)}, {plan.all(y)}, "first")).launches = 3;
  plan.add_prepare(touching({plan.all(x)}, {plan.all(prepared)}, "not in a launch")).flops = 1000;

  CHECK(plan.steps()[1].bytes_read() == 5 * 7 * 2 + 12);
  CHECK(plan.steps()[1].bytes_written() == 192);
  CHECK(plan.modelled_bytes() == (192 + 70) + (70 + 12 + 192) + (192 + 192));
  CHECK(plan.prepared_bytes() == 36);
  CHECK(plan.flops() == 15);
  CHECK(plan.launches() == 5);
  CHECK(plan.kernel() == "first + second");
}

TEST_CASE("sizes over 2^31 elements stay whole", "[plan]") {
  Plan plan = empty_plan();
  const TensorId huge = plan.workspace("huge", DType::fp32, std::int64_t{1} << 33, 3);
  plan.add(touching({}, {plan.all(huge)}));
  CHECK(plan.modelled_bytes() == std::int64_t{3} << 35);
  CHECK(lay_out_workspace(plan, 256).bytes == std::int64_t{3} << 35);
}

TEST_CASE("an intermediate takes the place of one that is no longer needed", "[plan]") {
  Plan plan = empty_plan();
  const TensorId a = plan.workspace("a", DType::fp32, 1, 100);
  const TensorId b = plan.workspace("b", DType::fp32, 1, 10);
  const TensorId c = plan.workspace("c", DType::fp32, 1, 100);
  const TensorId prepared = plan.prepared("p", DType::fp32, 1, 1000);
  plan.add(touching({}, {plan.all(a)}));
  plan.add(touching({plan.all(a)}, {plan.all(b)}));
  plan.add(touching({plan.all(b), plan.all(prepared)}, {plan.all(c)}));
  const Layout layout = lay_out_workspace(plan, 64);
  const auto offset = [&](TensorId id) { return layout.offsets.at(static_cast<std::size_t>(id)); };
  CHECK(offset(a) == 0);
  CHECK(offset(b) == 448);  // 400 rounded up to 64
  CHECK(offset(c) == 0);
  CHECK(layout.bytes == 512);
  CHECK(offset(prepared) == -1);
  CHECK(offset(plan.op_tensor("x")) == -1);
}

TEST_CASE("an access of no bytes keeps a tensor alive: a library's scratch memory", "[plan]") {
  Plan plan = empty_plan();
  const TensorId a = plan.workspace("a", DType::fp32, 1, 64);
  const TensorId scratch = plan.workspace("scratch", DType::fp32, 1, 64);
  plan.add(touching({}, {plan.all(a)}));
  plan.add(touching({}, {Plan::part(scratch, 0)}));
  plan.add(touching({plan.all(a)}, {}));
  CHECK(lay_out_workspace(plan, 256).bytes == 512);
  CHECK(plan.modelled_bytes() == 512);
}

TEST_CASE("random plans: tensors that live together never overlap, and offsets are aligned", "[plan]") {
  std::mt19937 random(7);
  const auto draw = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  for (int round = 0; round < 200; ++round) {
    Plan plan = empty_plan();
    std::vector<TensorId> ids;
    std::int64_t sum = 0;
    const std::int64_t alignment = std::int64_t{1} << draw(0, 8);
    for (int i = draw(1, 12); i > 0; --i) {
      ids.push_back(plan.workspace("w", draw(0, 1) == 0 ? DType::fp16 : DType::fp32, draw(1, 9), draw(1, 40)));
      sum += plan.tensor(ids.back()).bytes() + alignment - 1;
    }
    for (int i = draw(1, 10); i > 0; --i) {
      Step step = touching({}, {});
      for (int n = draw(0, 3); n > 0; --n) {
        auto& accesses = draw(0, 1) == 0 ? step.reads : step.writes;
        accesses.push_back(plan.all(ids[static_cast<std::size_t>(draw(0, static_cast<int>(ids.size()) - 1))]));
      }
      plan.add(std::move(step));
    }
    const Layout layout = lay_out_workspace(plan, alignment);
    CHECK(layout.bytes <= sum);
    for (const TensorId a : ids) {
      const std::int64_t a_begin = layout.offsets[static_cast<std::size_t>(a)];
      const std::int64_t a_end = a_begin + plan.tensor(a).bytes();
      if (!ever_alive_together(plan, a, a)) continue;
      INFO("round " << round << ", tensor " << a);
      CHECK(a_begin >= 0);
      CHECK(a_begin % alignment == 0);
      CHECK(a_end <= layout.bytes);
      for (const TensorId b : ids) {
        if (b == a || !ever_alive_together(plan, a, b)) continue;
        const std::int64_t b_begin = layout.offsets[static_cast<std::size_t>(b)];
        const std::int64_t b_end = b_begin + plan.tensor(b).bytes();
        CHECK((a_end <= b_begin || b_end <= a_begin));
      }
    }
  }
}

TEST_CASE("a tensor that no step touches takes no memory", "[plan]") {
  Plan plan = empty_plan();
  plan.workspace("unused", DType::fp32, 1000, 1000);
  plan.add(touching({plan.all(plan.op_tensor("x"))}, {plan.all(plan.op_tensor("y"))}));
  CHECK(lay_out_workspace(plan, 256).bytes == 0);
}

TEST_CASE("an intermediate whose bytes pass 2^56 is refused, also where its size wraps around", "[plan]") {
  Plan plan = empty_plan();
  const std::int64_t large = std::int64_t{1} << 31;
  CHECK_THROWS_AS(plan.workspace("scores", DType::fp32, large, large), Unsupported);
  CHECK_THROWS_AS(plan.prepared("weights", DType::fp16, large * large, 4), Unsupported);
  CHECK_NOTHROW(plan.workspace("fits", DType::fp32, large, 1 << 23));
}
