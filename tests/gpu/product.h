// A product in double precision, straight from its definition, with a bound on what fp32 accumulation may add to it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/gpu/device.h"

namespace fusebench::testing {

struct Product {
  std::int64_t m, n;
  std::vector<double> value;  ///< [m, n]
  std::vector<double> slack;  ///< [m, n], absolute

  double at(std::int64_t row, std::int64_t col) const { return value[static_cast<std::size_t>(row * n + col)]; }
  double slack_at(std::int64_t row, std::int64_t col) const { return slack[static_cast<std::size_t>(row * n + col)]; }
};

template <typename T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> wide(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) wide[i] = to_double(values[i]);
  return wide;
}

/// a[m, k] · b[n, k]ᵀ. The slack is that of k additions in fp32, each within one unit in the last place: tensor cores
/// truncate.
template <typename T>
Product product(const std::vector<T>& a, const std::vector<T>& b, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::vector<double> wide_a = widened(a), wide_b = widened(b);
  Product result{m, n, {}, {}};
  result.value.reserve(static_cast<std::size_t>(m * n));
  result.slack.reserve(static_cast<std::size_t>(m * n));
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t col = 0; col < n; ++col) {
      const double* x = wide_a.data() + row * k;
      const double* y = wide_b.data() + col * k;
      double sum = 0.0, magnitude = 0.0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum += x[i] * y[i];
        magnitude += std::abs(x[i] * y[i]);
      }
      result.value.push_back(sum);
      result.slack.push_back(static_cast<double>(k) * 0x1p-23 * magnitude);
    }
  }
  return result;
}

/// Empty where one kernel's results are those of another, which adds in another order, or a line as of `mismatch`.
template <typename T>
std::string disagreement(const std::vector<T>& got, const std::vector<T>& other) {
  const std::vector<double> expected = widened(other);
  std::vector<double> slack;
  slack.reserve(expected.size());
  for (const double value : expected) slack.push_back(std::abs(value) * 2 * Format<T>::unit_roundoff + 0.01);
  return mismatch(got, expected, slack);
}

}  // namespace fusebench::testing
