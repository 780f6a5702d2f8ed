// The tiled product behind the naive variant's products: a block of 256 threads computes a 64 x 64 tile of C, 4 x 4
// elements a thread, from 32-deep slices of A and B in shared memory. fp32 FMA, no tensor cores, no pipeline.
#pragma once

#include "kernels/device.cuh"

namespace fusebench::kernels::naive {

constexpr int tile_size = 64;
constexpr int tile_depth = 32;
constexpr int tile_side = 16;  ///< threads along a side of the tile
constexpr int tile_threads = tile_side * tile_side;
constexpr int tile_share = tile_size / tile_side;  ///< elements of a thread along a side

/// Along which index neighbouring threads read B from memory.
enum class Contiguous : std::uint8_t { depth, column };

/// Whether a zero of A takes nothing from B, even where B is infinite or NaN: the masked keys of attention.
enum class ZeroOfA : std::uint8_t { multiplies, skips };

/// store(row, col, sum over d of load_a(row, d) · load_b(col, d)) for the rows and columns of a tile that are below
/// `rows` and `cols`. All threads of a block of tile_threads must call it, with depth >= 1; it may be called again.
template <Contiguous b_contiguous, ZeroOfA zero_of_a, class LoadA, class LoadB, class Store>
__device__ void multiply_tile(std::int64_t row0, std::int64_t col0, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, LoadA load_a, LoadB load_b, Store store_c) {
  // The extra column spreads a transposing write over the banks.
  __shared__ float a_slice[tile_depth][tile_size + 1];
  __shared__ float b_slice[tile_depth][tile_size + 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % tile_side;
  const int ty = thread / tile_side;
  float sum[tile_share][tile_share] = {};

  for (std::int64_t d0 = 0; d0 < depth; d0 += tile_depth) {
#pragma unroll
    for (int i = thread; i < tile_size * tile_depth; i += tile_threads) {
      const int d = i % tile_depth;
      const int r = i / tile_depth;
      a_slice[d][r] = row0 + r < rows && d0 + d < depth ? load_a(row0 + r, d0 + d) : 0.0f;
    }
#pragma unroll
    for (int i = thread; i < tile_size * tile_depth; i += tile_threads) {
      const int d = b_contiguous == Contiguous::depth ? i % tile_depth : i / tile_size;
      const int c = b_contiguous == Contiguous::depth ? i / tile_depth : i % tile_size;
      b_slice[d][c] = col0 + c < cols && d0 + d < depth ? load_b(col0 + c, d0 + d) : 0.0f;
    }
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < tile_depth; ++d) {
      float a[tile_share];
      float b[tile_share];
#pragma unroll
      for (int i = 0; i < tile_share; ++i) a[i] = a_slice[d][ty + i * tile_side];
#pragma unroll
      for (int j = 0; j < tile_share; ++j) b[j] = b_slice[d][tx + j * tile_side];
#pragma unroll
      for (int i = 0; i < tile_share; ++i) {
        if (zero_of_a == ZeroOfA::skips && a[i] == 0.0f) continue;
#pragma unroll
        for (int j = 0; j < tile_share; ++j) sum[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();  // the slices are overwritten by the next step
  }

#pragma unroll
  for (int i = 0; i < tile_share; ++i) {
#pragma unroll
    for (int j = 0; j < tile_share; ++j) {
      const std::int64_t row = row0 + ty + i * tile_side;
      const std::int64_t col = col0 + tx + j * tile_side;
      if (row < rows && col < cols) store_c(row, col, sum[i][j]);
    }
  }
}

/// Tiles of `count` matrices of [rows, cols], numbered with the columns fastest and the matrices slowest, so that any
/// number of them fits a one-dimensional grid.
struct Tiles {
  std::int64_t count;
  std::int64_t rows;
  std::int64_t cols;

  __host__ __device__ std::int64_t along_rows() const { return ceil_div<std::int64_t>(rows, tile_size); }
  __host__ __device__ std::int64_t along_cols() const { return ceil_div<std::int64_t>(cols, tile_size); }
  __host__ __device__ std::int64_t total() const { return count * along_rows() * along_cols(); }
  __device__ std::int64_t matrix(std::int64_t tile) const { return tile / (along_rows() * along_cols()); }
  __device__ std::int64_t row0(std::int64_t tile) const { return tile / along_cols() % along_rows() * tile_size; }
  __device__ std::int64_t col0(std::int64_t tile) const { return tile % along_cols() * tile_size; }
};

}  // namespace fusebench::kernels::naive
