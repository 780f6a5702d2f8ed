// CPU products: the naive one, and the fused ones with their epilogues on prepared weights, against loops in double.
#include <stdexcept>

#include "kernels/fused.h"
#include "kernels/primitives.h"
#include "tests/cpu_kernels.h"

namespace fusebench::cpu_test {
namespace {

using kernels::cpu_fused;
using kernels::cpu_primitives;
using kernels::GemmKernel;
using kernels::QkvShape;

constexpr DType fp32 = DType::fp32;

struct Extent {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};
// Around the tiles of 128 x 256, and single rows, columns and depths.
const std::vector<Extent> extents{{1, 1, 1},      {1, 259, 127}, {1, 512, 1031}, {7, 13, 17},   {127, 255, 31},
                                  {128, 256, 64}, {129, 258, 1}, {300, 515, 7},  {33, 1, 2000}, {257, 3, 100}};

// A weight whose products with normal values are about normal.
Floats draw_weight(std::int64_t rows, std::int64_t k, std::uint64_t seed) {
  return draw(rows * k, seed, 1.0F / std::sqrt(static_cast<float>(k)));
}

Floats merged_product(const Extent& e, const Floats& a, const Floats& b, RowMap map, std::int64_t c_rows) {
  Floats c(c_rows * e.n, 99.0F);
  cpu_primitives().product(exec, fp32, a.data(), b.data(), c.data(), e.m, e.n, e.k, map);
  return c;
}

struct QkvCase {
  QkvShape shape;
  Floats a;
  Floats wq;
  Floats wk;
  Floats wv;
  Floats cos;
  Floats sin;
};

QkvCase draw_qkv(std::int64_t batch, std::int64_t seq, std::int64_t past, std::int64_t dim, std::int64_t heads,
                 std::int64_t kv_heads, std::int64_t head_dim, Pairing pairing) {
  return {.shape = {.rows = batch * seq,
                    .dim = dim,
                    .heads = heads,
                    .kv_heads = kv_heads,
                    .head_dim = head_dim,
                    .seq = seq,
                    .kv_rows = {.seq = seq, .capacity = past + seq, .past = past},
                    .pairing = pairing},
          .a = draw(batch * seq * dim, 21),
          .wq = draw_weight(heads * head_dim, dim, 22),
          .wk = draw_weight(kv_heads * head_dim, dim, 23),
          .wv = draw_weight(kv_heads * head_dim, dim, 24),
          .cos = draw(seq * head_dim / 2, 25),
          .sin = draw(seq * head_dim / 2, 26)};
}

struct Qkv {
  Floats q;
  Floats k;
  Floats v;
};

Qkv fused_qkv(const QkvCase& c) {
  const QkvShape& shape = c.shape;
  Floats prepared(shape.columns() * shape.dim);
  cpu_fused().prepare_qkv(exec, GemmKernel::cpu, fp32, c.wq.data(), c.wk.data(), c.wv.data(), prepared.data(), shape);
  REQUIRE(prepared.guards_intact());
  const std::int64_t kv_size = shape.rows / shape.seq * shape.kv_rows.capacity * shape.kv_heads * shape.head_dim;
  Qkv out{Floats(shape.rows * shape.heads * shape.head_dim), Floats(kv_size, 99.0F), Floats(kv_size, 99.0F)};
  cpu_fused().product_rope(exec, GemmKernel::cpu, fp32, c.a.data(), prepared.data(), c.cos.data(), c.sin.data(),
                           out.q.data(), out.k.data(), out.v.data(), shape, {});
  return out;
}

// The rows of x at their places in a cache that holds 99 elsewhere.
Doubles in_cache(const QkvShape& shape, const Doubles& x) {
  const std::int64_t cols = shape.kv_heads * shape.head_dim;
  const RowMap& map = shape.kv_rows;
  Doubles cache(static_cast<std::size_t>(shape.rows / shape.seq * map.capacity * cols), 99.0);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t to = row / shape.seq * map.capacity + map.past + row % shape.seq;
    std::copy_n(x.begin() + row * cols, cols, cache.begin() + to * cols);
  }
  return cache;
}

}  // namespace

TEST_CASE("CPU product") {
  for (const Extent& e : extents) {
    INFO(e.m << " x " << e.n << " x " << e.k);
    const Floats a = draw(e.m * e.k, 1);
    const Floats b = draw_weight(e.n, e.k, 2);
    const Floats c = merged_product(e, a, b, {.seq = e.m, .capacity = e.m}, e.m);
    require_close(c, expected_product(a, b, e.m, e.n, e.k), 2e-6);
  }
}

TEST_CASE("CPU product writes the mapped rows and nothing else") {
  const Extent e{.m = 6, .n = 5, .k = 9};
  const Floats a = draw(e.m * e.k, 3);
  const Floats b = draw_weight(e.n, e.k, 4);
  const Doubles dense = expected_product(a, b, e.m, e.n, e.k);
  Doubles expected(14 * 5, 99.0);
  for (std::int64_t row = 0; row < e.m; ++row) {
    std::copy_n(dense.begin() + row * e.n, e.n, expected.begin() + (row / 3 * 7 + 4 + row % 3) * e.n);
  }
  require_close(merged_product(e, a, b, {.seq = 3, .capacity = 7, .past = 4}, 14), expected, 2e-6);
}

TEST_CASE("CPU product with a residual") {
  for (const Extent& e : extents) {
    INFO(e.m << " x " << e.n << " x " << e.k);
    const Floats a = draw(e.m * e.k, 5);
    const Floats b = draw_weight(e.n, e.k, 6);
    const Floats residual = draw(e.m * e.n, 7);
    Floats out(e.m * e.n);
    cpu_fused().product_residual(exec, GemmKernel::cpu, fp32, a.data(), b.data(), residual.data(), out.data(), e.m, e.n,
                                 e.k, nullptr);
    Doubles expected = expected_product(a, b, e.m, e.n, e.k);
    for (std::int64_t i = 0; i < out.size(); ++i) {
      expected[static_cast<std::size_t>(i)] += static_cast<double>(residual[i]);
    }
    require_close(out, expected, 2e-6);
  }
}

TEST_CASE("CPU product with SwiGLU") {
  for (const Extent& e : extents) {
    INFO(e.m << " x " << e.n << " x " << e.k);
    const Floats a = draw(e.m * e.k, 8);
    const Floats gate = draw_weight(e.n, e.k, 9);
    const Floats up = draw_weight(e.n, e.k, 10);
    Floats prepared(2 * e.n * e.k);
    cpu_fused().prepare_gate_up(exec, fp32, gate.data(), up.data(), prepared.data(), e.n, e.k);
    REQUIRE(prepared.guards_intact());
    Floats y(e.m * e.n);
    cpu_fused().product_swiglu(exec, GemmKernel::cpu, fp32, a.data(), prepared.data(), y.data(), e.m, e.n, e.k, {});
    Doubles expected = expected_product(a, gate, e.m, e.n, e.k);
    const Doubles factor = expected_product(a, up, e.m, e.n, e.k);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = silu(expected[i]) * factor[i];
    require_close(y, expected, 4e-6);
  }
}

TEST_CASE("CPU product with RoPE") {
  const Pairing pairing = GENERATE(Pairing::interleaved, Pairing::half);
  const QkvCase c = GENERATE_COPY(values({draw_qkv(1, 1, 0, 5, 1, 1, 2, pairing),      //
                                          draw_qkv(2, 7, 0, 36, 6, 3, 6, pairing),     //
                                          draw_qkv(3, 1, 5, 64, 6, 3, 80, pairing),    //
                                          draw_qkv(2, 67, 3, 31, 3, 1, 256, pairing),  //
                                          draw_qkv(1, 129, 0, 16, 5, 5, 30, pairing)}));
  const QkvShape& s = c.shape;
  INFO("rows " << s.rows << ", head_dim " << s.head_dim);
  const Qkv got = fused_qkv(c);
  const Doubles q = expected_product(c.a, c.wq, s.rows, s.heads * s.head_dim, s.dim);
  const Doubles k = expected_product(c.a, c.wk, s.rows, s.kv_heads * s.head_dim, s.dim);
  const Doubles v = expected_product(c.a, c.wv, s.rows, s.kv_heads * s.head_dim, s.dim);
  require_close(got.q, expected_rope(q, c.cos, c.sin, pairing, s.heads, s.head_dim, s.seq), 4e-6);
  require_close(got.k, in_cache(s, expected_rope(k, c.cos, c.sin, pairing, s.kv_heads, s.head_dim, s.seq)), 4e-6);
  require_close(got.v, in_cache(s, v), 4e-6);
}

TEST_CASE("CPU preparation puts a RoPE pair's weights side by side") {
  const QkvCase c = draw_qkv(1, 1, 0, 1, 1, 1, 6, Pairing::half);
  Floats prepared(18);
  cpu_fused().prepare_qkv(exec, GemmKernel::cpu, fp32, c.wq.data(), c.wk.data(), c.wv.data(), prepared.data(), c.shape);
  Doubles expected;
  for (const Floats* weight : {&c.wq, &c.wk}) {
    for (const int row : {0, 3, 1, 4, 2, 5}) expected.push_back(static_cast<double>((*weight)[row]));
  }
  for (int row = 0; row < 6; ++row) expected.push_back(static_cast<double>(c.wv[row]));
  require_close(prepared, expected, 0);
}

TEST_CASE("CPU products give the same bits on any number of threads") {
  const Extent e{.m = 300, .n = 515, .k = 129};
  const Floats a = draw(e.m * e.k, 11);
  const Floats b = draw_weight(2 * e.n, e.k, 12);
  const Floats residual = draw(e.m * e.n, 13);
  const QkvCase qkv = draw_qkv(2, 67, 3, 31, 6, 3, 80, Pairing::half);
  require_same_on_any_threads([&] {
    Floats out(e.m * e.n);
    Floats y(e.m * e.n);
    cpu_fused().product_residual(exec, GemmKernel::cpu, fp32, a.data(), b.data(), residual.data(), out.data(), e.m, e.n,
                                 e.k, nullptr);
    cpu_fused().product_swiglu(exec, GemmKernel::cpu, fp32, a.data(), b.data(), y.data(), e.m, e.n, e.k, {});
    const Qkv projected = fused_qkv(qkv);
    return std::vector<Floats>{
        merged_product(e, a, b, {.seq = e.m, .capacity = e.m}, e.m), out, y, projected.q, projected.k, projected.v};
  });
}

TEST_CASE("CPU products pass NaN on and refuse what is not theirs") {
  Floats a(3, 1.0F);
  a[1] = nan;
  const Floats b(3, 1.0F);
  Floats out(1);
  const float residual = 1.0F;
  cpu_fused().product_residual(exec, GemmKernel::cpu, fp32, a.data(), b.data(), &residual, out.data(), 1, 1, 3,
                               nullptr);
  REQUIRE(std::isnan(out[0]));
  const auto& fused = cpu_fused();
  float* p = out.data();
  REQUIRE_THROWS_AS(fused.product_residual(exec, GemmKernel::portable, fp32, p, p, p, p, 1, 1, 1, nullptr),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(fused.product_residual(exec, GemmKernel::cpu, fp32, p, p, p, p, 1, 1, 1, p), std::invalid_argument);
  REQUIRE_THROWS_AS(fused.product_swiglu(exec, GemmKernel::cpu, fp32, p, p, p, 1, 1, 1, {.squares = p}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(fused.product_rope(exec, GemmKernel::cpu, fp32, p, p, p, p, p, p, p, {}, {}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(cpu_primitives().product(exec, DType::bf16, p, p, p, 1, 1, 1, {}), std::invalid_argument);
}

}  // namespace fusebench::cpu_test
