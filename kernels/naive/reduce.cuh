// Row reductions: one block a row. Every thread folds the elements t, t + 256, ..., then a tree folds the threads, so
// the order of the operations depends on the row's length alone.
#pragma once

#include "kernels/naive/map.cuh"

namespace fusebench::kernels::naive {

/// Folds element(0) .. element(cols - 1) with `combine`, whose neutral element is `identity`. All threads of a block of
/// threads_per_block must call it; thread 0 gets the result. It may be called again at once.
template <class Element, class Combine>
__device__ float reduce_row(std::int64_t cols, float identity, Element element, Combine combine) {
  __shared__ float partial[threads_per_block];
  float mine = identity;
  for (std::int64_t col = threadIdx.x; col < cols; col += threads_per_block) mine = combine(mine, element(col));
  partial[threadIdx.x] = mine;
  __syncthreads();
  for (int width = threads_per_block / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) {
      partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + width]);
    }
    __syncthreads();
  }
  const float result = partial[0];
  __syncthreads();  // partial is written again by the next row
  return result;
}

}  // namespace fusebench::kernels::naive
