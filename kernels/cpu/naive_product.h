// The inner product behind the naive variant's products.
#pragma once

#include <array>
#include <cstdint>

namespace fusebench::kernels::cpu_naive {

/// sum of a[i] · b[i] over n elements, in 16 interleaved partial sums so that the compiler can vectorise it.
inline float dot(const float* a, const float* b, std::int64_t n) {
  constexpr std::int64_t lanes = 16;
  std::array<float, lanes> partial{};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) partial[lane] += a[i + lane] * b[i + lane];
  }
  for (std::int64_t lane = 0; i + lane < n; ++lane) partial[lane] += a[i + lane] * b[i + lane];
  for (std::int64_t width = lanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
  }
  return partial[0];
}

}  // namespace fusebench::kernels::cpu_naive
