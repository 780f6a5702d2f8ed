// The library's products: Eigen against plain loops, and the levels by which a batch is walked.
#include "variants/product.h"

#include <array>
#include <cmath>

#include "tests/catch.h"
#include "tests/host_run.h"

using namespace fusebench;

namespace {

/// Batches and heads in buffers of their own size, with gaps: every stride differs from every extent.
struct Shape {
  std::int64_t m, n, k, batches, heads, group;
  Rhs rhs;
  bool residual;
};

struct Problem {
  Case c = canonical({.op = Op::rmsnorm, .dtype = DType::fp32, .dim = 1});
  Target target;
  Plan plan{spec_of(c)};
  ProductSpec spec;
  std::vector<std::vector<float>> memory;

  explicit Problem(const Shape& s) {
    const std::int64_t b_rows = s.rhs == Rhs::n_by_k ? s.n : s.k;
    const std::int64_t b_cols = s.rhs == Rhs::n_by_k ? s.k : s.n;
    spec = {.name = "product",
            .a = operand("a", s.m, s.k, s, 1),
            .b = operand("b", b_rows, b_cols, s, s.group),
            .c = operand("c", s.m, s.n, s, 1),
            .rhs = s.rhs,
            .m = s.m,
            .n = s.n,
            .k = s.k,
            .batches = s.batches,
            .heads = s.heads,
            .alpha = 0.5F};
    if (s.residual) spec.residual = operand("residual", s.m, s.n, s, 1).tensor;
    for (std::size_t id = 0; id < plan.tensors().size(); ++id) {
      std::vector<float>& values = memory.emplace_back(static_cast<std::size_t>(plan.tensors()[id].bytes() / 4));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(31 * id + i));
    }
  }

  Operand operand(const std::string& name, std::int64_t rows, std::int64_t cols, const Shape& s, std::int64_t group) {
    const std::int64_t stride = cols + 3;
    const std::int64_t head_stride = rows * stride + 5;
    const std::int64_t batch_stride = s.heads / group * head_stride + 7;
    return {.tensor = plan.workspace(name, DType::fp32, 1, 11 + s.batches * batch_stride),
            .offset = 11,
            .stride = stride,
            .batch_stride = batch_stride,
            .head_stride = head_stride,
            .group = group};
  }

  float& at(const Operand& operand, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t col) {
    return memory[static_cast<std::size_t>(operand.tensor)]
                 [static_cast<std::size_t>(operand.offset + b * operand.batch_stride +
                                           h / operand.group * operand.head_stride + row * operand.stride + col)];
  }

  Planning planning() { return {.plan = plan, .c = c, .target = target}; }

  void launch() {
    std::vector<void*> addresses;
    for (std::vector<float>& values : memory) addresses.push_back(values.data());
    for (const Step& step : plan.steps()) step.launch({}, Bindings(addresses));
  }
};

void by_loops(Problem& p) {
  const ProductSpec& s = p.spec;
  for (std::int64_t b = 0; b < s.batches; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < s.k; ++l) {
            const float right = s.rhs == Rhs::n_by_k ? p.at(s.b, b, h, j, l) : p.at(s.b, b, h, l, j);
            sum += static_cast<double>(p.at(s.a, b, h, i, l)) * right;
          }
          Operand residual = s.c;
          if (s.residual) residual.tensor = *s.residual;
          const double added = s.residual ? p.at(residual, b, h, i, j) : 0;
          p.at(s.c, b, h, i, j) = static_cast<float>(s.alpha * sum + added);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("Eigen's product against plain loops: strides, batches, groups, tiles", "[product]") {
  for (const Shape& shape :
       {Shape{3, 5, 7, 1, 1, 1, Rhs::n_by_k, false}, Shape{3, 5, 7, 1, 1, 1, Rhs::n_by_k, true},
        Shape{1, 300, 20, 1, 1, 1, Rhs::n_by_k, true}, Shape{257, 259, 9, 1, 1, 1, Rhs::k_by_n, true},
        Shape{4, 6, 5, 3, 4, 2, Rhs::n_by_k, false}, Shape{4, 6, 5, 3, 4, 4, Rhs::k_by_n, false},
        Shape{1, 1, 1, 2, 2, 1, Rhs::k_by_n, false}}) {
    Problem got(shape);
    Problem expected(shape);
    add_product(got.planning(), got.spec);
    got.launch();
    by_loops(expected);
    INFO(shape.m << " x " << shape.n << " x " << shape.k << ", " << shape.batches << " x " << shape.heads);
    for (std::size_t id = 0; id < got.memory.size(); ++id) {  // gaps included: they must not change
      for (std::size_t i = 0; i < got.memory[id].size(); ++i) {
        if (std::abs(got.memory[id][i] - expected.memory[id][i]) > 1e-4F) {
          FAIL("tensor " << got.plan.tensors()[id].name << " at " << i << ": " << got.memory[id][i] << ", not "
                         << expected.memory[id][i]);
        }
      }
    }
  }
}

TEST_CASE("a product's ledger counts each distinct matrix once", "[product]") {
  Problem p({4, 6, 5, 3, 4, 2, Rhs::n_by_k, false});
  add_product(p.planning(), p.spec);
  const Step& step = p.plan.steps().front();
  REQUIRE(step.reads.size() == 2);
  CHECK(step.reads[0].bytes == 12 * 4 * 5 * 4);
  CHECK(step.reads[1].bytes == 6 * 6 * 5 * 4);
  CHECK(step.writes[0].bytes == 12 * 4 * 6 * 4);
  CHECK(step.flops == 12 * 2 * 4 * 6 * 5);
}

TEST_CASE("the levels of a batch reach every matrix, in order", "[product]") {
  for (const std::int64_t batches : {1, 3}) {
    for (const std::int64_t group : {1, 2, 4}) {
      for (const bool dense : {false, true}) {
        Problem p({2, 3, 4, batches, 4, group, Rhs::n_by_k, false});
        ProductSpec spec = p.spec;
        if (dense) {
          for (Operand* operand : {&spec.a, &spec.b, &spec.c}) {
            operand->batch_stride = spec.heads / operand->group * operand->head_stride;
          }
        }
        std::vector<std::array<std::int64_t, 3>> offsets = {{0, 0, 0}};
        const std::vector<BatchLevel> levels = batch_levels(spec);
        for (const BatchLevel& level : levels) {
          std::vector<std::array<std::int64_t, 3>> inner;
          for (const auto& [a, b, c] : offsets) {
            for (std::int64_t i = 0; i < level.extent; ++i) {
              inner.push_back({a + i * level.a_stride, b + i * level.b_stride, c + i * level.c_stride});
            }
          }
          offsets = inner;
        }
        std::vector<std::array<std::int64_t, 3>> expected;
        for (std::int64_t b = 0; b < batches; ++b) {
          for (std::int64_t h = 0; h < spec.heads; ++h) {
            const auto of = [&](const Operand& o) { return b * o.batch_stride + h / o.group * o.head_stride; };
            expected.push_back({of(spec.a), of(spec.b), of(spec.c)});
          }
        }
        INFO("batches " << batches << ", group " << group << ", dense " << dense);
        CHECK(offsets == expected);
        if (group == 1 && (dense || batches == 1)) CHECK(levels.size() == 1);
        if (group == 2 && dense && batches == 3) CHECK(levels.size() == 2);
      }
    }
  }
  Problem single({2, 3, 4, 1, 1, 1, Rhs::n_by_k, false});
  CHECK(batch_levels(single.spec).empty());
}

TEST_CASE("a product that contradicts itself is refused", "[product]") {
  const auto refused = [](void (*spoil)(ProductSpec&)) {
    Problem p({2, 3, 4, 1, 4, 2, Rhs::n_by_k, false});
    spoil(p.spec);
    CHECK_THROWS_AS(add_product(p.planning(), p.spec), std::logic_error);
    CHECK(p.plan.steps().empty());
  };
  refused([](ProductSpec& spec) { spec.b.group = 3; });
  refused([](ProductSpec& spec) { spec.c.group = 2; });
  refused([](ProductSpec& spec) { spec.a.group = 4; });
  refused([](ProductSpec& spec) { spec.residual = spec.c.tensor; });
}
