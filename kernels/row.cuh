// Kernels that keep a row of a matrix in registers: blockDim.x threads share a row, a block holds blockDim.y rows, and
// a thread has every blockDim.x-th pack of its row, at most `Chunks` of them. Rows that do not fit take one block each
// and are read twice.
#pragma once

#include "kernels/device.cuh"

namespace fusebench::kernels::cuda {

constexpr int max_row_threads = 512;  ///< leaves a thread 128 registers

struct RowLaunch {
  dim3 grid;
  dim3 block;
  int chunks;  ///< a power of two; 0 where the row does not fit
};

inline std::int64_t bit_ceil(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/// For rows of `packs` packs. Many rows: four loads in flight a thread. Few rows: more threads a row, for latency.
inline RowLaunch row_launch(std::int64_t rows, std::int64_t packs, int max_chunks) {
  constexpr std::int64_t many_rows = 1024, block_threads = 128;
  const std::int64_t wanted = ceil_div<std::int64_t>(packs, rows >= many_rows ? 4 : 1);
  std::int64_t threads = std::min<std::int64_t>(ceil_div<std::int64_t>(wanted, 32) * 32, max_row_threads);
  if (packs < 32) threads = bit_ceil(packs);  // a part of a warp: a power of two, so that shuffles stay inside
  const std::int64_t chunks = bit_ceil(ceil_div(packs, threads));
  const std::int64_t rows_per_block = std::max<std::int64_t>(block_threads / threads, 1);
  if (chunks > max_chunks) return {grid_for(rows, 1), max_row_threads, 0};
  return {grid_for(rows, rows_per_block), dim3(static_cast<unsigned>(threads), static_cast<unsigned>(rows_per_block)),
          static_cast<int>(chunks)};
}

/// Calls f.operator()<Chunks>() with the launch's chunks, a power of two up to Max.
template <int Max, class F>
void dispatch_chunks(int chunks, F&& f) {
  if (chunks == Max) return f.template operator()<Max>();
  if constexpr (Max > 1) dispatch_chunks<Max / 2>(chunks, f);
}

/// `value` combined over the threads of each row, the same bits in all of them and in every launch. Every thread of the
/// block calls it, those without a row too. blockDim.x is a power of two below 32 or a multiple of 32, and the block a
/// whole number of warps.
template <class Combine>
__device__ __forceinline__ float reduce_row(float value, float identity, Combine combine) {
  constexpr unsigned everyone = 0xffffffffu;
  for (unsigned offset = min(blockDim.x, 32u) / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(everyone, value, offset));
  }
  if (blockDim.x <= 32) return value;

  __shared__ float partial[max_row_threads / 32];
  const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32, first = threadIdx.y * warps;
  __syncthreads();  // the last reduction's partials have been read
  if (lane == 0) partial[first + threadIdx.x / 32] = value;
  __syncthreads();
  value = lane < warps ? partial[first + lane] : identity;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(everyone, value, offset));
  return value;
}

__device__ __forceinline__ float row_sum(float value) {
  return reduce_row(value, 0.0f, [](float a, float b) { return a + b; });
}

__device__ __forceinline__ float row_max(float value) {
  return reduce_row(value, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
}

/// 1 / sqrt(mean of a row's squares + eps)
__device__ __forceinline__ float rstd_of(float squares, std::int64_t cols, float eps) {
  return rsqrtf(__fdividef(squares, static_cast<float>(cols)) + eps);  // within 2 ulp, and without slow paths
}

}  // namespace fusebench::kernels::cuda
