// Norms, RoPE, SwiGLU, softmax, add and copies against their formulas in double: every dtype, aligned and not, short
// rows, long rows and many rows, and the values that break a careless formula.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/fused_cuda.h"
#include "tests/catch.h"
#include "tests/gpu/device.h"

namespace {

using namespace fusebench;
using namespace fusebench::testing;
namespace cuda = kernels::cuda;

const Exec stream{Backend::cuda, nullptr};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ulp = 0x1p-23;  ///< of fp32, relative

/// Calls f.operator()<T>() for every element type.
template <class F>
void for_each_type(F f) {
  f.template operator()<__half>();
  f.template operator()<__nv_bfloat16>();
  f.template operator()<float>();
}

struct Expected {
  std::vector<double> value, slack;
  void add(double x, double absolute) {
    value.push_back(x);
    slack.push_back(absolute);
  }
};

template <typename T>
void check(const DeviceBuffer<T>& got, const Expected& expected) {
  CHECK(mismatch(got.read(), expected.value, expected.slack) == "");
  CHECK(got.guards_intact());
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::int64_t size_of(const auto& values) { return static_cast<std::int64_t>(values.size()); }

/// x / sqrt(mean(x²) + eps) · weight; up to 300 fp32 additions in a row.
template <typename T>
Expected normalised(const std::vector<T>& x, const std::vector<T>& weight, double eps) {
  Expected expected;
  for (std::size_t start = 0; start < x.size(); start += weight.size()) {
    double squares = 0.0;
    for (std::size_t i = 0; i < weight.size(); ++i) squares += to_double(x[start + i]) * to_double(x[start + i]);
    const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(weight.size()) + eps);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double y = to_double(x[start + i]) * rstd * to_double(weight[i]);
      expected.add(y, std::abs(y) * 300 * ulp / 2);
    }
  }
  return expected;
}

template <typename T>
void check_rmsnorm(const std::vector<T>& x, const std::vector<T>& weight, std::int64_t offset, float eps = 1e-5f) {
  const std::int64_t cols = size_of(weight), rows = size_of(x) / cols;
  CAPTURE(name_of(Format<T>::dtype), rows, cols, offset);
  const DeviceBuffer<T> device_x(x, offset), device_weight(weight, offset);
  DeviceBuffer<T> y(rows * cols, offset, output_guard);
  cuda::rmsnorm(stream, Format<T>::dtype, device_x.data(), device_weight.data(), eps, y.data(), rows, cols);
  check(y, normalised(x, weight, eps));
}

template <typename T>
void check_add_rmsnorm(std::int64_t rows, std::int64_t cols, std::int64_t offset) {
  CAPTURE(name_of(Format<T>::dtype), rows, cols, offset);
  const std::vector<T> x = draw<T>(rows * cols, 1, 3.0), r = draw<T>(rows * cols, 2, 3.0), weight = draw<T>(cols, 3);
  const DeviceBuffer<T> device_x(x, offset), device_r(r, offset), device_weight(weight, offset);
  DeviceBuffer<T> h(rows * cols, offset, output_guard), y(rows * cols, offset, output_guard);
  cuda::add_rmsnorm(stream, Format<T>::dtype, device_x.data(), device_r.data(), device_weight.data(), 1e-5f, h.data(),
                    y.data(), rows, cols);
  std::vector<T> sum;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum.push_back(rounded<T>(static_cast<float>(to_double(x[i])) + static_cast<float>(to_double(r[i]))));
  }
  CHECK(same_bits(h.read(), sum));
  CHECK(h.guards_intact());
  check(y, normalised(sum, weight, 1e-5f));
}

/// Widths around packs, warps, blocks, and the longest rows that registers hold.
const std::vector<std::int64_t> widths{1,    2,    3,    7,    8,    31,    33,    64,    100,   256,   257,   1000,
                                       1024, 3584, 4096, 5120, 8200, 16384, 16392, 32768, 32776, 40001, 131072};

struct Rope {
  Pairing pairing;
  std::int64_t heads, head_dim, seq;
  std::vector<float> cos, sin;  ///< [seq, head_dim / 2]

  /// Row i of the tables belongs to positions[i].
  Rope(Pairing pair, std::int64_t h, std::int64_t d, const std::vector<std::int64_t>& positions)
      : pairing(pair), heads(h), head_dim(d), seq(size_of(positions)) {
    for (const std::int64_t position : positions) {
      for (std::int64_t i = 0; i < head_dim / 2; ++i) {
        const double frequency = std::pow(500000.0, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
        cos.push_back(static_cast<float>(std::cos(static_cast<double>(position) * frequency)));
        sin.push_back(static_cast<float>(std::sin(static_cast<double>(position) * frequency)));
      }
    }
  }

  /// Dense rows of `rows_heads` heads, from x whose rows are `stride` apart.
  template <typename T>
  Expected rotated(const std::vector<T>& x, std::int64_t stride, std::int64_t rows, std::int64_t row_heads) const {
    Expected expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = 0; head < row_heads; ++head) {
        const T* values = x.data() + row * stride + head * head_dim;
        for (std::int64_t i = 0; i < head_dim; ++i) {
          const bool half = pairing == Pairing::half;
          const std::int64_t pair = half ? i % (head_dim / 2) : i / 2;
          const bool is_first = half ? i < head_dim / 2 : i % 2 == 0;
          const double a = to_double(values[half ? pair : 2 * pair]);
          const double b = to_double(values[half ? pair + head_dim / 2 : 2 * pair + 1]);
          const auto phase = static_cast<std::size_t>(row % seq * (head_dim / 2) + pair);
          const double c = cos[phase], s = sin[phase];
          expected.add(is_first ? a * c - b * s : a * s + b * c, (std::abs(a) + std::abs(b)) * 2 * ulp);
        }
      }
    }
    return expected;
  }
};

template <typename T>
void check_rope_of_q_and_k(const Rope& rope, std::int64_t batch, std::int64_t kv_heads, std::int64_t offset) {
  CAPTURE(name_of(Format<T>::dtype), name_of(rope.pairing), rope.heads, kv_heads, rope.head_dim, batch, offset);
  const std::int64_t rows = batch * rope.seq, q_cols = rope.heads * rope.head_dim, k_cols = kv_heads * rope.head_dim;
  const std::vector<T> q = draw<T>(rows * q_cols, 1), k = draw<T>(rows * k_cols, 2);
  const DeviceBuffer<T> device_q(q, offset), device_k(k, offset);
  const DeviceBuffer<float> cos(rope.cos, offset), sin(rope.sin, offset);
  DeviceBuffer<T> q_out(rows * q_cols, offset, output_guard), k_out(rows * k_cols, offset, output_guard);
  cuda::rope(stream, Format<T>::dtype, rope.pairing, device_q.data(), device_k.data(), cos.data(), sin.data(),
             q_out.data(), k_out.data(), rows, rope.heads, kv_heads, rope.head_dim, rope.seq);
  check(q_out, rope.rotated(q, q_cols, rows, rope.heads));
  check(k_out, rope.rotated(k, k_cols, rows, kv_heads));
}

/// One tensor, from rows with a gap between them, to a cache with room before and behind.
template <typename T>
void check_rope_of_one(const Rope& rope, std::int64_t batch, std::int64_t gap, std::int64_t offset) {
  CAPTURE(name_of(Format<T>::dtype), name_of(rope.pairing), rope.heads, rope.head_dim, batch, gap, offset);
  const RowMap map{.seq = rope.seq, .capacity = rope.seq + 5, .past = 3};
  const std::int64_t rows = batch * rope.seq, cols = rope.heads * rope.head_dim, stride = cols + gap;
  const std::vector<T> x = draw<T>(rows * stride, 1);
  const DeviceBuffer<T> device_x(x, offset);
  const DeviceBuffer<float> cos(rope.cos), sin(rope.sin);
  DeviceBuffer<T> out(batch * map.capacity * cols, offset, output_guard);
  cuda::rope(stream, Format<T>::dtype, rope.pairing, device_x.data(), stride, cos.data(), sin.data(), out.data(), rows,
             rope.heads, rope.head_dim, rope.seq, map);
  const std::vector<T> cache = out.read();
  std::vector<T> written;
  for (std::int64_t b = 0; b < batch; ++b) {
    const T* begin = cache.data() + b * map.capacity * cols;
    const T *first = begin + map.past * cols, *end = first + map.seq * cols;
    CHECK(DeviceBuffer<T>::untouched(begin, first - begin));
    CHECK(DeviceBuffer<T>::untouched(end, (map.capacity - map.past - map.seq) * cols));
    written.insert(written.end(), first, end);
  }
  const Expected expected = rope.rotated(x, stride, rows, rope.heads);
  CHECK(mismatch(written, expected.value, expected.slack) == "");
  CHECK(out.guards_intact());
}

double silu(double g) { return g == -infinity ? 0.0 : g / (1.0 + std::exp(-g)); }

/// The exponential is within 2 + 1.2 |g| ulp, or half the smallest subnormal where it is one.
template <typename T>
Expected gated(const std::vector<T>& g, const std::vector<T>& u, std::int64_t stride, std::int64_t rows,
               std::int64_t cols) {
  Expected expected;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      const auto i = static_cast<std::size_t>(row * stride + col);
      const double gate = to_double(g[i]), y = silu(gate) * to_double(u[i]);
      const double size = std::min(std::abs(gate), 110.0);
      const double slack = std::abs(y) * (8 + 1.2 * size) * ulp + size * std::abs(to_double(u[i])) * 0x1p-149;
      expected.add(y, std::isinf(y) ? 0.0 : slack);
    }
  }
  return expected;
}

template <typename T>
void check_swiglu(const std::vector<T>& g, const std::vector<T>& u, std::int64_t offset) {
  CAPTURE(name_of(Format<T>::dtype), g.size(), offset);
  const DeviceBuffer<T> device_g(g, offset), device_u(u, offset);
  DeviceBuffer<T> y(size_of(g), offset, output_guard);
  cuda::swiglu(stream, Format<T>::dtype, device_g.data(), device_u.data(), y.data(), size_of(g));
  check(y, gated(g, u, 0, 1, size_of(g)));
}

template <typename T>
void check_softmax(const AttentionShape& shape, const std::vector<float>& scores, std::int64_t offset) {
  CAPTURE(name_of(Format<T>::dtype), shape.batch, shape.heads, shape.seq, shape.keys, shape.causal, offset);
  Expected expected;
  for (std::int64_t row = 0; row < shape.batch * shape.heads * shape.seq; ++row) {
    const float* x = scores.data() + row * shape.keys;
    const std::int64_t visible =
        shape.causal ? std::max<std::int64_t>(shape.keys - shape.seq + row % shape.seq + 1, 0) : shape.keys;
    const double max = visible == 0 ? 0.0 : *std::max_element(x, x + visible);
    double sum = 0.0;
    for (std::int64_t i = 0; i < visible; ++i) sum += std::exp(x[i] - max);
    for (std::int64_t i = 0; i < shape.keys; ++i) {
      const double p = i < visible ? std::exp(x[i] - max) / sum : 0.0;
      expected.add(p, p == 0.0 ? 0.0 : p * (300 + std::abs(x[i] - max)) * ulp);
    }
  }
  const DeviceBuffer<float> device_scores(scores, offset);
  DeviceBuffer<T> probabilities(size_of(scores), offset, output_guard);
  cuda::masked_softmax(stream, Format<T>::dtype, device_scores.data(), probabilities.data(), shape);
  check(probabilities, expected);
}

std::int64_t scores_of(const AttentionShape& shape) { return shape.batch * shape.heads * shape.seq * shape.keys; }

}  // namespace

TEST_CASE("rmsnorm is right for every width, few rows and many, aligned or not") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t offset : {0, 1}) {
      for (const std::int64_t cols : widths) {
        check_rmsnorm(draw<T>(3 * cols, 1, 4.0), draw<T>(cols, 2), offset);
        if (cols <= 1024 || (cols == 4096 && offset == 0))
          check_rmsnorm(draw<T>(1029 * cols, 3, 4.0), draw<T>(cols, 4), offset);
      }
    }
  });
}

TEST_CASE("add_rmsnorm stores the rounded sum and normalises what it stored") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t offset : {0, 1}) {
      for (const std::int64_t cols : widths) {
        check_add_rmsnorm<T>(3, cols, offset);
        if (cols <= 1024 || (cols == 4096 && offset == 0)) check_add_rmsnorm<T>(1029, cols, offset);
      }
    }
  });
}

TEST_CASE("rmsnorm of values whose squares overflow fp16, of zeros, and of one huge value among zeros") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t cols : {7, 4096}) {
      std::vector<T> x(static_cast<std::size_t>(4 * cols), rounded<T>(0.0));
      for (std::int64_t i = 0; i < cols; ++i) {
        x[static_cast<std::size_t>(i)] = rounded<T>(i % 2 == 0 ? 300.0 : -300.0);
        x[static_cast<std::size_t>(3 * cols + i)] = rounded<T>(65504.0);
      }
      x[static_cast<std::size_t>(2 * cols + 5)] = rounded<T>(60000.0);  // row 1 stays 0
      check_rmsnorm(x, draw<T>(cols, 2), 0);
    }
  });
}

TEST_CASE("rmsnorm of a batch does not depend on the other batches by a bit, nor on the launch") {
  if (skip_without_device()) return;
  constexpr std::int64_t rows = 33, cols = 4096;
  std::vector<__half> x = draw<__half>(3 * rows * cols, 1);
  const DeviceBuffer<__half> weight(draw<__half>(cols, 2));
  const auto run = [&] {
    const DeviceBuffer<__half> device_x(x);
    DeviceBuffer<__half> y(3 * rows * cols);
    cuda::rmsnorm(stream, DType::fp16, device_x.data(), weight.data(), 1e-5f, y.data(), 3 * rows, cols);
    return y.read();
  };
  std::vector<__half> first = run();
  CHECK(same_bits(first, run()));
  for (std::int64_t i = rows * cols; i < 2 * rows * cols; ++i) x[static_cast<std::size_t>(i)] = rounded<__half>(7.0);
  std::vector<__half> changed = run();
  CHECK_FALSE(same_bits(first, changed));
  for (auto* y : {&first, &changed}) y->erase(y->begin() + rows * cols, y->begin() + 2 * rows * cols);
  CHECK(same_bits(first, changed));
}

TEST_CASE("rope rotates q and k at near and far positions, in both pairings") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      for (const std::int64_t head_dim : {2, 6, 8, 40, 64, 80, 128, 256}) {
        for (const std::int64_t offset : {0, 1}) {
          check_rope_of_q_and_k<T>(Rope(pairing, 32, head_dim, {0, 1, 4095, 131071}), 3, 8, offset);
          check_rope_of_q_and_k<T>(Rope(pairing, 3, head_dim, {1, 2, 131071}), 2, 3, offset);
          check_rope_of_q_and_k<T>(Rope(pairing, 1, head_dim, {1}), 1, 1, offset);
        }
      }
    }
  });
}

TEST_CASE("rope takes rows with gaps, and writes into a cache nothing but its rows") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      for (const std::int64_t heads : {1, 5, 8, 130}) {
        for (const std::int64_t head_dim : {10, 64, 128}) {
          check_rope_of_one<T>(Rope(pairing, heads, head_dim, {0, 1, 77}), 3, 2 * head_dim, 0);
          check_rope_of_one<T>(Rope(pairing, heads, head_dim, {0, 1, 77}), 3, 0, 0);
          check_rope_of_one<T>(Rope(pairing, heads, head_dim, {5}), 2, 3, 0);
          check_rope_of_one<T>(Rope(pairing, heads, head_dim, {5, 6}), 2, 8, 1);
        }
      }
    }
  });
}

TEST_CASE("swiglu is right for every length, aligned or not") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t n : {1, 7, 8, 9, 255, 4097, 1 << 20, (1 << 20) + 3}) {
      for (const std::int64_t offset : {0, 1}) check_swiglu(draw<T>(n, 1, 12.0), draw<T>(n, 2), offset);
    }
  });
}

TEST_CASE("swiglu takes halves of merged rows") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t cols : {1, 5, 8, 40, 1024, 1792}) {
      for (const std::int64_t gap : {std::int64_t{0}, cols, std::int64_t{3}}) {
        constexpr std::int64_t rows = 37;
        const std::int64_t stride = cols + gap;
        CAPTURE(name_of(Format<T>::dtype), cols, stride);
        const std::vector<T> g = draw<T>(rows * stride, 1, 6.0), u = draw<T>(rows * stride, 2);
        const DeviceBuffer<T> device_g(g), device_u(u);
        DeviceBuffer<T> y(rows * cols, 0, output_guard);
        cuda::swiglu(stream, Format<T>::dtype, device_g.data(), device_u.data(), stride, y.data(), rows, cols);
        check(y, gated(g, u, stride, rows, cols));
      }
    }
  });
}

TEST_CASE("swiglu at the ends of its range: silu(-inf) = 0") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    std::vector<T> g, u;
    for (const double x : {-infinity, -1e4, -65504.0, 65504.0, infinity, -88.8, -100.0, -20.0, 0.0, -0.0, 6e-8, -6e-8,
                           1e-40, -1e-40, 1.0, -1.0, 88.0}) {
      for (const double factor : {1.0, -2.0}) {
        g.push_back(rounded<T>(x));
        u.push_back(rounded<T>(factor));
      }
    }
    check_swiglu(g, u, 0);
    check_swiglu(g, u, 1);
  });
}

TEST_CASE("masked_softmax is right for every number of keys, aligned or not") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t keys : {1, 5, 8, 33, 64, 256, 2048, 2049, 4104, 8200, 16384, 16392, 131072}) {
      for (const bool causal : {false, true}) {
        for (const std::int64_t offset : {0, 1}) {
          const AttentionShape shape{.batch = 2,
                                     .seq = std::min<std::int64_t>(keys, 3),
                                     .keys = keys,
                                     .heads = 2,
                                     .kv_heads = 1,
                                     .causal = causal};
          check_softmax<T>(shape, draw<float>(scores_of(shape), 1, 8.0), offset);
        }
      }
    }
    for (const std::int64_t seq : {64, 129, 257}) {
      const AttentionShape shape{.batch = 2, .seq = seq, .keys = seq + 7, .heads = 8, .kv_heads = 8, .causal = true};
      check_softmax<T>(shape, draw<float>(scores_of(shape), 1, 8.0), 0);
    }
  });
}

TEST_CASE("masked_softmax of huge scores, and of rows that see no key") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t keys : {5, 64, 20000}) {
      const AttentionShape shape{.batch = 1, .seq = 9, .keys = keys, .heads = 2, .kv_heads = 2, .causal = true};
      std::vector<float> scores = draw<float>(scores_of(shape), 1, 4.0);
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += i % 3 == 0 ? -60000.0f : 60000.0f;
      check_softmax<T>(shape, scores, 0);
      std::fill(scores.begin(), scores.end(), -60000.0f);
      check_softmax<T>(shape, scores, 0);
    }
  });
}

TEST_CASE("masked_softmax of scores that are all -inf is 0 and not NaN") {
  if (skip_without_device()) return;
  for (const std::int64_t keys : {5, 64, 20000}) {
    const std::vector<float> scores(static_cast<std::size_t>(keys), -std::numeric_limits<float>::infinity());
    const DeviceBuffer<float> device_scores(scores);
    DeviceBuffer<float> probabilities(keys);
    cuda::masked_softmax(stream, DType::fp32, device_scores.data(), probabilities.data(), {.keys = keys});
    CHECK(probabilities.read() == std::vector<float>(scores.size(), 0.0f));
  }
}

TEST_CASE("add is right for every length, aligned or not, and in place") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    for (const std::int64_t n : {1, 7, 8, 9, 255, 4097, (1 << 20) + 3}) {
      for (const std::int64_t offset : {0, 1}) {
        CAPTURE(name_of(Format<T>::dtype), n, offset);
        const std::vector<T> a = draw<T>(n, 1), b = draw<T>(n, 2);
        Expected expected;
        for (std::size_t i = 0; i < a.size(); ++i) {
          const double sum = to_double(a[i]) + to_double(b[i]);
          expected.add(sum, std::abs(sum) * ulp);
        }
        DeviceBuffer<T> device_a(a, offset, output_guard);
        const DeviceBuffer<T> device_b(b, offset);
        DeviceBuffer<T> out(n, offset, output_guard);
        cuda::add(stream, Format<T>::dtype, device_a.data(), device_b.data(), out.data(), n);
        check(out, expected);
        cuda::add(stream, Format<T>::dtype, device_a.data(), device_b.data(), device_a.data(), n);
        check(device_a, expected);
      }
    }
  });
}

TEST_CASE("copy_rows moves rows to their places and touches nothing else") {
  if (skip_without_device()) return;
  for_each_type([&]<typename T>() {
    constexpr std::int64_t batch = 3;
    for (const std::int64_t cols : {1, 8, 40, 1024}) {
      for (const std::int64_t gap : {0, 3, 8}) {
        for (const std::int64_t offset : {0, 1}) {
          CAPTURE(name_of(Format<T>::dtype), cols, gap, offset);
          const RowMap map{.seq = 5, .capacity = 9, .past = 2};
          const std::int64_t stride = cols + gap;
          const std::vector<T> x = draw<T>(batch * map.seq * stride, 1);
          const DeviceBuffer<T> device_x(x, offset);
          DeviceBuffer<T> out(batch * map.capacity * stride, offset, output_guard);
          cuda::copy_rows(stream, Format<T>::dtype, device_x.data(), stride, out.data(), stride, batch * map.seq, cols,
                          map);
          const DeviceBuffer<T> fresh(out.count());
          std::vector<T> expected = fresh.read();
          for (std::int64_t row = 0; row < batch * map.seq; ++row) {
            const std::int64_t place = row / 5 * 9 + 2 + row % 5;
            std::copy_n(x.begin() + row * stride, cols, expected.begin() + place * stride);
          }
          CHECK(same_bits(out.read(), expected));
          CHECK(out.guards_intact());
        }
      }
    }
  });
}
