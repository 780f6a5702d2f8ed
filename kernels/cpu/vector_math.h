// fp32 functions without branches or calls, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace fusebench::kernels {

/// e^x to 2 ulp over all floats: subnormal results, 0, infinity and NaN included. x = n·ln 2 + r with |r| <= ln(2) / 2,
/// a polynomial for e^r, and 2^n as a product of two powers so that neither leaves the exponent's range.
inline float exp_fp32(float x) {
  // Beyond these the result is 0 or infinity anyhow. NaN passes both comparisons unchanged.
  x = x < -104.0F ? -104.0F : x;
  x = x > 89.0F ? 89.0F : x;
  constexpr float log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693145752F;   // 12 trailing zero bits: n · ln2_high is exact
  constexpr float ln2_low = 1.42860677e-6F;  // ln 2 - ln2_high
  constexpr float to_integer = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer, in the low bits
  const float shifted = x * log2_e + to_integer;
  const std::int32_t n = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(to_integer);
  const float whole = shifted - to_integer;
  const float r = (x - whole * ln2_high) - whole * ln2_low;
  float e = 1.0F / 5040.0F;  // the Taylor series: its next term is below 2^-27 for |r| <= 0.35
  e = e * r + 1.0F / 720.0F;
  e = e * r + 1.0F / 120.0F;
  e = e * r + 1.0F / 24.0F;
  e = e * r + 1.0F / 6.0F;
  e = e * r + 0.5F;
  e = e * r + 1.0F;
  e = e * r + 1.0F;
  const std::int32_t half = n >> 1;
  const auto power_of_two = [](std::int32_t exponent) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
  };
  return e * power_of_two(half) * power_of_two(n - half);
}

/// g / (1 + e^-g), as g · e^g / (1 + e^g) for negative g, where e^-g would overflow long before the result is 0. Below
/// -200 the result is 0, the limit for -inf, where the formula would be -inf · 0.
inline float silu_fp32(float g) {
  const float e = exp_fp32(g < 0.0F ? g : -g);
  const float product = g * ((g < 0.0F ? e : 1.0F) / (1.0F + e));
  return g < -200.0F ? 0.0F : product;
}

}  // namespace fusebench::kernels
