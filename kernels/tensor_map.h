// Descriptions of tensors for bulk tensor copies (TMA). Host code.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace fusebench::kernels::cuda {

/// One dimension of a tensor of 16-bit elements; `box` is how many of its places a copy takes.
struct TensorDimension {
  std::int64_t extent;
  std::int64_t stride;  ///< elements
  int box;
};

/// A tensor that TMA reads or writes in boxes, a box's first dimension innermost in shared memory. That one has stride
/// 1, and with the 128-byte swizzle a box of 64. Throws std::invalid_argument where TMA cannot take it: the base
/// and every other stride must be a multiple of 16 bytes, and extents stay below 2^31.
CUtensorMap tensor_map(DType dtype, const void* base, std::span<const TensorDimension> dimensions,
                       CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B);

/// A matrix [rows, cols], read in swizzled boxes of box_rows by 64.
CUtensorMap matrix_map(DType dtype, const void* base, std::int64_t rows, std::int64_t cols, int box_rows);

}  // namespace fusebench::kernels::cuda
