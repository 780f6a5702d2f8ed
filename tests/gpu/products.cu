// The fused products against their formulas in double: residual, RoPE with a KV cache, SwiGLU, and the preparation of
// their weights.
#include "kernels/fused_cuda.h"

#include <array>

#include "tests/catch.h"
#include "tests/gpu/hopper_cases.h"
#include "tests/gpu/product.h"

namespace {

using namespace fusebench;
using namespace fusebench::testing;
using kernels::GemmKernel;
using kernels::ProductKernel;
using kernels::QkvShape;

const Exec exec{Backend::cuda, nullptr};

std::int64_t offset_for(GemmKernel kernel) { return kernel == GemmKernel::portable_unaligned ? 1 : 0; }

/// Those for aligned operands and n columns.
std::vector<GemmKernel> aligned_kernels(std::int64_t n) {
  std::vector<GemmKernel> kernels = {GemmKernel::portable};
  if (has_hopper() && n % 32 == 0) kernels.push_back(GemmKernel::hopper);
  return kernels;
}

template <typename T>
void check_residual(GemmKernel kernel, std::int64_t m, std::int64_t n, std::int64_t k, bool in_place = false) {
  CAPTURE(m, n, k, in_place, name_of(Format<T>::dtype), static_cast<int>(kernel));
  const std::int64_t offset = offset_for(kernel);
  const std::vector<T> a = draw<T>(m * k, 1), weight = draw<T>(n * k, 2), residual = draw<T>(m * n, 3, 4.0);
  const DeviceBuffer<T> device_a(a, offset), device_weight(weight, offset), device_residual(residual, offset);
  DeviceBuffer<T> out =
      in_place ? DeviceBuffer<T>(residual, offset, output_guard) : DeviceBuffer<T>(m * n, offset, output_guard);
  kernels::cuda::product_residual(exec, kernel, Format<T>::dtype, device_a.data(), device_weight.data(),
                                  in_place ? out.data() : device_residual.data(), out.data(), m, n, k, nullptr);
  Product expected = product(a, weight, m, n, k);
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    expected.value[i] += to_double(residual[i]);
    expected.slack[i] += std::abs(expected.value[i]) * 0x1p-24;
  }
  CHECK(mismatch(out.read(), expected.value, expected.slack) == "");
  CHECK(out.guards_intact());
}

template <typename T>
std::vector<T> gate_up_interleaved(const std::vector<T>& gate, const std::vector<T>& up, std::int64_t k) {
  std::vector<T> rows;
  for (auto row = gate.begin(), other = up.begin(); row != gate.end(); row += k, other += k) {
    rows.insert(rows.end(), row, row + k);
    rows.insert(rows.end(), other, other + k);
  }
  return rows;
}

double silu(double x) { return std::isinf(x) && x < 0 ? 0.0 : x / (1.0 + std::exp(-x)); }

template <typename T>
void check_swiglu(GemmKernel kernel, const std::vector<T>& a, const std::vector<T>& gate, const std::vector<T>& up,
                  std::int64_t m, std::int64_t hidden, std::int64_t k) {
  CAPTURE(m, hidden, k, name_of(Format<T>::dtype), static_cast<int>(kernel));
  const std::int64_t offset = offset_for(kernel);
  const DeviceBuffer<T> device_a(a, offset), prepared(gate_up_interleaved(gate, up, k), offset);
  DeviceBuffer<T> y(m * hidden, offset, output_guard);
  kernels::cuda::product_swiglu(exec, kernel, Format<T>::dtype, device_a.data(), prepared.data(), y.data(), m, hidden,
                                k, {});
  const Product g = product(a, gate, m, hidden, k), u = product(a, up, m, hidden, k);
  std::vector<double> expected, slack;
  for (std::size_t i = 0; i < g.value.size(); ++i) {
    const double activated = silu(g.value[i]);
    expected.push_back(activated * u.value[i]);
    const double gate_slack = std::isinf(g.value[i]) ? 0.0 : 1.1 * g.slack[i];  // |silu'| < 1.1
    const double exp_slack =
        std::isinf(g.value[i]) ? 0.0 : (1.0 + std::abs(g.value[i])) * 0x1p-22 * std::abs(expected.back());
    slack.push_back(gate_slack * std::abs(u.value[i]) + std::abs(activated) * u.slack[i] + exp_slack);
  }
  CHECK(mismatch(y.read(), expected, slack) == "");
  CHECK(y.guards_intact());
}

template <typename T>
void check_swiglu(GemmKernel kernel, std::int64_t m, std::int64_t hidden, std::int64_t k) {
  check_swiglu(kernel, draw<T>(m * k, 1), draw<T>(hidden * k, 2), draw<T>(hidden * k, 3), m, hidden, k);
}

struct QkvCase {
  std::int64_t batch, seq, past, dim, heads, kv_heads, head_dim;

  QkvShape shape(Pairing pairing) const {
    return {batch * seq, dim, heads, kv_heads, head_dim, seq, {seq, past + seq, past}, pairing};
  }
};

struct Expected {
  std::vector<double> value, slack;
};

/// One of q, k, v in its own rows [rows, heads, head_dim], rotated or not.
Expected rotated(const Product& x, const std::vector<float>& cos, const std::vector<float>& sin, bool rotate,
                 const QkvShape& shape) {
  const std::int64_t d = shape.head_dim, half = d / 2;
  Expected result{x.value, x.slack};
  if (!rotate) return result;
  for (std::int64_t row = 0; row < x.m; ++row) {
    for (std::int64_t head = 0; head < x.n / d; ++head) {
      for (std::int64_t i = 0; i < half; ++i) {
        const bool halves = shape.pairing == Pairing::half;
        const std::int64_t first = head * d + (halves ? i : 2 * i), second = first + (halves ? half : 1);
        const auto phase = static_cast<std::size_t>(row % shape.seq * half + i);
        const double c = cos[phase], s = sin[phase], a = x.at(row, first), b = x.at(row, second);
        const auto first_at = static_cast<std::size_t>(row * x.n + first);
        const auto second_at = static_cast<std::size_t>(row * x.n + second);
        result.value[first_at] = a * c - b * s;
        result.value[second_at] = a * s + b * c;
        const double slack = x.slack_at(row, first) + x.slack_at(row, second) + 0x1p-22 * (std::abs(a) + std::abs(b));
        result.slack[first_at] = result.slack[second_at] = slack;
      }
    }
  }
  return result;
}

/// The new tokens' rows of a cache [batch, past + seq, row_size], and whether the older rows are untouched.
template <typename T>
std::vector<T> new_rows(const std::vector<T>& cache, const QkvCase& c, std::int64_t row_size, bool& old_untouched) {
  std::vector<T> rows;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const T* start = cache.data() + b * (c.past + c.seq) * row_size;
    old_untouched = old_untouched && DeviceBuffer<T>::untouched(start, c.past * row_size);
    rows.insert(rows.end(), start + c.past * row_size, start + (c.past + c.seq) * row_size);
  }
  return rows;
}

template <typename T>
void check_rope(GemmKernel kernel, const QkvCase& c, Pairing pairing) {
  CAPTURE(c.batch, c.seq, c.past, c.dim, c.heads, c.kv_heads, c.head_dim, name_of(pairing), name_of(Format<T>::dtype),
          static_cast<int>(kernel));
  const QkvShape shape = c.shape(pairing);
  const std::int64_t offset = offset_for(kernel), q_size = c.heads * c.head_dim, kv_size = c.kv_heads * c.head_dim;
  const std::vector<T> x = draw<T>(shape.rows * c.dim, 1), wq = draw<T>(q_size * c.dim, 2),
                       wk = draw<T>(kv_size * c.dim, 3), wv = draw<T>(kv_size * c.dim, 4);
  const std::vector<float> cos = draw<float>(c.seq * c.head_dim / 2, 5), sin = draw<float>(c.seq * c.head_dim / 2, 6);
  const DeviceBuffer<T> device_x(x, offset), device_wq(wq, offset), device_wk(wk, offset), device_wv(wv, offset);
  const DeviceBuffer<float> device_cos(cos, offset), device_sin(sin, offset);
  DeviceBuffer<T> prepared(shape.columns() * c.dim, offset, output_guard), q(shape.rows * q_size, offset, output_guard),
      k(c.batch * (c.past + c.seq) * kv_size, offset, output_guard),
      v(c.batch * (c.past + c.seq) * kv_size, offset, output_guard);

  kernels::cuda::prepare_qkv(exec, kernel, Format<T>::dtype, device_wq.data(), device_wk.data(), device_wv.data(),
                             prepared.data(), shape);
  FUSEBENCH_CUDA_CHECK(cudaDeviceSynchronize());  // see kernels/fused.h
  kernels::cuda::product_rope(exec, kernel, Format<T>::dtype, device_x.data(), prepared.data(), device_cos.data(),
                              device_sin.data(), q.data(), k.data(), v.data(), shape, {});

  const auto expect = [&](const std::vector<T>& weight, std::int64_t size, bool rotate) {
    return rotated(product(x, weight, shape.rows, size, c.dim), cos, sin, rotate, shape);
  };
  const Expected expected_q = expect(wq, q_size, true), expected_k = expect(wk, kv_size, true),
                 expected_v = expect(wv, kv_size, false);
  bool old_untouched = true;
  CHECK(mismatch(q.read(), expected_q.value, expected_q.slack) == "");
  CHECK(mismatch(new_rows(k.read(), c, kv_size, old_untouched), expected_k.value, expected_k.slack) == "");
  CHECK(mismatch(new_rows(v.read(), c, kv_size, old_untouched), expected_v.value, expected_v.slack) == "");
  CHECK(old_untouched);
  CHECK((prepared.guards_intact() && q.guards_intact() && k.guards_intact() && v.guards_intact()));
}

template <typename T>
void check_agrees(const DeviceBuffer<T>& hopper, const DeviceBuffer<T>& portable) {
  CHECK(disagreement(hopper.read(), portable.read()) == "");
  CHECK(hopper.guards_intact());
}

template <typename T>
void check_residual_agrees(std::int64_t m, std::int64_t n, std::int64_t k, ProductKernel with = GemmKernel::hopper) {
  CAPTURE(m, n, k, name_of(Format<T>::dtype));
  const DeviceBuffer<T> a(draw<T>(m * k, 1)), weight(draw<T>(n * k, 2)), residual(draw<T>(m * n, 3, 4.0));
  DeviceBuffer<T> hopper(m * n, 0, output_guard), portable(m * n);
  const auto launch = [&](ProductKernel kernel, DeviceBuffer<T>& out) {
    kernels::cuda::product_residual(exec, kernel, Format<T>::dtype, a.data(), weight.data(), residual.data(),
                                    out.data(), m, n, k, nullptr);
  };
  launch(with, hopper);
  launch(GemmKernel::portable, portable);
  check_agrees(hopper, portable);
}

template <typename T>
void check_swiglu_agrees(std::int64_t m, std::int64_t hidden, std::int64_t k, ProductKernel with = GemmKernel::hopper) {
  CAPTURE(m, hidden, k, name_of(Format<T>::dtype));
  // A gate and an up of about 1.
  const double scale = std::pow(static_cast<double>(k), -0.25) * 1.7;
  const DeviceBuffer<T> a(draw<T>(m * k, 1, scale)), prepared(draw<T>(2 * hidden * k, 2, scale));
  DeviceBuffer<T> hopper(m * hidden, 0, output_guard), portable(m * hidden);
  kernels::cuda::product_swiglu(exec, with, Format<T>::dtype, a.data(), prepared.data(), hopper.data(), m, hidden, k,
                                {});
  kernels::cuda::product_swiglu(exec, GemmKernel::portable, Format<T>::dtype, a.data(), prepared.data(),
                                portable.data(), m, hidden, k, {});
  check_agrees(hopper, portable);
}

template <typename T>
void check_rope_agrees(const QkvCase& c, Pairing pairing, ProductKernel with = GemmKernel::hopper) {
  CAPTURE(c.batch, c.seq, c.past, c.dim, c.heads, c.kv_heads, c.head_dim, name_of(pairing), name_of(Format<T>::dtype));
  const QkvShape shape = c.shape(pairing);
  const std::int64_t q_size = c.heads * c.head_dim, kv_size = c.batch * (c.past + c.seq) * c.kv_heads * c.head_dim;
  const std::int64_t kv_rows = c.kv_heads * c.head_dim;
  const DeviceBuffer<T> x(draw<T>(shape.rows * c.dim, 1)), wq(draw<T>(q_size * c.dim, 2)),
      wk(draw<T>(kv_rows * c.dim, 3)), wv(draw<T>(kv_rows * c.dim, 4));
  DeviceBuffer<T> prepared(shape.columns() * c.dim);
  const DeviceBuffer<float> cos(draw<float>(c.seq * c.head_dim / 2, 5)), sin(draw<float>(c.seq * c.head_dim / 2, 6));
  const std::vector<T> cache = draw<T>(kv_size, 7);
  const auto launch = [&](ProductKernel kernel) {
    std::array results = {DeviceBuffer<T>(shape.rows * q_size, 0, output_guard),
                          DeviceBuffer<T>(cache, 0, output_guard), DeviceBuffer<T>(cache, 0, output_guard)};
    kernels::cuda::prepare_qkv(exec, kernel.kernel, Format<T>::dtype, wq.data(), wk.data(), wv.data(), prepared.data(),
                               shape);
    FUSEBENCH_CUDA_CHECK(cudaDeviceSynchronize());  // see kernels/fused.h
    kernels::cuda::product_rope(exec, kernel, Format<T>::dtype, x.data(), prepared.data(), cos.data(), sin.data(),
                                results[0].data(), results[1].data(), results[2].data(), shape, {});
    return results;
  };
  const auto hopper = launch(with), portable = launch(GemmKernel::portable);
  for (std::size_t i = 0; i < hopper.size(); ++i) check_agrees(hopper[i], portable[i]);
}

}  // namespace

TEST_CASE("product_residual adds the residual to every kind of tile") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const std::int64_t m : {1, 16, 17, 64, 127, 128, 129}) {
      for (const std::int64_t n : {1, 8, 32, 33, 96, 127, 129, 136, 288}) {
        for (const GemmKernel kernel : aligned_kernels(n)) check_residual<T>(kernel, m, n, 72);
        check_residual<T>(GemmKernel::portable_unaligned, m, n, 37);
      }
    }
    for (const GemmKernel kernel : aligned_kernels(96)) check_residual<T>(kernel, 40, 96, 200, true);
    check_residual<T>(GemmKernel::portable_unaligned, 40, 96, 200, true);
  });
}

TEST_CASE("product_residual is right with as many tiles as multiprocessors") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    check_residual<T>(GemmKernel::portable, 1000, 2001, 40);  // medium tiles on 132 multiprocessors, odd rows
    check_residual<T>(GemmKernel::portable, 1400, 3061, 40);  // large tiles, odd rows
    for (const GemmKernel kernel : aligned_kernels(3072)) check_residual<T>(kernel, 1400, 3072, 40);
  });
}

TEST_CASE("product_residual is right beyond 2^31 elements", "[large]") {
  const std::int64_t m = 65536 + 130, n = 32768, k = 8;
  if (skip_without_device() || skip_without_memory(m * n * 2 + (std::int64_t{1} << 28))) return;
  const std::vector<__half> a = draw<__half>(m * k, 1), weight = draw<__half>(n * k, 2);
  const DeviceBuffer<__half> device_a(a), device_weight(weight);
  DeviceBuffer<__half> out(m * n, 0, output_guard);
  for (const GemmKernel kernel : aligned_kernels(n)) {
    out.clear();
    kernels::cuda::product_residual(exec, kernel, DType::fp16, device_a.data(), device_weight.data(), out.data(),
                                    out.data(), m, n, k, nullptr);
    for (const std::int64_t row : {std::int64_t{0}, std::int64_t{65535}, std::int64_t{65536}, m - 1}) {
      const std::vector<__half> a_row(a.begin() + row * k, a.begin() + (row + 1) * k);
      const Product expected = product(a_row, weight, 1, n, k);
      CHECK(mismatch(out.read(row * n, n), expected.value, expected.slack) == "");
    }
  }
}

TEST_CASE("product_swiglu gates every kind of tile") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const std::int64_t m : {1, 16, 33, 129}) {
      for (const std::int64_t hidden : {1, 3, 4, 16, 65, 128, 129, 136, 144}) {
        for (const GemmKernel kernel : aligned_kernels(2 * hidden)) check_swiglu<T>(kernel, m, hidden, 72);
        check_swiglu<T>(GemmKernel::portable_unaligned, m, hidden, 37);
      }
    }
    check_swiglu<T>(GemmKernel::portable, 1000, 1000, 40);  // medium tiles
    check_swiglu<T>(GemmKernel::portable, 1400, 1531, 40);  // large tiles, odd rows
    for (const GemmKernel kernel : aligned_kernels(3072)) check_swiglu<T>(kernel, 1400, 1536, 40);
  });
}

TEST_CASE("product_swiglu takes huge gates and keeps silu(-inf) at 0") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    const std::int64_t m = 20, hidden = 16, k = 8;
    const double gates[hidden] = {100,   -100, -INFINITY, 1,    -1, -0.88, 0,   1000, -0.9,
                                  -0.92, 0.01, -0.01,     -0.5, -2, 4,     -0.1};  // times 100: up to +-1e4 and 1e5
    std::vector<T> a(m * k, rounded<T>(0.0)), gate(hidden * k, rounded<T>(0.0)), up = draw<T>(hidden * k, 3);
    for (std::int64_t row = 0; row < m; ++row) a[row * k] = rounded<T>(100.0);
    for (std::int64_t unit = 0; unit < hidden; ++unit) gate[unit * k] = rounded<T>(gates[unit]);
    for (const GemmKernel kernel : aligned_kernels(2 * hidden)) check_swiglu(kernel, a, gate, up, m, hidden, k);
    check_swiglu(GemmKernel::portable_unaligned, a, gate, up, m, hidden, k);
  });
}

TEST_CASE("product_rope rotates and appends") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      for (const std::int64_t head_dim : {2, 6, 64, 80, 96, 128, 256}) {
        for (const auto& [heads, kv_heads] : {std::pair{32, 8}, {8, 1}, {6, 3}, {1, 1}}) {
          check_rope<T>(GemmKernel::portable, {2, 3, 5, 24, heads, kv_heads, head_dim}, pairing);
          check_rope<T>(GemmKernel::portable_unaligned, {3, 7, 0, 13, heads, kv_heads, head_dim}, pairing);
        }
      }
      check_rope<T>(GemmKernel::portable, {1, 33, 0, 40, 6, 3, 64}, pairing);
      check_rope<T>(GemmKernel::portable, {3, 1, 17, 136, 8, 2, 128}, pairing);   // decode
      check_rope<T>(GemmKernel::portable, {2, 350, 9, 40, 28, 7, 128}, pairing);  // large tiles
      check_rope<T>(GemmKernel::portable, {2, 350, 0, 40, 12, 2, 128}, pairing);  // medium tiles
      check_rope<T>(GemmKernel::portable, {2, 350, 9, 40, 36, 9, 100}, pairing);  // large tiles, pair by pair
    }
  });
}

TEST_CASE("product_rope of the Hopper kernel rotates and appends where rows are neighbours in the cache") {
  if (skip_without_hopper()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      for (const std::int64_t head_dim : {64, 128}) {
        for (const auto& [heads, kv_heads] : {std::pair{32, 8}, {8, 1}, {6, 3}, {1, 1}}) {
          check_rope<T>(GemmKernel::hopper, {2, 35, 0, 24, heads, kv_heads, head_dim}, pairing);
        }
        check_rope<T>(GemmKernel::hopper, {1, 333, 0, 40, 6, 3, head_dim}, pairing);
        check_rope<T>(GemmKernel::hopper, {1, 170, 23, 72, 6, 3, head_dim}, pairing);   // one batch's cache
        check_rope<T>(GemmKernel::hopper, {3, 128, 17, 136, 8, 2, head_dim}, pairing);  // batches of whole boxes
        check_rope<T>(GemmKernel::hopper, {2, 700, 0, 40, 28, 14, head_dim}, pairing);  // several rounds
      }
    }
  });
  QkvShape shape = QkvCase{2, 96, 5, 64, 2, 2, 64}.shape(Pairing::half);
  CHECK_FALSE(hopper_takes(shape));
  const DeviceBuffer<float> x(64);
  DeviceBuffer<float> out(64);
  CHECK_THROWS_AS(kernels::cuda::product_rope(exec, GemmKernel::hopper, DType::fp16, x.data(), x.data(), x.data(),
                                              x.data(), out.data(), out.data(), out.data(), shape, {}),
                  std::invalid_argument);
}

TEST_CASE("Hopper products agree with the portable ones in every tile") {
  if (skip_without_hopper()) return;
  for_hopper_cases([](const HopperCase& c, ProductKernel with) {
    for_types<__half, __nv_bfloat16>([&]<typename T>() {
      check_residual_agrees<T>(c.m, c.n, c.k, with);
      check_swiglu_agrees<T>(c.m, c.n / 2, c.k, with);
      for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
        check_rope_agrees<T>({1, c.m, 0, c.k, c.n / 128 - 2, 1, 128}, pairing, with);
      }
    });
  });
}

// The tiles named are those of 132 multiprocessors.
TEST_CASE("Hopper products agree with the portable ones over many tiles and slices") {
  if (skip_without_hopper()) return;
  DeviceBuffer<float> sums = part_sums_buffer();
  const ProductKernel on_parts{GemmKernel::hopper, sums.data()};
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    check_residual_agrees<T>(66, 12704, 7616);             // 119 slices
    check_residual_agrees<T>(193, 33824, 72);              // wide tiles, three a pair
    check_residual_agrees<T>(129, 50720, 72);              // and narrow ones, five a pair
    check_residual_agrees<T>(320, 4096, 14336, on_parts);  // token tiles, beside each other and on parts of k
    check_residual_agrees<T>(640, 4096, 4096, on_parts);   // beside each other alone
    check_swiglu_agrees<T>(150, 14336, 4096);              // by turns
    check_swiglu_agrees<T>(320, 14336, 4096);              // and beside each other
    check_swiglu_agrees<T>(66, 6352, 7616);
    check_swiglu_agrees<T>(2200, 6000, 328);  // wide and narrow tiles, two groups of rows
    check_swiglu_agrees<T>(2500, 16000, 72);  // more than L2 holds, so that it streams
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      check_rope_agrees<T>({1, 70, 0, 7616, 80, 10, 128}, pairing);
      check_rope_agrees<T>({1, 320, 0, 4096, 32, 8, 128}, pairing);  // token tiles
      check_rope_agrees<T>({5, 64, 9, 4096, 32, 8, 128}, pairing);   // behind older rows
      check_rope_agrees<T>({1, 70, 0, 7616, 160, 20, 64}, pairing);
      // Behind older rows wide and narrow tiles, beside each other, then of halved rows; the last with heads and
      // tensors that begin within a tile.
      check_rope_agrees<T>({1, 1404, 23, 200, 80, 60, 64}, pairing);
      check_rope_agrees<T>({1, 1532, 23, 200, 80, 60, 64}, pairing);
      check_rope_agrees<T>({12, 128, 23, 200, 37, 31, 128}, pairing);
    }
  });
}

TEST_CASE("prepare_gate_up alternates rows of any alignment") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const std::int64_t k : {1, 8, 13}) {
      const std::int64_t hidden = 37;
      const std::vector<T> gate = draw<T>(hidden * k, 1), up = draw<T>(hidden * k, 2);
      const DeviceBuffer<T> device_gate(gate, 1), device_up(up, 3);
      DeviceBuffer<T> prepared(2 * hidden * k, 1, output_guard);
      kernels::cuda::prepare_gate_up(exec, Format<T>::dtype, device_gate.data(), device_up.data(), prepared.data(),
                                     hidden, k);
      CHECK(widened(prepared.read()) == widened(gate_up_interleaved(gate, up, k)));
      CHECK(prepared.guards_intact());
    }
  });
}

TEST_CASE("products refuse fp32, odd heads, and on Hopper what is not aligned") {
  if (skip_without_device()) return;
  const DeviceBuffer<float> x(64);
  DeviceBuffer<float> out(64);
  CHECK_THROWS_AS(kernels::cuda::product_residual(exec, GemmKernel::portable, DType::fp32, x.data(), x.data(), x.data(),
                                                  out.data(), 8, 8, 8, nullptr),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::cuda::product_swiglu(exec, GemmKernel::portable, DType::fp32, x.data(), x.data(), out.data(),
                                                8, 8, 8, {}),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::cuda::product_residual(exec, GemmKernel::hopper, DType::fp16, x.data(), x.data(), x.data(),
                                                  out.data(), 8, 9, 8, nullptr),
                  std::invalid_argument);
  QkvShape shape = QkvCase{1, 1, 0, 8, 1, 1, 3}.shape(Pairing::interleaved);
  CHECK_THROWS_AS(kernels::cuda::product_rope(exec, GemmKernel::portable, DType::fp16, x.data(), x.data(), x.data(),
                                              x.data(), out.data(), out.data(), out.data(), shape, {}),
                  std::invalid_argument);
}
