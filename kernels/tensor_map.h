// Descriptions of tensors for bulk tensor copies (TMA). Host code.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "kernels/types.h"

namespace fusebench::kernels::cuda {

/// A dense tensor of 16-bit elements, read in boxes that land in shared memory with the 128-byte swizzle. Extents and
/// box come innermost first; the box has 64 elements there. Throws std::invalid_argument where TMA cannot take it: the
/// base and every stride must be a multiple of 16 bytes, and extents stay below 2^31.
CUtensorMap tensor_map(DType dtype, const void* base, std::span<const std::int64_t> extents, std::span<const int> box);

/// A matrix [rows, cols], box_rows at a time.
CUtensorMap matrix_map(DType dtype, const void* base, std::int64_t rows, std::int64_t cols, int box_rows);

}  // namespace fusebench::kernels::cuda
