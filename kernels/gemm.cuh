// The portable tensor-core product, c[m, n] = a[m, k] · weight[n, k]ᵀ, for sm_80 and later: fp16 or bf16 operands, fp32
// accumulators, any m, n, k >= 1. c is never stored as such: an epilogue turns it into what the op wants.
//
// One block computes one tile. Slices of k go through a ring of shared-memory stages filled by cp.async; a warp reads
// fragments with ldmatrix one k16 step ahead of the mma.sync that use them, across the stages' borders too. What lies
// outside the matrices is zero in shared memory and is never read.
//
// Shared memory: rows of Tile::k elements in chunks of 16 bytes; chunk c of row r lies at c XOR swizzle(r), so that the
// eight rows of an 8x8 matrix, and the eight chunks that a quarter warp writes, fall in different banks.
//
// An epilogue is a value with the members
// - `Column column(col)`: where eight neighbouring columns from `col`, a multiple of 8, belong; asked once a tile,
// - `Row row(row)`: where a row belongs; asked once for all its columns that a thread has,
// - `Operands fetch(row, column)`: what it reads besides the product, before the product's values are at hand,
// - `void store(row, column, operands, values)`: takes eight fp32 values of a row, four pairs of neighbouring columns.
// It is called for rows < m and columns that start below n; the last ones of the eight may lie beyond n.
#pragma once

#include "kernels/device.cuh"
#include "kernels/fused.h"
#include "kernels/mma.cuh"
#include "kernels/pack.cuh"

namespace fusebench::kernels::cuda {

/// Rounds `count` floats to neighbours at `out`, by one store when `vector` promises N of them and an aligned address.
template <int N, typename T>
__device__ __forceinline__ void store_elements(T* out, const float (&values)[N], bool vector, std::int64_t count) {
  if (vector) {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.set(i, values[i]);
    store_pack(out, pack);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < count) out[i] = from_float<T>(values[i]);
    }
  }
}

/// Extents of a block's tile and of its warps' parts. `blocks_per_sm` bounds the registers.
template <int M, int N, int K, int WarpM, int WarpN, int Stages, int BlocksPerSm>
struct Tile {
  static constexpr int m = M, n = N, k = K, warp_m = WarpM, warp_n = WarpN, stages = Stages;
  static constexpr int blocks_per_sm = BlocksPerSm;
  static constexpr int warps_n = N / WarpN;
  static constexpr int threads = 32 * (M / WarpM) * warps_n;
  static constexpr int chunks = K / 8;  ///< 16-byte chunks in a row
  static constexpr int row_bytes = K * 2;
  static constexpr int stage_bytes = (M + N) * row_bytes;
  static constexpr int staging_stride = WarpN + 8;  ///< floats; the 8 keep the fragments' writes free of bank conflicts
  static constexpr int staging_floats = 16 * staging_stride;  ///< a warp's
  static constexpr int shared_bytes = Stages * stage_bytes;

  static_assert(M % WarpM == 0 && N % WarpN == 0 && WarpM % 16 == 0 && WarpN % 16 == 0);
  static_assert(WarpN <= 256 && 32 % (WarpN / 8) == 0 && 16 % (32 / (WarpN / 8)) == 0, "a pass covers whole rows");
  static_assert(chunks == 4 || chunks % 8 == 0, "the swizzle knows rows of 64 bytes, or of multiples of 128");
  static_assert(threads % chunks == 0 && M % (threads / chunks) == 0 && N % (threads / chunks) == 0);
  static_assert(Stages >= 2 && shared_bytes <= 99 * 1024, "what sm_86 and sm_89 can give a block");
  static_assert(threads / 32 * staging_floats * 4 <= shared_bytes, "the epilogue reuses the ring");

  static __device__ __forceinline__ constexpr int swizzle(int row) { return chunks == 4 ? row >> 1 & 3 : row & 7; }
};

using LargeTile = Tile<128, 256, 32, 64, 64, 4, 1>;
using MediumTile = Tile<128, 128, 32, 64, 64, 4, 2>;
using SmallTile = Tile<64, 64, 64, 32, 32, 4, 3>;
using SkinnyTile = Tile<16, 32, 128, 16, 16, 6, 3>;

/// One thread's part in filling stages with consecutive slices of k: the same chunk column in rows a fixed step apart.
template <typename T, typename Tile, bool Aligned>
class StageLoader {
 public:
  /// a and weight point at the tile's first row, and have a_rows and weight_rows rows from there.
  __device__ StageLoader(const T* a, std::int64_t a_rows, const T* weight, std::int64_t weight_rows, std::int64_t k)
      : row_(static_cast<int>(threadIdx.x) / Tile::chunks),
        chunk_(static_cast<int>(threadIdx.x) % Tile::chunks),
        a_(a + row_ * k + chunk_ * 8),
        weight_(weight + row_ * k + chunk_ * 8),
        step_(row_step * k),
        k_left_(k - chunk_ * 8),
        a_rows_(static_cast<int>(min(a_rows, std::int64_t{Tile::m}))),
        weight_rows_(static_cast<int>(min(weight_rows, std::int64_t{Tile::n}))) {}

  /// Starts the copy of the next slice into `stage`: a's rows, then the weight's.
  __device__ __forceinline__ void load(unsigned char* stage) {
#pragma unroll
    for (int i = 0; i < Tile::m / row_step; ++i) {
      const int row = row_ + i * row_step;
      copy_chunk(stage + offset(row), a_ + i * step_, row < a_rows_);
    }
    stage += Tile::m * Tile::row_bytes;
#pragma unroll
    for (int i = 0; i < Tile::n / row_step; ++i) {
      const int row = row_ + i * row_step;
      copy_chunk(stage + offset(row), weight_ + i * step_, row < weight_rows_);
    }
    a_ += Tile::k;
    weight_ += Tile::k;
    k_left_ -= Tile::k;
  }

 private:
  static constexpr int row_step = Tile::threads / Tile::chunks;

  __device__ __forceinline__ int offset(int row) const {
    return row * Tile::row_bytes + (chunk_ ^ Tile::swizzle(row)) * 16;
  }

  __device__ __forceinline__ void copy_chunk(unsigned char* shared, const T* global, bool in_rows) const {
    if constexpr (Aligned) {  // k % 8 == 0: a chunk lies wholly inside or wholly outside
      cp_async16(shared_address(shared), global, in_rows && k_left_ > 0 ? 16 : 0);
    } else {
      const auto* source = reinterpret_cast<const std::uint16_t*>(global);
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t low = in_rows && 2 * i < k_left_ ? source[2 * i] : 0u;
        const std::uint32_t high = in_rows && 2 * i + 1 < k_left_ ? source[2 * i + 1] : 0u;
        words[i] = low | high << 16;
      }
      *reinterpret_cast<uint4*>(shared) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

  int row_;
  int chunk_;
  const T* a_;
  const T* weight_;
  std::int64_t step_;
  std::int64_t k_left_;  ///< columns from this thread's chunk of the next slice to the end of k
  int a_rows_;
  int weight_rows_;
};

/// A warp's operands of one k16 step.
template <typename Tile>
struct Fragments {
  static constexpr int m16 = Tile::warp_m / 16, n16 = Tile::warp_n / 16;
  std::uint32_t a[m16][4];
  std::uint32_t b[n16][4];  ///< b0, b1 of the first eight columns, then of the second eight

  /// From `stage`, for the warp whose part starts at (m, n) of the tile, columns 16 * step to 16 * step + 15 of the
  /// slice.
  __device__ __forceinline__ void load(std::uint32_t stage, int m, int n, int step) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int a_row = m + lane % 16, a_chunk = lane / 16;                    // matrices: rows, rows + 8, then k + 8
    const int b_row = n + lane % 8 + lane / 16 * 8, b_chunk = lane / 8 % 2;  // matrices: k, k + 8, then columns + 8
    const std::uint32_t a_address =
        stage + a_row * Tile::row_bytes + ((step * 2 + a_chunk) ^ Tile::swizzle(a_row)) * 16;
    const std::uint32_t b_address = stage + Tile::m * Tile::row_bytes + b_row * Tile::row_bytes +
                                    ((step * 2 + b_chunk) ^ Tile::swizzle(b_row)) * 16;
    // Sixteen rows further on the swizzle is the same.
#pragma unroll
    for (int i = 0; i < m16; ++i) ldmatrix_x4(a[i], a_address + i * 16 * Tile::row_bytes);
#pragma unroll
    for (int i = 0; i < n16; ++i) ldmatrix_x4(b[i], b_address + i * 16 * Tile::row_bytes);
  }
};

/// Which tile a block takes: down the rows of a group of row tiles, then on to the next column tile. With groups of
/// about 2048 rows, the blocks that run at one time cover a nearly square part of c, and share its operands in L2.
template <typename Tile>
__device__ __forceinline__ void raster(std::int64_t m, std::int64_t n, std::int64_t& first_row,
                                       std::int64_t& first_col) {
  constexpr std::int64_t group_rows = 2048 / Tile::m;
  const std::int64_t tiles_m = ceil_div<std::int64_t>(m, Tile::m);
  const std::int64_t tiles_n = ceil_div<std::int64_t>(n, Tile::n);
  const std::int64_t group = blockIdx.x / (group_rows * tiles_n);
  const std::int64_t within = blockIdx.x % (group_rows * tiles_n);
  const std::int64_t rows = min(group_rows, tiles_m - group * group_rows);
  first_row = (group * group_rows + within % rows) * Tile::m;
  first_col = within / rows * Tile::n;
}

template <typename T, typename Tile, bool Aligned, typename Epilogue>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks_per_sm)
    gemm(const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k, Epilogue epilogue) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int m16 = Tile::warp_m / 16, n8 = Tile::warp_n / 8, steps = Tile::k / 16;
  static_assert(steps % 2 == 0, "the two fragment buffers alternate");

  std::int64_t first_row, first_col;
  raster<Tile>(m, n, first_row, first_col);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / Tile::warps_n * Tile::warp_m, warp_col = warp % Tile::warps_n * Tile::warp_n;

  StageLoader<T, Tile, Aligned> loader(a + first_row * k, m - first_row, weight + first_col * k, n - first_col, k);
  const std::int64_t slices = ceil_div<std::int64_t>(k, Tile::k);
#pragma unroll
  for (int stage = 0; stage < Tile::stages - 1; ++stage) {
    if (stage < slices) loader.load(shared + stage * Tile::stage_bytes);
    cp_async_commit();  // a group a slice, empty or not, keeps the count that the waits rely on
  }

  float accumulators[m16][n8][4] = {};
  Fragments<Tile> fragments[2];
  int read_stage = 0, write_stage = Tile::stages - 1;
  cp_async_wait<Tile::stages - 2>();
  __syncthreads();
  fragments[0].load(shared_address(shared), warp_row, warp_col, 0);

  for (std::int64_t slice = 0; slice < slices; ++slice) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      if (step == steps - 1) {
        // The next slice has landed, and every warp has read the last fragments of this one: its stage is free.
        cp_async_wait<Tile::stages - 2>();
        __syncthreads();
        read_stage = read_stage + 1 == Tile::stages ? 0 : read_stage + 1;
      }
      // After the last slice this reads a stage that nothing fills any more, and nothing uses what it reads.
      fragments[(step + 1) % 2].load(shared_address(shared) + read_stage * Tile::stage_bytes, warp_row, warp_col,
                                     (step + 1) % steps);
      if (step == 0) {
        if (slice + Tile::stages - 1 < slices) loader.load(shared + write_stage * Tile::stage_bytes);
        cp_async_commit();
        write_stage = write_stage + 1 == Tile::stages ? 0 : write_stage + 1;
      }
      const Fragments<Tile>& now = fragments[step % 2];
#pragma unroll
      for (int i = 0; i < m16; ++i) {
#pragma unroll
        for (int j = 0; j < n8; ++j) {
          mma_m16n8k16<T>(accumulators[i][j], now.a[i], now.b[j / 2][j % 2 * 2], now.b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }

  // A warp passes its part through shared memory, 16 rows at a time, so that a thread gets eight neighbouring columns.
  cp_async_wait<0>();
  __syncthreads();
  constexpr int groups = Tile::warp_n / 8, rows_per_pass = 32 / groups, passes = 16 / rows_per_pass;
  float* staging = reinterpret_cast<float*>(shared) + warp * Tile::staging_floats;
  float* fragment_place = staging + lane / 4 * Tile::staging_stride + lane % 4 * 2;
  const float* group_place = staging + lane / groups * Tile::staging_stride + lane % groups * 8;
  const std::int64_t col = first_col + warp_col + lane % groups * 8;
  const std::int64_t lane_row = first_row + warp_row + lane / groups;
  typename Epilogue::Column column{};
  if (col < n) column = epilogue.column(col);

#pragma unroll
  for (int i = 0; i < m16; ++i) {
    typename Epilogue::Row rows[passes]{};
    typename Epilogue::Operands operands[passes]{};
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const std::int64_t row = lane_row + i * 16 + pass * rows_per_pass;
      if (row < m && col < n) {
        rows[pass] = epilogue.row(row);
        operands[pass] = epilogue.fetch(rows[pass], column);
      }
    }
#pragma unroll
    for (int j = 0; j < n8; ++j) {
      const float(&d)[4] = accumulators[i][j];
      *reinterpret_cast<float2*>(fragment_place + j * 8) = make_float2(d[0], d[1]);
      *reinterpret_cast<float2*>(fragment_place + 8 * Tile::staging_stride + j * 8) = make_float2(d[2], d[3]);
    }
    __syncwarp();
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const std::int64_t row = lane_row + i * 16 + pass * rows_per_pass;
      const auto* place = reinterpret_cast<const float4*>(group_place + pass * rows_per_pass * Tile::staging_stride);
      const float4 low = place[0], high = place[1];
      const float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      if (row < m && col < n) epilogue.store(rows[pass], column, operands[pass], values);
    }
    __syncwarp();
  }
}

template <typename Tile>
std::int64_t tiles_of(std::int64_t m, std::int64_t n) {
  return ceil_div<std::int64_t>(m, Tile::m) * ceil_div<std::int64_t>(n, Tile::n);
}

template <typename Tile, bool Aligned, typename T, typename Epilogue>
void launch_tiles(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                  const Epilogue& epilogue) {
  const std::int64_t tiles = tiles_of<Tile>(m, n);
  if (tiles > std::int64_t{INT32_MAX}) throw std::invalid_argument("a product of over 2^31 tiles");
  auto* kernel = gemm<T, Tile, Aligned, Epilogue>;
  FUSEBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::shared_bytes));
  kernel<<<static_cast<unsigned>(tiles), Tile::threads, Tile::shared_bytes, stream_of(exec)>>>(a, weight, m, n, k,
                                                                                               epilogue);
  FUSEBENCH_LAUNCH_CHECK(gemm);
}

/// How long the busiest of `workers` works on its tiles, in units that compare kinds of tile. `rate` is how much of the
/// largest tile's FLOP rate this kind is expected to reach, from the operands that it loads for each of them.
template <typename Tile>
double expected_time(std::int64_t tiles, std::int64_t workers, double rate) {
  return static_cast<double>(ceil_div(tiles, workers)) * Tile::m * Tile::n / rate;
}

/// Chooses the tile: for a few rows the one that wastes the fewest, where streaming the weight is all that counts;
/// otherwise the one that is expected to be done first, which weighs a tile's own speed against idle multiprocessors.
template <typename T, typename Epilogue>
void launch_portable(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                     const Epilogue& epilogue) {
  if (!is_aligned_16(a) || !is_aligned_16(weight) || k % 8 != 0) {
    throw std::invalid_argument("the portable product needs 16-byte aligned operands and k % 8 == 0");
  }
  if (m <= SkinnyTile::m) return launch_tiles<SkinnyTile, true>(exec, a, weight, m, n, k, epilogue);
  const std::int64_t processors = multiprocessors();
  const double large = expected_time<LargeTile>(tiles_of<LargeTile>(m, n), processors, 1.0);
  const double medium = expected_time<MediumTile>(tiles_of<MediumTile>(m, n), processors, 0.9);
  const double small = expected_time<SmallTile>(tiles_of<SmallTile>(m, n), processors, 0.6);
  if (large <= std::min(medium, small)) return launch_tiles<LargeTile, true>(exec, a, weight, m, n, k, epilogue);
  if (medium <= small) return launch_tiles<MediumTile, true>(exec, a, weight, m, n, k, epilogue);
  launch_tiles<SmallTile, true>(exec, a, weight, m, n, k, epilogue);
}

}  // namespace fusebench::kernels::cuda
