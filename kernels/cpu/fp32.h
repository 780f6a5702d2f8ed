// The CPU kernels compute in fp32 alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/types.h"

namespace fusebench::kernels {

inline void require_fp32(DType dtype) {
  if (dtype == DType::fp32) return;
  throw std::invalid_argument("the CPU kernels take fp32, not " + std::string(name_of(dtype)));
}

inline const float* fp32(const void* data) { return static_cast<const float*>(data); }
inline float* fp32(void* data) { return static_cast<float*>(data); }

/// Rows, or elements, that are worth a thread's while: about 64 KiB of a tensor.
inline std::int64_t grain_for(std::int64_t row_elements) {
  constexpr std::int64_t elements = 16384;
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, row_elements));
}

}  // namespace fusebench::kernels
