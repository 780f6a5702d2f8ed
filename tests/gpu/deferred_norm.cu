// Norms deferred behind products: the sums of squares, the folded weight, and the factor in the epilogues.
#include "kernels/deferred_norm.h"

#include <array>

#include "kernels/fused_cuda.h"
#include "tests/catch.h"
#include "tests/gpu/hopper_cases.h"
#include "tests/gpu/product.h"

namespace {

using namespace fusebench;
using namespace fusebench::testing;
using kernels::DeferredNorm;
using kernels::GemmKernel;
using kernels::kSquaresColumns;

const Exec exec{Backend::cuda, nullptr};

template <typename T>
double square_sum(const std::vector<T>& values, std::int64_t first, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = first; i < first + count; ++i)
    sum += std::pow(to_double(values[static_cast<std::size_t>(i)]), 2);
  return sum;
}

template <typename T>
void check_row_squares(std::int64_t rows, std::int64_t cols, std::int64_t offset) {
  CAPTURE(rows, cols, offset, name_of(Format<T>::dtype));
  const std::vector<T> x = draw<T>(rows * cols, 1);
  const DeviceBuffer<T> device_x(x, offset);
  DeviceBuffer<float> squares(rows, 0, output_guard);
  kernels::cuda::row_squares(exec, Format<T>::dtype, device_x.data(), squares.data(), rows, cols);
  std::vector<double> expected, slack;
  for (std::int64_t row = 0; row < rows; ++row) {
    expected.push_back(square_sum(x, row * cols, cols));
    slack.push_back(expected.back() * static_cast<double>(cols) * 0x1p-24);
  }
  CHECK(mismatch(squares.read(), expected, slack) == "");
  CHECK(squares.guards_intact());
}

template <typename T>
void check_fold(double largest, double expected_fold) {
  CAPTURE(largest, name_of(Format<T>::dtype));
  const std::int64_t rows = 37, cols = 65;
  const std::vector<T> weight = draw<T>(rows * cols, 1);
  std::vector<T> norm = draw<T>(cols, 2, 1.0);  // within 1
  for (T& value : norm) value = rounded<T>(std::fmod(to_double(value), 1.0) * largest);
  norm[40] = rounded<T>(-largest);
  const DeviceBuffer<T> device_norm(norm);
  DeviceBuffer<T> folded(weight, 0, output_guard);
  DeviceBuffer<float> fold(1, 0, output_guard);
  kernels::cuda::fold_norm(exec, Format<T>::dtype, device_norm.data(), folded.data(), fold.data(), rows, cols);
  CHECK(fold.read()[0] == expected_fold);
  std::vector<double> expected, slack(weight.size());
  for (std::size_t i = 0; i < weight.size(); ++i) {
    expected.push_back(to_double(weight[i]) * to_double(norm[i % cols]) * expected_fold);
    slack[i] = std::abs(expected[i]) * 0x1p-23;
  }
  CHECK(mismatch(folded.read(), expected, slack) == "");
  CHECK((folded.guards_intact() && fold.guards_intact()));
}

template <typename T>
void check_residual_squares(std::int64_t m, std::int64_t n, std::int64_t k, bool in_place = false,
                            kernels::ProductKernel with = GemmKernel::hopper) {
  CAPTURE(m, n, k, in_place, name_of(Format<T>::dtype));
  const std::int64_t parts = kernels::ceil_div(n, kSquaresColumns);
  const std::vector<T> added = draw<T>(m * n, 3, 4.0);
  const DeviceBuffer<T> a(draw<T>(m * k, 1)), weight(draw<T>(n * k, 2)), residual(added);
  DeviceBuffer<T> plain(m * n, 0, output_guard);
  DeviceBuffer<T> out = in_place ? DeviceBuffer<T>(added, 0, output_guard) : DeviceBuffer<T>(m * n, 0, output_guard);
  DeviceBuffer<float> squares(m * parts, 0, output_guard);
  kernels::cuda::product_residual(exec, GemmKernel::hopper, Format<T>::dtype, a.data(), weight.data(), residual.data(),
                                  plain.data(), m, n, k, nullptr);
  kernels::cuda::product_residual(exec, with, Format<T>::dtype, a.data(), weight.data(),
                                  in_place ? out.data() : residual.data(), out.data(), m, n, k, squares.data());
  const std::vector<T> stored = out.read();
  CHECK(disagreement(stored, plain.read()) == "");  // the plain one may take other tiles
  std::vector<double> expected, slack;
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = part * kSquaresColumns;
      expected.push_back(square_sum(stored, row * n + first, std::min(n - first, kSquaresColumns)));
      slack.push_back(expected.back() * 0x1p-17);
    }
  }
  CHECK(mismatch(squares.read(), expected, slack) == "");
  CHECK((out.guards_intact() && squares.guards_intact()));
}

/// Squares in `parts` for which row r's factor is 2^(r % 3 - 1), with fold 1/2.
struct Factors {
  std::int64_t m, k, parts;

  double factor(std::int64_t row) const { return std::exp2(static_cast<double>(row % 3 - 1)); }
  std::vector<float> squares() const {
    std::vector<float> values;
    for (std::int64_t row = 0; row < m; ++row) {
      const double sum = static_cast<double>(k) * std::pow(2.0 / factor(row), 2);
      for (std::int64_t part = 0; part < parts; ++part) {
        values.push_back(static_cast<float>(part + 1 < parts ? sum / 64.0 : sum * (65.0 - parts) / 64.0));
      }
    }
    return values;
  }
  /// Multiples of 2^-9 (bf16: rounded further), so that no factor makes them subnormal and rounds them.
  template <typename T>
  std::vector<T> rows() const {
    std::vector<T> a = draw<T>(m * k, 1);
    for (T& value : a) value = rounded<T>(std::round(to_double(value) * 0x1p9) * 0x1p-9);
    return a;
  }
  template <typename T>
  std::vector<T> scaled(std::vector<T> a) const {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = rounded<T>(to_double(a[i]) * factor(static_cast<std::int64_t>(i) / k));
    }
    return a;
  }
};

template <typename T>
void check_same(const DeviceBuffer<T>& result, const DeviceBuffer<T>& of_scaled_rows) {
  const std::vector<double> expected = widened(of_scaled_rows.read());
  std::vector<double> slack;
  for (const double value : expected) slack.push_back(std::abs(value) * 0x1p-18);
  CHECK(mismatch(result.read(), expected, slack) == "");
  CHECK(result.guards_intact());
}

template <typename T>
void check_norm_swiglu(std::int64_t hidden, const Factors& factors) {
  const std::int64_t m = factors.m, k = factors.k;
  CAPTURE(m, hidden, factors.parts, name_of(Format<T>::dtype));
  const std::vector<T> rows = factors.rows<T>();
  const DeviceBuffer<T> a(rows), scaled(factors.scaled(rows)), gate_up(draw<T>(2 * hidden * k, 2));
  const DeviceBuffer<float> squares(factors.squares()), fold(std::vector<float>{0.5f});
  const auto launch = [&](const DeviceBuffer<T>& x, const DeferredNorm& norm) {
    DeviceBuffer<T> y(m * hidden, 0, output_guard);
    kernels::cuda::product_swiglu(exec, GemmKernel::hopper, Format<T>::dtype, x.data(), gate_up.data(), y.data(), m,
                                  hidden, k, norm);
    return y;
  };
  check_same(launch(a, {squares.data(), factors.parts, 0, fold.data()}), launch(scaled, {}));
}

template <typename T>
void check_norm_rope(const kernels::QkvShape& shape, const Factors& factors) {
  CAPTURE(shape.rows, shape.heads, shape.kv_heads, shape.head_dim, factors.parts, name_of(Format<T>::dtype));
  const std::int64_t m = shape.rows, k = shape.dim, phases = shape.seq * shape.head_dim / 2;
  const std::int64_t q_size = m * shape.heads * shape.head_dim;
  const std::int64_t kv_size = shape.kv_rows.capacity * shape.kv_heads * shape.head_dim;
  const std::vector<T> rows = factors.rows<T>();
  const DeviceBuffer<T> a(rows), scaled(factors.scaled(rows)), weight(draw<T>(shape.columns() * k, 3));
  const DeviceBuffer<float> squares(factors.squares()), fold(std::vector<float>{0.5f});
  const DeviceBuffer<float> cos(draw<float>(phases, 4)), sin(draw<float>(phases, 5));
  const std::vector<T> cache = draw<T>(kv_size, 6);
  const auto launch = [&](const DeviceBuffer<T>& x, const DeferredNorm& norm) {
    std::array results = {DeviceBuffer<T>(q_size, 0, output_guard), DeviceBuffer<T>(cache, 0, output_guard),
                          DeviceBuffer<T>(cache, 0, output_guard)};
    kernels::cuda::product_rope(exec, GemmKernel::hopper, Format<T>::dtype, x.data(), weight.data(), cos.data(),
                                sin.data(), results[0].data(), results[1].data(), results[2].data(), shape, norm);
    return results;
  };
  const auto normed = launch(a, {squares.data(), factors.parts, 0, fold.data()}), plain = launch(scaled, {});
  for (std::size_t i = 0; i < normed.size(); ++i) check_same(normed[i], plain[i]);
}

}  // namespace

TEST_CASE("row_squares sums rows of every length") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const std::int64_t cols : {1, 7, 8, 40, 130, 256, 4096, 40000}) {
      for (const std::int64_t rows : {1, 5}) check_row_squares<T>(rows, cols, 0);
      check_row_squares<T>(3, cols, 1);
    }
    check_row_squares<T>(3000, 136, 0);
  });
}

TEST_CASE("fold_norm scales by a power of two, so that no weight grows") {
  if (skip_without_device()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    check_fold<T>(1.0, 0.5);
    check_fold<T>(0.75, 1.0);
    check_fold<T>(1000.0, 0x1p-10);
    check_fold<T>(0x1p-9, 0x1p8);
    check_fold<T>(0.0, 1.0);
  });
}

TEST_CASE("a Hopper product sums the squares of what it stores") {
  if (skip_without_hopper()) return;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const std::int64_t m : {1, 129, 300}) {
      for (const std::int64_t n : {32, 96, 128, 160, 288, 512}) check_residual_squares<T>(m, n, 72);
    }
    // Tiles are those of 132 multiprocessors.
    check_residual_squares<T>(2300, 5120, 40);   // wide and narrow tiles, a second group of rows
    check_residual_squares<T>(129, 42208, 136);  // four a pair
    check_residual_squares<T>(66, 12704, 7616);  // 119 slices
    check_residual_squares<T>(300, 4128, 72, true);
  });
}

TEST_CASE("a Hopper product sums squares in every tile") {
  if (skip_without_hopper()) return;
  for_hopper_cases([](const HopperCase& c, kernels::ProductKernel with) {
    for_types<__half, __nv_bfloat16>([&]<typename T>() { check_residual_squares<T>(c.m, c.n, c.k, false, with); });
  });
}

TEST_CASE("a deferred norm multiplies the rows of a Hopper product") {
  if (skip_without_hopper()) return;
  const std::int64_t k = 256;
  for_types<__half, __nv_bfloat16>([&]<typename T>() {
    for (const std::int64_t m : {3, 200, 1500}) {
      for (const std::int64_t parts : {1, 3, 4, 32, 33}) {
        check_norm_swiglu<T>(144, {m, k, parts});
        check_norm_rope<T>({m, k, 2, 1, 64, m, {m, m, 0}, Pairing::half}, {m, k, parts});
      }
    }
    // On 132 multiprocessors several tiles a cluster, behind older rows: wide ones, then narrow ones too.
    check_norm_rope<T>({1532, k, 37, 31, 128, 1532, {1532, 1555, 23}, Pairing::interleaved}, {1532, k, 2});
    check_norm_rope<T>({1404, k, 80, 60, 64, 1404, {1404, 1427, 23}, Pairing::half}, {1404, k, 64});
  });
}

TEST_CASE("other kernels refuse a deferred norm") {
  if (skip_without_device()) return;
  const DeviceBuffer<__half> x(64);
  DeviceBuffer<__half> out(64);
  DeviceBuffer<float> squares(8);
  const DeferredNorm norm{.squares = squares.data(), .parts = 1, .eps = 0, .fold = squares.data()};
  CHECK_THROWS_AS(kernels::cuda::product_swiglu(exec, GemmKernel::portable, DType::fp16, x.data(), x.data(), out.data(),
                                                8, 4, 8, norm),
                  std::invalid_argument);
  CHECK_THROWS_AS(kernels::cuda::product_residual(exec, GemmKernel::portable, DType::fp16, x.data(), x.data(), x.data(),
                                                  out.data(), 8, 8, 8, squares.data()),
                  std::invalid_argument);
}
