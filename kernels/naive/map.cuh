// How the naive steps walk over elements: one thread an element, over flat arrays or over rows.
#pragma once

#include "kernels/device.cuh"

namespace fusebench::kernels::naive {

constexpr int threads_per_block = 256;

/// A grid of one thread an element of [rows, cols]: rows along x, pieces of a row along y. Both are strided over.
inline dim3 row_grid(std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t max_y = 65535;
  return {grid_for(rows, 1),
          static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div<std::int64_t>(cols, threads_per_block), 1, max_y))};
}

/// Calls f(row, col) for every element, with the grid and block above.
template <class F>
__device__ __forceinline__ void for_each_in_rows(std::int64_t rows, std::int64_t cols, F f) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    for (std::int64_t col = first; col < cols; col += stride) f(row, col);
  }
}

/// Calls f(i) for every i < n, over a one-dimensional grid.
template <class F>
__device__ __forceinline__ void for_each(std::int64_t n, F f) {
  for (std::int64_t i = grid_thread(); i < n; i += grid_threads()) f(i);
}

}  // namespace fusebench::kernels::naive
