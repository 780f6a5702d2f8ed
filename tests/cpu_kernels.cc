// The CPU kernels that have no product, each table entry against plain loops in double.
#include "tests/cpu_kernels.h"

#include <stdexcept>

#include "kernels/elementwise.h"
#include "kernels/fused.h"
#include "kernels/primitives.h"

namespace fusebench::cpu_test {
namespace {

using kernels::cpu_elementwise;
using kernels::cpu_fused;
using kernels::cpu_primitives;

constexpr DType fp32 = DType::fp32;
constexpr float eps = 1e-5F;

struct Extent {
  std::int64_t rows;
  std::int64_t cols;
};
const std::vector<Extent> extents{{1, 1}, {1, 16384}, {3, 17}, {7, 4093}, {1031, 5}, {64, 256}};

Doubles expected_rmsnorm(const Floats& x, const Floats& weight, std::int64_t rows, std::int64_t cols) {
  Doubles y;
  for (std::int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) squares += std::pow(static_cast<double>(x[i]), 2);
    const double rms = std::sqrt(squares / static_cast<double>(cols) + static_cast<double>(eps));
    for (std::int64_t col = 0; col < cols; ++col) {
      y.push_back(static_cast<double>(x[row * cols + col]) / rms * static_cast<double>(weight[col]));
    }
  }
  return y;
}

Floats naive_rmsnorm(const Floats& x, const Floats& weight, std::int64_t rows, std::int64_t cols) {
  const auto& steps = cpu_primitives();
  Floats squares(rows * cols);
  Floats mean(rows);
  Floats rstd(rows);
  Floats scaled(rows * cols);
  Floats y(rows * cols);
  steps.square(exec, fp32, x.data(), squares.data(), rows * cols);
  steps.row_mean(exec, squares.data(), mean.data(), rows, cols);
  steps.rsqrt_eps(exec, mean.data(), eps, rstd.data(), rows);
  steps.scale_rows(exec, fp32, x.data(), rstd.data(), scaled.data(), rows, cols);
  steps.scale_columns(exec, fp32, scaled.data(), weight.data(), y.data(), rows, cols);
  for (const Floats* step : {&squares, &mean, &rstd, &scaled}) REQUIRE(step->guards_intact());
  return y;
}

Floats elementwise_rmsnorm(const Floats& x, const Floats& weight, std::int64_t rows, std::int64_t cols) {
  Floats y(rows * cols);
  cpu_elementwise().rmsnorm(exec, fp32, x.data(), weight.data(), eps, y.data(), rows, cols);
  return y;
}

Floats fused_rmsnorm(const Floats& x, const Floats& weight, std::int64_t rows, std::int64_t cols) {
  Floats y(rows * cols);
  cpu_fused().rmsnorm(exec, fp32, x.data(), weight.data(), eps, y.data(), rows, cols);
  return y;
}

const std::vector<decltype(&naive_rmsnorm)> rmsnorms{naive_rmsnorm, elementwise_rmsnorm, fused_rmsnorm};

}  // namespace

TEST_CASE("CPU sums, differences, products and squares") {
  const std::int64_t n = GENERATE(1, 17, 100003);
  const Floats a = draw(n, 1);
  const Floats b = draw(n, 2);
  const auto& steps = cpu_primitives();
  const auto check = [&](auto entry, auto expected_of) {
    Floats out(n);
    entry(out.data());
    Doubles expected;
    for (std::int64_t i = 0; i < n; ++i) {
      expected.push_back(expected_of(static_cast<double>(a[i]), static_cast<double>(b[i])));
    }
    require_close(out, expected, 1e-7);
  };
  const auto sum = [](double x, double y) { return x + y; };
  check([&](float* out) { steps.add(exec, fp32, a.data(), b.data(), out, n); }, sum);
  check([&](float* out) { cpu_elementwise().add(exec, fp32, a.data(), b.data(), out, n); }, sum);
  check([&](float* out) { steps.subtract(exec, fp32, a.data(), b.data(), out, n); },
        [](double x, double y) { return x - y; });
  check([&](float* out) { steps.multiply(exec, fp32, a.data(), b.data(), out, n); },
        [](double x, double y) { return x * y; });
  check([&](float* out) { steps.square(exec, fp32, a.data(), out, n); }, [](double x, double) { return x * x; });

  Floats in_place = a;
  cpu_elementwise().add(exec, fp32, in_place.data(), b.data(), in_place.data(), n);
  Floats apart(n);
  cpu_elementwise().add(exec, fp32, a.data(), b.data(), apart.data(), n);
  REQUIRE(in_place == apart);
}

TEST_CASE("CPU rmsnorm") {
  for (const auto& [rows, cols] : extents) {
    const Floats x = draw(rows * cols, 3);
    const Floats weight = draw(cols, 4);
    for (const auto rmsnorm : rmsnorms) {
      require_close(rmsnorm(x, weight, rows, cols), expected_rmsnorm(x, weight, rows, cols), 1e-6);
    }
  }
}

TEST_CASE("CPU rmsnorm of a zero row, of one huge value among zeros, of large values") {
  constexpr std::int64_t cols = 37;
  Floats x(3 * cols, 0.0F);
  x[cols + 5] = 1e18F;
  std::fill_n(x.data() + 2 * cols, cols, 300.0F);
  const Floats weight = draw(cols, 5);
  for (const auto rmsnorm : rmsnorms) {
    require_close(rmsnorm(x, weight, 3, cols), expected_rmsnorm(x, weight, 3, cols), 1e-6);
  }
}

TEST_CASE("CPU rmsnorm in one pass holds squares that fp32 cannot") {
  Floats x = draw(2 * 33, 6, 1e20F);
  x[33] = -3e37F;
  const Floats weight = draw(33, 7);
  for (const auto rmsnorm : {elementwise_rmsnorm, fused_rmsnorm}) {
    require_close(rmsnorm(x, weight, 2, 33), expected_rmsnorm(x, weight, 2, 33), 1e-6);
  }
}

TEST_CASE("CPU add_rmsnorm stores the sum and normalises what it stored") {
  for (const auto& [rows, cols] : extents) {
    const Floats x = draw(rows * cols, 8);
    const Floats r = draw(rows * cols, 9);
    const Floats weight = draw(cols, 10);
    Floats sum(rows * cols);
    cpu_primitives().add(exec, fp32, x.data(), r.data(), sum.data(), rows * cols);
    Floats h(rows * cols);
    Floats y(rows * cols);
    cpu_fused().add_rmsnorm(exec, fp32, x.data(), r.data(), weight.data(), eps, h.data(), y.data(), rows, cols);
    REQUIRE(h == sum);
    require_close(y, expected_rmsnorm(sum, weight, rows, cols), 1e-6);
  }
}

TEST_CASE("CPU rope") {
  const Pairing pairing = GENERATE(Pairing::interleaved, Pairing::half);
  const std::int64_t d = GENERATE(2, 6, 80, 256);
  constexpr std::int64_t batch = 2;
  constexpr std::int64_t seq = 7;
  constexpr std::int64_t heads = 6;
  constexpr std::int64_t kv_heads = 3;
  constexpr std::int64_t rows = batch * seq;
  const Floats q = draw(rows * heads * d, 11);
  const Floats k = draw(rows * kv_heads * d, 12);
  const Floats cos = draw(seq * d / 2, 13);
  const Floats sin = draw(seq * d / 2, 14);
  const Doubles expected_q = expected_rope(widened(q), cos, sin, pairing, heads, d, seq);
  const Doubles expected_k = expected_rope(widened(k), cos, sin, pairing, kv_heads, d, seq);

  SECTION("fused, q and k together") {
    Floats q_out(q.size());
    Floats k_out(k.size());
    cpu_fused().rope(exec, fp32, pairing, q.data(), k.data(), cos.data(), sin.data(), q_out.data(), k_out.data(), rows,
                     heads, kv_heads, d, seq);
    require_close(q_out, expected_q, 1e-6);
    require_close(k_out, expected_k, 1e-6);
  }
  SECTION("elementwise, from rows that are further apart") {
    const std::int64_t stride = heads * d + 3;
    Floats wide(rows * stride);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(q.data() + row * heads * d, heads * d, wide.data() + row * stride);
    }
    Floats out(q.size());
    cpu_elementwise().rope(exec, fp32, pairing, wide.data(), stride, cos.data(), sin.data(), out.data(), rows, heads, d,
                           seq, {.seq = seq, .capacity = seq});
    require_close(out, expected_q, 1e-6);
  }
  SECTION("naive, step by step into a cache that holds tokens already") {
    constexpr std::int64_t past = 4;
    const auto& steps = cpu_primitives();
    const std::int64_t n = rows * kv_heads * d / 2;
    std::vector<Floats> parts(8, Floats(n));
    Floats& first = parts[0];
    Floats& second = parts[1];
    Floats& first_cos = parts[2];
    Floats& first_sin = parts[3];
    Floats& second_cos = parts[4];
    Floats& second_sin = parts[5];
    Floats& a = parts[6];
    Floats& b = parts[7];
    steps.split_pairs(exec, fp32, pairing, k.data(), first.data(), second.data(), rows, kv_heads, d / 2);
    steps.multiply_by_phase(exec, fp32, first.data(), cos.data(), first_cos.data(), rows, kv_heads, d / 2, seq);
    steps.multiply_by_phase(exec, fp32, first.data(), sin.data(), first_sin.data(), rows, kv_heads, d / 2, seq);
    steps.multiply_by_phase(exec, fp32, second.data(), cos.data(), second_cos.data(), rows, kv_heads, d / 2, seq);
    steps.multiply_by_phase(exec, fp32, second.data(), sin.data(), second_sin.data(), rows, kv_heads, d / 2, seq);
    steps.subtract(exec, fp32, first_cos.data(), second_sin.data(), a.data(), n);
    steps.add(exec, fp32, first_sin.data(), second_cos.data(), b.data(), n);
    for (const Floats& part : parts) REQUIRE(part.guards_intact());
    Floats cache(batch * (past + seq) * kv_heads * d, 99.0F);
    steps.merge_pairs(exec, fp32, pairing, a.data(), b.data(), cache.data(), rows, kv_heads, d / 2,
                      {.seq = seq, .capacity = past + seq, .past = past});
    Doubles expected(static_cast<std::size_t>(cache.size()), 99.0);
    for (std::int64_t i = 0; i < batch; ++i) {
      std::copy_n(expected_k.begin() + i * seq * kv_heads * d, seq * kv_heads * d,
                  expected.begin() + (i * (past + seq) + past) * kv_heads * d);
    }
    require_close(cache, expected, 1e-6);
  }
}

TEST_CASE("CPU copy_rows writes the mapped rows and nothing else") {
  constexpr std::int64_t cols = 5;
  const RowMap map{.seq = 3, .capacity = 7, .past = 4};
  const Floats x = draw(6 * 8, 15);
  Floats out(14 * 9, 99.0F);
  cpu_elementwise().copy_rows(exec, fp32, x.data(), 8, out.data(), 9, 6, cols, map);
  Doubles expected(14 * 9, 99.0);
  for (std::int64_t row = 0; row < 6; ++row) {
    const std::int64_t to = row / 3 * 7 + 4 + row % 3;
    for (std::int64_t col = 0; col < cols; ++col) {
      expected[static_cast<std::size_t>(to * 9 + col)] = static_cast<double>(x[row * 8 + col]);
    }
  }
  require_close(out, expected, 0);
}

TEST_CASE("CPU swiglu, hostile gates included") {
  constexpr std::int64_t rows = 5;
  constexpr std::int64_t cols = 37;
  Floats g = draw(rows * cols, 16, 4.0F);
  const Floats u = draw(rows * cols, 17);
  const std::vector<float> hostile{-infinity, -1e4F, -65504.0F, 65504.0F, 1e-40F, -1e-40F, -90.0F, -0.0F, 0.0F, -3e38F};
  std::copy(hostile.begin(), hostile.end(), g.data());
  g[100] = nan;
  Doubles expected;
  for (std::int64_t i = 0; i < g.size(); ++i)
    expected.push_back(silu(static_cast<double>(g[i])) * static_cast<double>(u[i]));

  Floats fused(g.size());
  cpu_fused().swiglu(exec, fp32, g.data(), u.data(), fused.data(), g.size());
  require_close(fused, expected, 1e-6);
  REQUIRE(std::abs(static_cast<double>(fused[6]) / expected[6] - 1) < 1e-5);  // silu(-90) is 1e-37, not 0

  Floats sigmoid(g.size());
  Floats gated(g.size());
  Floats naive(g.size());
  cpu_primitives().sigmoid(exec, fp32, g.data(), sigmoid.data(), g.size());
  cpu_primitives().gate(exec, fp32, g.data(), sigmoid.data(), gated.data(), g.size());
  cpu_primitives().multiply(exec, fp32, gated.data(), u.data(), naive.data(), g.size());
  REQUIRE(sigmoid.guards_intact());
  require_close(naive, expected, 1e-6);

  const std::int64_t stride = 2 * cols + 1;  // gate and up side by side, as a merged product leaves them
  Floats wide(rows * stride);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(g.data() + row * cols, cols, wide.data() + row * stride);
    std::copy_n(u.data() + row * cols, cols, wide.data() + row * stride + cols);
  }
  Floats rowwise(g.size());
  cpu_elementwise().swiglu(exec, fp32, wide.data(), wide.data() + cols, stride, rowwise.data(), rows, cols);
  require_close(rowwise, expected, 1e-6);
}

TEST_CASE("CPU norms, rope and swiglu give the same bits on any number of threads") {
  constexpr std::int64_t rows = 131;
  constexpr std::int64_t cols = 1030;
  const Floats x = draw(rows * cols, 18);
  const Floats r = draw(rows * cols, 19);
  const Floats weight = draw(cols, 20);
  require_same_on_any_threads([&] {
    std::vector<Floats> results;
    for (const auto rmsnorm : rmsnorms) results.push_back(rmsnorm(x, weight, rows, cols));
    Floats h(x.size());
    Floats y(x.size());
    cpu_fused().add_rmsnorm(exec, fp32, x.data(), r.data(), weight.data(), eps, h.data(), y.data(), rows, cols);
    Floats gated(x.size());
    cpu_fused().swiglu(exec, fp32, x.data(), r.data(), gated.data(), x.size());
    Floats rotated(x.size());
    cpu_elementwise().rope(exec, fp32, Pairing::half, x.data(), cols, r.data(), x.data(), rotated.data(), rows, 5, 206,
                           rows, {.seq = rows, .capacity = rows});
    results.insert(results.end(), {h, y, gated, rotated});
    return results;
  });
}

TEST_CASE("CPU kernels refuse other dtypes") {
  const DType dtype = GENERATE(DType::fp16, DType::bf16);
  Floats x(4, 1.0F);
  float* p = x.data();
  REQUIRE_THROWS_AS(cpu_primitives().add(exec, dtype, p, p, p, 4), std::invalid_argument);
  REQUIRE_THROWS_AS(cpu_primitives().row_sum(exec, dtype, p, p, 1, 4), std::invalid_argument);
  REQUIRE_THROWS_AS(cpu_elementwise().rmsnorm(exec, dtype, p, p, eps, p, 1, 4), std::invalid_argument);
  REQUIRE_THROWS_AS(cpu_fused().swiglu(exec, dtype, p, p, p, 4), std::invalid_argument);
  REQUIRE_THROWS_AS(cpu_fused().product_swiglu(exec, kernels::GemmKernel::cpu, dtype, p, p, p, 1, 1, 1, {}),
                    std::invalid_argument);
}

}  // namespace fusebench::cpu_test
