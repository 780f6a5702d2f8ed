// What the CPU kernels do with one row that is in cache. Reductions run in 16 interleaved partial results, so that they
// vectorise and their order depends on the length alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "kernels/cpu/vector_math.h"
#include "kernels/types.h"

namespace fusebench::kernels::cpu {

inline constexpr std::int64_t lanes = 16;

/// In double: fp32 squares overflow from |x| = 2^64 on.
inline double sum_of_squares(const float* x, std::int64_t n) {
  std::array<double, lanes> partial{};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      partial[lane] += value * value;
    }
  }
  for (std::int64_t lane = 0; i + lane < n; ++lane) {
    const auto value = static_cast<double>(x[i + lane]);
    partial[lane] += value * value;
  }
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

/// -inf for an empty row; NaN is passed over.
inline float max_of(const float* x, std::int64_t n) {
  std::array<float, lanes> partial;
  partial.fill(-std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      partial[lane] = x[i + lane] > partial[lane] ? x[i + lane] : partial[lane];
    }
  }
  for (std::int64_t lane = 0; i + lane < n; ++lane) partial[lane] = std::max(partial[lane], x[i + lane]);
  return *std::max_element(partial.begin(), partial.end());
}

/// out = e^(x - max), which may be x itself; returns the sum of out.
inline float exp_minus(const float* x, float max, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = exp_fp32(x[i] - max);
  std::array<float, lanes> partial{};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) partial[lane] += out[i + lane];
  }
  for (std::int64_t lane = 0; i + lane < n; ++lane) partial[lane] += out[i + lane];
  float sum = 0;
  for (const float part : partial) sum += part;
  return sum;
}

inline void scale_in_place(float* x, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

/// Rotates one head's row of 2·half_dim elements by the angles whose cos and sin are given; out may be x.
inline void rotate_head(Pairing pairing, const float* x, const float* cos, const float* sin, float* out,
                        std::int64_t half_dim) {
  const auto rotate = [&](std::int64_t first, std::int64_t second, std::int64_t i) {
    const float a = x[first];
    const float b = x[second];
    out[first] = a * cos[i] - b * sin[i];
    out[second] = a * sin[i] + b * cos[i];
  };
  if (pairing == Pairing::interleaved) {
    for (std::int64_t i = 0; i < half_dim; ++i) rotate(2 * i, 2 * i + 1, i);
  } else {
    for (std::int64_t i = 0; i < half_dim; ++i) rotate(i, i + half_dim, i);
  }
}

/// Keys that query s sees.
inline std::int64_t visible_keys(const AttentionShape& shape, std::int64_t s) {
  return shape.causal ? std::max<std::int64_t>(0, shape.keys - shape.seq + s + 1) : shape.keys;
}

}  // namespace fusebench::kernels::cpu
