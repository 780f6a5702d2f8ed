// libm's last bits differ from one machine to the next, so logarithm, exponential, cosine and sine are written here
// from additions, multiplications, divisions and fused multiply-adds, which IEEE 754 defines to the bit.
#include "harness/phases.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace fusebench {
namespace {

constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // ln 2 = high + low; n · high is exact for |n| < 2^10
constexpr double kLn2Low = 0x1.ef35793c76730p-45;
constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;  // pi / 2 = high + low
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;

/// c[0] + c[1]·x + c[2]·x² + ...
template <std::size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = std::fma(sum, x, c[i]);
  return sum;
}

constexpr double factorial(std::size_t n) {
  double product = 1;
  for (std::size_t i = 2; i <= n; ++i) product *= static_cast<double>(i);
  return product;
}

/// The series of cos(x) (first = 0) or of sin(x)/x (first = 1) in x².
template <std::size_t... I>
constexpr std::array<double, sizeof...(I)> alternating_series(std::size_t first, std::index_sequence<I...>) {
  return {(I % 2 == 0 ? 1.0 : -1.0) / factorial(2 * I + first)...};
}

template <std::size_t... I>
constexpr std::array<double, sizeof...(I)> exponential_series(std::index_sequence<I...>) {
  return {1.0 / factorial(I)...};
}

/// atanh(s)/s in s².
template <std::size_t... I>
constexpr std::array<double, sizeof...(I)> atanh_series(std::index_sequence<I...>) {
  return {1.0 / static_cast<double>(2 * I + 1)...};
}

double natural_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact, in [0.5, 1)
  if (mantissa < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2): keeps |s| below 0.172
    mantissa *= 2;
    --exponent;
  }
  constexpr auto kSeries = atanh_series(std::make_index_sequence<14>{});
  const double s = (mantissa - 1) / (mantissa + 1);
  const double log_mantissa = 2 * s * polynomial(kSeries, s * s);
  return std::fma(exponent, kLn2High, std::fma(exponent, kLn2Low, log_mantissa));
}

double exponential(double x) {
  constexpr auto kSeries = exponential_series(std::make_index_sequence<15>{});
  const double n = std::nearbyint(x * 0x1.71547652b82fep+0);  // 1 / ln 2
  const double reduced = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x));
  return std::ldexp(polynomial(kSeries, reduced), static_cast<int>(n));
}

}  // namespace

double rope_frequency(double theta, std::int64_t pair, std::int64_t head_dim) {
  if (pair == 0) return 1;
  const double power = static_cast<double>(2 * pair) / static_cast<double>(head_dim);
  return exponential(-power * natural_log(theta));
}

CosSin cos_sin(double phase) {
  // phase - n·pi/2: each fused step is exact but for one rounding of its small result
  const double n = std::nearbyint(phase * 0x1.45f306dc9c883p-1);
  const double x = std::fma(-n, kHalfPiLow, std::fma(-n, kHalfPiHigh, phase));
  constexpr auto kCos = alternating_series(0, std::make_index_sequence<10>{});
  constexpr auto kSin = alternating_series(1, std::make_index_sequence<10>{});
  const double cos = polynomial(kCos, x * x);
  const double sin = x * polynomial(kSin, x * x);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {cos, sin};
    case 1:
      return {-sin, cos};
    case 2:
      return {-cos, -sin};
    default:
      return {sin, -cos};
  }
}

}  // namespace fusebench
