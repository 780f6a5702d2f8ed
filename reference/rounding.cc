#include "reference/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fusebench::reference {
namespace {

constexpr int kMantissaBits = 52;  // of double
constexpr std::int64_t kBias = 1023;

/// A binary format whose values are multiples of 2^(exponent - mantissa_bits), the exponent being the value's own, but
/// at least min_exponent: below it lie the subnormals.
struct Format {
  std::int64_t mantissa_bits;
  std::int64_t min_exponent;
  std::int64_t max_exponent;
};

constexpr Format kFp16 = {10, -14, 15};
constexpr Format kBf16 = {7, -126, 127};
constexpr Format kFp32 = {23, -126, 127};

constexpr double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kBias) << kMantissaBits);
}

/// The addition does the rounding: the last place of 1.5 · 2^(52 + s) is 2^s, so that adding it to a smaller value
/// leaves a multiple of 2^s, rounded to nearest even by the FPU, and taking it away again is exact.
template <Format kFormat>
double round_one(double value) {
  constexpr double kLargest =
      (2 - power_of_two(-kFormat.mantissa_bits)) * power_of_two(kFormat.max_exponent);  // finite
  const auto biased = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(std::abs(value)) >> kMantissaBits);
  // One above the largest exponent is coarse enough for all that overflows, infinity and NaN among it.
  const std::int64_t exponent =
      std::min(std::max(biased, kFormat.min_exponent + kBias), kFormat.max_exponent + 1 + kBias);
  const double anchor =
      1.5 * std::bit_cast<double>(static_cast<std::uint64_t>(exponent - kFormat.mantissa_bits + kMantissaBits)
                                  << kMantissaBits);
  const double magnitude = (std::abs(value) + anchor) - anchor;
  const double finite_or_infinite = magnitude > kLargest ? std::numeric_limits<double>::infinity() : magnitude;
  return std::copysign(finite_or_infinite, value);
}

template <Format kFormat>
void round_each(double* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = round_one<kFormat>(values[i]);
}

}  // namespace

double rounded(Rounding format, double value) {
  round_all(format, &value, 1);
  return value;
}

void round_all(Rounding format, double* values, Index count) {
  switch (format) {
    case Rounding::none:
      return;
    case Rounding::fp16:
      return round_each<kFp16>(values, count);
    case Rounding::bf16:
      return round_each<kBf16>(values, count);
    case Rounding::fp32:
      return round_each<kFp32>(values, count);
  }
}

}  // namespace fusebench::reference
