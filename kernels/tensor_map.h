// Descriptions of matrices for bulk tensor copies (TMA). Host code.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/types.h"

namespace fusebench::kernels::cuda {

/// A dense row-major matrix[rows, cols] of 16-bit elements, read in boxes of box_rows rows and 64 columns which land in
/// shared memory with the 128-byte swizzle. Throws std::invalid_argument where TMA cannot take it: the base and the
/// rows must begin at multiples of 16 bytes, and extents stay below 2^31.
CUtensorMap tensor_map(DType dtype, const void* base, std::int64_t rows, std::int64_t cols, int box_rows);

}  // namespace fusebench::kernels::cuda
