// The naive variant's steps on a device, each against its formula in double on the very values that it read: every
// element type, bases aligned to an element alone, grids past 65535 rows, more than 2^31 elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/primitives.h"
#include "tests/catch.h"
#include "tests/gpu/device.h"

namespace {

using namespace fusebench;
using namespace fusebench::testing;
using kernels::cuda_primitives;

const Exec exec{Backend::cuda, nullptr};
constexpr std::int64_t unaligned = 1;
constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename F>
void for_all_types(F&& f) {
  for_types<__half, __nv_bfloat16, float>(f);
}

// What element i must be, and what fp32 arithmetic may add to its one rounding.
struct Target {
  double value;
  double slack;
};

template <typename T>
class Output {
 public:
  explicit Output(std::int64_t count) : buffer_(count, unaligned, output_guard) {}
  T* data() { return buffer_.data(); }
  std::vector<T> read() const { return buffer_.read(); }

  template <typename F>
  void require(const char* step, F target_of) const {
    std::vector<double> expected, slack;
    for (std::int64_t i = 0; i < buffer_.count(); ++i) {
      const Target target = target_of(i);
      expected.push_back(target.value);
      slack.push_back(target.slack);
    }
    INFO(step << " in " << name_of(Format<T>::dtype));
    CHECK(mismatch(buffer_.read(), expected, slack) == "");
    CHECK(buffer_.guards_intact());
  }

 private:
  DeviceBuffer<T> buffer_;
};

// Values on the host and their copy on the device.
template <typename T>
struct Input {
  explicit Input(std::vector<T> values) : host(std::move(values)), device(host, unaligned) {}
  Input(std::int64_t count, std::uint64_t seed, double scale = 2.0) : Input(draw<T>(count, seed, scale)) {}
  double operator[](std::int64_t i) const { return to_double(host[static_cast<std::size_t>(i)]); }
  const T* data() const { return device.data(); }

  std::vector<T> host;
  DeviceBuffer<T> device;
};

Target within_ulps(double value, double ulps) { return {value, std::abs(value) * ulps * 0x1p-23}; }

struct Extent {
  std::int64_t rows, cols;
};

}  // namespace

TEST_CASE("naive sums, differences, products and squares", "[gpu][naive]") {
  if (skip_without_device()) return;
  for_all_types([&]<class T>() {
    constexpr DType dtype = Format<T>::dtype;
    const std::int64_t n = 70001;
    const Input<T> a(n, 1), b(n, 2);
    Output<T> sum(n), difference(n), product(n);
    Output<float> square(n);
    cuda_primitives().add(exec, dtype, a.data(), b.data(), sum.data(), n);
    cuda_primitives().subtract(exec, dtype, a.data(), b.data(), difference.data(), n);
    cuda_primitives().multiply(exec, dtype, a.data(), b.data(), product.data(), n);
    cuda_primitives().square(exec, dtype, a.data(), square.data(), n);
    sum.require("add", [&](std::int64_t i) { return within_ulps(a[i] + b[i], 1); });
    difference.require("subtract", [&](std::int64_t i) { return within_ulps(a[i] - b[i], 1); });
    product.require("multiply", [&](std::int64_t i) { return within_ulps(a[i] * b[i], 1); });
    square.require("square", [&](std::int64_t i) { return within_ulps(a[i] * a[i], 1); });
  });
}

TEST_CASE("naive row statistics and scales", "[gpu][naive]") {
  if (skip_without_device()) return;
  for (const auto& [rows, cols] : std::vector<Extent>{{1, 1}, {1, 16384}, {3, 257}, {70001, 3}, {5, 5000}}) {
    CAPTURE(rows, cols);
    const Input<float> squares(rows * cols, 3, 5.0);
    Output<float> mean(rows), max(rows);
    cuda_primitives().row_mean(exec, squares.data(), mean.data(), rows, cols);
    cuda_primitives().row_max(exec, squares.data(), max.data(), rows, cols);
    mean.require("row_mean", [&, cols = cols](std::int64_t row) {
      double total = 0, magnitude = 0;
      for (std::int64_t col = 0; col < cols; ++col) {
        total += squares[row * cols + col];
        magnitude += std::abs(squares[row * cols + col]);
      }
      return Target{total / static_cast<double>(cols), 100 * 0x1p-24 * magnitude / static_cast<double>(cols)};
    });
    max.require("row_max", [&, cols = cols](std::int64_t row) {
      const auto begin = squares.host.begin() + row * cols;
      return Target{static_cast<double>(*std::max_element(begin, begin + cols)), 0};
    });
    for_all_types([&, rows = rows, cols = cols]<class T>() {
      constexpr DType dtype = Format<T>::dtype;
      const Input<T> x(rows * cols, 4), weight(cols, 5);
      const Input<float> scale(rows, 6);
      Output<T> by_row(rows * cols), by_column(rows * cols);
      Output<float> sum(rows);
      cuda_primitives().scale_rows(exec, dtype, x.data(), scale.data(), by_row.data(), rows, cols);
      cuda_primitives().scale_columns(exec, dtype, x.data(), weight.data(), by_column.data(), rows, cols);
      cuda_primitives().row_sum(exec, dtype, x.data(), sum.data(), rows, cols);
      by_row.require("scale_rows", [&](std::int64_t i) { return within_ulps(x[i] * scale[i / cols], 1); });
      by_column.require("scale_columns", [&](std::int64_t i) { return within_ulps(x[i] * weight[i % cols], 1); });
      sum.require("row_sum", [&](std::int64_t row) {
        double total = 0, magnitude = 0;
        for (std::int64_t col = 0; col < cols; ++col) {
          total += x[row * cols + col];
          magnitude += std::abs(x[row * cols + col]);
        }
        return Target{total, 100 * 0x1p-24 * magnitude};
      });
    });
  }
  const Input<float> mean(std::vector<float>{0.0F, 1.0F, 1e-12F, 3e37F});
  Output<float> rstd(4);
  cuda_primitives().rsqrt_eps(exec, mean.data(), 1e-5F, rstd.data(), 4);
  rstd.require("rsqrt_eps",
               [&](std::int64_t i) { return within_ulps(1 / std::sqrt(mean[i] + static_cast<double>(1e-5F)), 2); });
}

TEST_CASE("naive rope steps, into a cache that holds tokens already", "[gpu][naive]") {
  if (skip_without_device()) return;
  const std::int64_t seq = 7, rows = 2 * seq, heads = 3, past = 4;
  const RowMap map{.seq = seq, .capacity = past + seq, .past = past};
  for_all_types([&]<class T>() {
    constexpr DType dtype = Format<T>::dtype;
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      for (const std::int64_t half : {1, 3, 40, 128}) {
        const std::int64_t n = rows * heads * half;
        const Input<T> x(2 * n, 7);
        const Input<float> table(seq * half, 8);
        Output<T> first(n), second(n), turned(n);
        cuda_primitives().split_pairs(exec, dtype, pairing, x.data(), first.data(), second.data(), rows, heads, half);
        cuda_primitives().multiply_by_phase(exec, dtype, first.data(), table.data(), turned.data(), rows, heads, half,
                                            seq);
        const auto place = [&](std::int64_t i, bool is_second) {  // of pair i in x
          const std::int64_t head = i / half * 2 * half, pair = i % half;
          return head + (pairing == Pairing::half ? pair + (is_second ? half : 0) : 2 * pair + (is_second ? 1 : 0));
        };
        first.require("split_pairs, first", [&](std::int64_t i) { return Target{x[place(i, false)], 0}; });
        second.require("split_pairs, second", [&](std::int64_t i) { return Target{x[place(i, true)], 0}; });
        turned.require("multiply_by_phase", [&](std::int64_t i) {
          const std::int64_t position = i / half / heads % seq;
          return within_ulps(x[place(i, false)] * table[position * half + i % half], 1);
        });

        const std::int64_t row_size = heads * 2 * half;
        DeviceBuffer<T> cache(2 * (past + seq) * row_size, unaligned, output_guard);
        cuda_primitives().merge_pairs(exec, dtype, pairing, first.data(), second.data(), cache.data(), rows, heads,
                                      half, map);
        const std::vector<T> stored = cache.read();
        CHECK(cache.guards_intact());
        for (std::int64_t row = 0; row < 2 * (past + seq); ++row) {
          const T* got = stored.data() + row * row_size;
          const std::int64_t token = row / (past + seq) * seq + row % (past + seq) - past;
          if (row % (past + seq) < past) {
            CHECK(DeviceBuffer<T>::untouched(got, row_size));
          } else {
            CHECK(std::equal(got, got + row_size, x.host.begin() + token * row_size,
                             [](T a, T b) { return to_double(a) == to_double(b); }));
          }
        }
      }
    }
  });
}

namespace {

struct ProductShape {
  std::int64_t m, n, k;
};

void check_product(const ProductShape& shape) {
  const auto [m, n, k] = shape;
  CAPTURE(shape.m, shape.n, shape.k);
  for_all_types([&, m = m, n = n, k = k]<class T>() {
    const Input<T> a(m * k, 9), b(n * k, 10);
    Output<T> c(m * n);
    cuda_primitives().product(exec, Format<T>::dtype, a.data(), b.data(), c.data(), m, n, k, {.seq = m, .capacity = m});
    c.require("product", [&](std::int64_t i) {
      double sum = 0, magnitude = 0;
      for (std::int64_t d = 0; d < k; ++d) {
        const double term = a[i / n * k + d] * b[i % n * k + d];
        sum += term;
        magnitude += std::abs(term);
      }
      return Target{sum, static_cast<double>(k) * 0x1p-24 * magnitude};
    });
  });
}

}  // namespace

TEST_CASE("naive product", "[gpu][naive]") {
  if (skip_without_device()) return;
  for (const ProductShape& shape :
       std::vector<ProductShape>{{1, 1, 1}, {6, 7, 31}, {64, 64, 32}, {63, 65, 33}, {129, 191, 64}, {1, 300, 1031}}) {
    check_product(shape);
  }
}

TEST_CASE("naive product of over 65535 tiles down, and across", "[gpu][naive][large]") {
  if (skip_without_device()) return;
  check_product({4194370, 1, 2});
  check_product({2, 4194370, 1});
}

TEST_CASE("naive product writes the mapped rows and nothing else", "[gpu][naive]") {
  if (skip_without_device()) return;
  const std::int64_t m = 6, n = 70, past = 4, seq = 3;
  const Input<float> a(m, 11), b(n, 12);
  DeviceBuffer<float> c(2 * (past + seq) * n, unaligned, output_guard);
  cuda_primitives().product(exec, DType::fp32, a.data(), b.data(), c.data(), m, n, 1,
                            {.seq = seq, .capacity = past + seq, .past = past});
  const std::vector<float> stored = c.read();
  CHECK(c.guards_intact());
  for (std::int64_t row = 0; row < 2 * (past + seq); ++row) {
    const std::int64_t token = row / (past + seq) * seq + row % (past + seq) - past;
    if (row % (past + seq) < past) {
      CHECK(DeviceBuffer<float>::untouched(stored.data() + row * n, n));
    } else {
      CHECK(stored[static_cast<std::size_t>(row * n + n - 1)] == static_cast<float>(a[token] * b[n - 1]));
    }
  }
}

namespace {

void check_attention(const AttentionShape& s) {
  CAPTURE(s.batch, s.seq, s.keys, s.heads, s.kv_heads, s.head_dim, s.causal);
  for_all_types([&]<class T>() {
    constexpr DType dtype = Format<T>::dtype;
    const std::int64_t rows = s.batch * s.heads * s.seq, d = s.head_dim;
    const Input<T> q(rows * d, 13, 4.0), k(s.batch * s.keys * s.kv_heads * d, 14), v(k.host.size(), 15);
    Output<float> scores(rows * s.keys), max(rows), sum(rows);
    Output<T> weights(rows * s.keys), probabilities(rows * s.keys), out(rows * d);
    cuda_primitives().scores(exec, dtype, q.data(), k.data(), scores.data(), s);
    cuda_primitives().row_max(exec, scores.data(), max.data(), rows, s.keys);
    cuda_primitives().exp_minus_max(exec, dtype, scores.data(), max.data(), weights.data(), rows, s.keys);
    cuda_primitives().row_sum(exec, dtype, weights.data(), sum.data(), rows, s.keys);
    cuda_primitives().divide_rows(exec, dtype, weights.data(), sum.data(), probabilities.data(), rows, s.keys);
    cuda_primitives().weighted_values(exec, dtype, probabilities.data(), v.data(), out.data(), s);
    const Input<float> got_scores(scores.read()), got_max(max.read()), got_sum(sum.read());
    const Input<T> got_weights(weights.read()), got_probabilities(probabilities.read());

    // Row r is (b, h, s) of the scores; where its query and a key's or value's head lie
    const auto query = [&](std::int64_t r) {
      return ((r / s.seq / s.heads * s.seq + r % s.seq) * s.heads + r / s.seq % s.heads) * d;
    };
    const auto key = [&](std::int64_t r, std::int64_t j) {
      return ((r / s.seq / s.heads * s.keys + j) * s.kv_heads + r / s.seq % s.heads * s.kv_heads / s.heads) * d;
    };
    const auto visible = [&](std::int64_t r, std::int64_t j) {
      return !s.causal || s.keys - 1 - j >= s.seq - 1 - r % s.seq;
    };
    scores.require("scores", [&](std::int64_t i) {
      const std::int64_t r = i / s.keys, j = i % s.keys;
      if (!visible(r, j)) return Target{-std::numeric_limits<double>::infinity(), 0};
      double dot = 0, magnitude = 0;
      for (std::int64_t e = 0; e < d; ++e) {
        dot += q[query(r) + e] * k[key(r, j) + e];
        magnitude += std::abs(q[query(r) + e] * k[key(r, j) + e]);
      }
      const double root = std::sqrt(static_cast<double>(d));
      return Target{dot / root, static_cast<double>(d + 4) * 0x1p-24 * magnitude / root};
    });
    max.require("row_max", [&](std::int64_t r) {
      const auto begin = got_scores.host.begin() + r * s.keys;
      return Target{static_cast<double>(*std::max_element(begin, begin + s.keys)), 0};
    });
    weights.require("exp_minus_max", [&](std::int64_t i) {
      if (!visible(i / s.keys, i % s.keys)) return Target{0, 0};
      // the difference is rounded to fp32 before its exponential
      return within_ulps(std::exp(static_cast<double>(static_cast<float>(got_scores[i] - got_max[i / s.keys]))), 4);
    });
    sum.require("row_sum", [&](std::int64_t r) {
      double total = 0;
      for (std::int64_t j = 0; j < s.keys; ++j) total += got_weights[r * s.keys + j];
      return within_ulps(total, 64);
    });
    probabilities.require("divide_rows", [&](std::int64_t i) {
      const double total = got_sum[i / s.keys];
      return total == 0 ? Target{0, 0} : within_ulps(got_weights[i] / total, 1);
    });
    out.require("weighted_values", [&](std::int64_t i) {
      const std::int64_t head = i / d, h = head % s.heads, position = head / s.heads;
      const std::int64_t r = (position / s.seq * s.heads + h) * s.seq + position % s.seq;
      double total = 0, magnitude = 0;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const double term = got_probabilities[r * s.keys + j] * v[key(r, j) + i % d];
        total += term;
        magnitude += std::abs(term);
      }
      return Target{total, static_cast<double>(s.keys) * 0x1p-24 * magnitude};
    });
  });
}

}  // namespace

TEST_CASE("naive attention steps", "[gpu][naive]") {
  if (skip_without_device()) return;
  for (const AttentionShape& shape : std::vector<AttentionShape>{
           {.batch = 1, .seq = 1, .keys = 1, .heads = 1, .kv_heads = 1, .head_dim = 1},
           {.batch = 2, .seq = 33, .keys = 33, .heads = 4, .kv_heads = 4, .head_dim = 64},
           {.batch = 2, .seq = 65, .keys = 65, .heads = 4, .kv_heads = 2, .head_dim = 80, .causal = true},
           {.batch = 1, .seq = 4, .keys = 9, .heads = 6, .kv_heads = 3, .head_dim = 6, .causal = true},
           {.batch = 1, .seq = 1, .keys = 2049, .heads = 6, .kv_heads = 3, .head_dim = 256, .causal = true},
           // rows without keys
           {.batch = 2, .seq = 5, .keys = 3, .heads = 2, .kv_heads = 1, .head_dim = 10, .causal = true}}) {
    check_attention(shape);
  }
}

TEST_CASE("naive attention of over 65535 heads", "[gpu][naive][large]") {
  if (skip_without_device()) return;
  check_attention({.batch = 35001, .seq = 1, .keys = 2, .heads = 2, .kv_heads = 1, .head_dim = 2});
}

TEST_CASE("naive weighted values take nothing from masked keys, infinite ones included", "[gpu][naive]") {
  if (skip_without_device()) return;
  const AttentionShape s{.batch = 1, .seq = 40, .keys = 140, .heads = 1, .kv_heads = 1, .head_dim = 8, .causal = true};
  std::vector<__half> weights(static_cast<std::size_t>(s.seq * s.keys), rounded<__half>(0.0));
  for (std::int64_t r = 0; r < s.seq; ++r) weights[static_cast<std::size_t>(r * s.keys + r)] = rounded<__half>(1.0);
  std::vector<__half> v = draw<__half>(s.keys * s.head_dim, 16);
  std::fill(v.begin() + s.seq * s.head_dim, v.end(), rounded<__half>(infinity));
  const Input<__half> device_weights(weights), device_v(v);
  Output<__half> out(s.seq * s.head_dim);
  cuda_primitives().weighted_values(exec, DType::fp16, device_weights.data(), device_v.data(), out.data(), s);
  out.require("weighted_values", [&](std::int64_t i) { return Target{device_v[i], 0}; });
}

TEST_CASE("naive weighted values refuse values that lie apart", "[gpu][naive]") {
  CHECK_THROWS_AS(cuda_primitives().weighted_values(exec, DType::fp16, nullptr, nullptr, nullptr, {.value_stride = 2}),
                  std::invalid_argument);
}

TEST_CASE("naive swiglu steps, hostile gates included", "[gpu][naive]") {
  if (skip_without_device()) return;
  for_all_types([&]<class T>() {
    constexpr DType dtype = Format<T>::dtype;
    std::vector<T> values = draw<T>(1000, 17, 20.0);
    const std::vector<double> hostile{-infinity, infinity, -1e4, -65504, 65504, 1e-7, -1e-7, -90, 0.0, -0.0};
    for (std::size_t i = 0; i < hostile.size(); ++i) values[i] = rounded<T>(hostile[i]);
    const Input<T> g(values);
    const auto n = static_cast<std::int64_t>(values.size());
    Output<T> sigmoid(n), gate(n);
    cuda_primitives().sigmoid(exec, dtype, g.data(), sigmoid.data(), n);
    cuda_primitives().gate(exec, dtype, g.data(), sigmoid.data(), gate.data(), n);
    const Input<T> got_sigmoid(sigmoid.read());
    // e^-g overflows fp32 from g = -88.7 on, where sigmoid is below 2^-127
    sigmoid.require("sigmoid", [&](std::int64_t i) {
      const Target exact = within_ulps(1 / (1 + std::exp(-g[i])), 4);
      return Target{exact.value, exact.slack + 0x1p-127};
    });
    gate.require("gate", [&](std::int64_t i) {
      return got_sigmoid[i] == 0 ? Target{0, 0} : within_ulps(g[i] * got_sigmoid[i], 1);
    });
  });
}

// Indices past 2^31: what lies there must be computed, and nothing below it instead.
TEST_CASE("naive steps over more than 2^31 elements", "[gpu][naive][large]") {
  if (skip_without_device()) return;
  const std::int64_t cols = 1025, rows = (std::int64_t{1} << 21) + 1, n = rows * cols, tail = 3000;
  if (skip_without_memory(n * 2 + (std::int64_t{1} << 28))) return;
  const std::vector<__half> values = draw<__half>(tail, 18);
  const auto fill = [&](DeviceBuffer<__half>& x) {
    x.clear();
    FUSEBENCH_CUDA_CHECK(cudaMemcpy(x.data() + n - tail, values.data(), tail * sizeof(__half), cudaMemcpyHostToDevice));
  };
  const auto value = [&](std::int64_t i) { return to_double(values[static_cast<std::size_t>(i)]); };
  DeviceBuffer<__half> x(n);
  const auto check_tail = [&](auto factor_of) {
    const std::vector<__half> got = x.read(n - tail, tail);
    std::vector<double> expected, slack;
    for (std::int64_t i = 0; i < tail; ++i) {
      expected.push_back(value(i) * factor_of(n - tail + i));
      slack.push_back(std::abs(expected.back()) * 0x1p-23);
    }
    CHECK(mismatch(got, expected, slack) == "");
    for (const __half element : x.read(0, tail)) CHECK(to_double(element) == 0);
  };

  fill(x);
  cuda_primitives().add(exec, DType::fp16, x.data(), x.data(), x.data(), n);
  check_tail([](std::int64_t) { return 2.0; });

  const Input<__half> weight(cols, 19);
  fill(x);
  cuda_primitives().scale_columns(exec, DType::fp16, x.data(), weight.data(), x.data(), rows, cols);
  check_tail([&](std::int64_t i) { return weight[i % cols]; });

  const Input<__half> a(rows, 20);
  cuda_primitives().product(exec, DType::fp16, a.data(), weight.data(), x.data(), rows, cols, 1,
                            {.seq = rows, .capacity = rows});
  const std::vector<__half> corner = x.read(n - cols, cols);
  for (std::int64_t col = 0; col < cols; ++col) {
    CHECK(matches(corner[static_cast<std::size_t>(col)], a[rows - 1] * weight[col], 0.0));
  }
}
