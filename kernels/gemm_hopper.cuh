// The product of kernels/gemm.cuh for sm_90a: c[m, n] = a[m, k] · weight[n, k]ᵀ, fp16 or bf16 operands and results with
// rows of a multiple of 16 bytes, fp32 accumulators, any m, k >= 1 and n = 32, 64, .. below 2^31. Epilogues have a form
// of their own, see ConsumerTile.
//
// One block stays on each multiprocessor and takes tile after tile. Its first warpgroup is the producer: one thread
// keeps a ring of shared-memory stages filled by TMA, running ahead into the next tile. The two others are consumers:
// each multiplies 64 of the tile's 128 rows by wgmma, straight from the stages. Its epilogue puts results into a
// staging buffer, from which TMA stores them while the consumer multiplies the next tile.
//
// Two blocks form a cluster. Their tiles lie one above the other, so that both need the same rows of the weight: each
// loads one half of them and TMA delivers it to both, which halves what the weight costs of L2.
//
// Two barriers guard a stage. `full` ends its phase when all of the stage's bytes have come. `empty` ends its phase
// when the consumers of both blocks have read the stage, since either block's producer writes to both.
#pragma once

#include <array>

#include "kernels/gemm.cuh"
#include "kernels/hopper.cuh"
#include "kernels/hopper_launch.cuh"
#include "kernels/online_softmax.cuh"
#include "kernels/ring.cuh"
#include "kernels/tensor_map.h"

namespace fusebench::kernels::cuda {

/// Of 32 neighbouring rows of the weight, the order in shared memory: row 8c + 2t + i of the stage is row 8t + 2c + i
/// of the 32. A thread t of a quad has columns 2t and 2t + 1 of each eight of wgmma's, so it gets eight columns of c
/// that are neighbours, without an exchange between threads. TMA brings them so: the 32 rows are three of a box's
/// dimensions.
constexpr int kPermutedRows = 32;

inline CUtensorMap permuted_map(DType dtype, const void* weight, std::int64_t n, std::int64_t k, int box_rows) {
  if (n % kPermutedRows != 0) throw std::invalid_argument("the Hopper product takes a multiple of 32 columns");
  return tensor_map(dtype, weight,
                    std::array{TensorDimension{k, 1, 64}, TensorDimension{2, k, 2}, TensorDimension{4, 8 * k, 4},
                               TensorDimension{4, 2 * k, 4},
                               TensorDimension{n / kPermutedRows, kPermutedRows * k, box_rows / kPermutedRows}});
}

/// `Cluster` blocks share the weight; `GroupRows` is how many rows of c are worked on at one time, see TileSchedule.
template <int M, int N, int Stages, bool Alternates, int Cluster = 2, int GroupRows = 2048>
struct HopperTile {
  static constexpr int m = M, n = N, k = 64, stages = Stages;
  static constexpr int cluster = Cluster, group_rows = GroupRows;
  static constexpr bool alternates = Alternates;
  static constexpr int consumers = 2;  ///< warpgroups
  static constexpr int bands = alternates ? m / 64 : m / 128;
  static constexpr int readers = alternates ? 1 : consumers;
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int a_bytes = m * k * 2, weight_bytes = n * k * 2, stage_bytes = a_bytes + weight_bytes;
  static constexpr int box_columns = 32, box_bytes = 64 * box_columns * 2;  ///< of a consumer's results, in one store
  static constexpr int staged_columns = alternates || n % 128 != 0 ? 64 : 128;
  static constexpr int staging_bytes = staged_columns / box_columns * box_bytes;  ///< a consumer's
  static constexpr int staging_offset = stages * stage_bytes;
  static constexpr int barriers_offset = staging_offset + consumers * staging_bytes;
  static constexpr int shared_bytes = hopper::kAlignBytes + barriers_offset + 2 * stages * 8;

  static_assert(n / cluster % kPermutedRows == 0);
  static_assert(stage_bytes % hopper::kAlignBytes == 0 && weight_bytes / cluster % hopper::kAlignBytes == 0);
  static_assert(shared_bytes <= 227 * 1024);
};

using HopperLargeTile = HopperTile<128, 256, 4, false>;
using HopperWideTile = HopperTile<128, 192, 5, true>;
using HopperMediumTile = HopperTile<128, 128, 6, true>;

/// Which tiles a cluster takes: every clusters-th, down the rows of a group, then on to the next columns. As in
/// `raster` groups of about 2048 rows let the blocks that run at one time share operands in L2.
template <typename Tile>
class TileSchedule {
 public:
  __device__ TileSchedule(int m, int n)
      : tall_(ceil_div(m, kRows)),
        wide_(ceil_div(n, Tile::n)),
        next_(static_cast<int>(blockIdx.x) / Tile::cluster),
        step_(static_cast<int>(gridDim.x) / Tile::cluster) {}

  /// The next tile's first row, of the cluster's first block, and column; false when there is none.
  __device__ __forceinline__ bool take(int& row, int& col) {
    if (next_ >= tall_ * wide_) return false;
    const int group = next_ / (kGroup * wide_), within = next_ % (kGroup * wide_);
    const int rows = min(kGroup, tall_ - group * kGroup);
    row = (group * kGroup + within % rows) * kRows;
    col = within / rows * Tile::n;
    next_ += step_;
    return true;
  }

  /// Leaves the next tile to the other consumer; false when there is none.
  __device__ __forceinline__ bool skip() {
    const bool is_there = next_ < tall_ * wide_;
    next_ += step_;
    return is_there;
  }

 private:
  static constexpr int kRows = Tile::m * Tile::cluster;
  static constexpr int kGroup = Tile::group_rows / kRows;
  int tall_, wide_, next_, step_;
};

/// A matrix [rows, cols] of results. Throws std::invalid_argument where its base or rows are not aligned.
inline CUtensorMap output_map(DType dtype, void* base, std::int64_t rows, std::int64_t cols) {
  return tensor_map(dtype, base, std::array{TensorDimension{cols, 1, 32}, TensorDimension{rows, cols, 64}},
                    CU_TENSOR_MAP_SWIZZLE_NONE);
}

/// Where a box of results goes.
struct BoxTarget {
  const CUtensorMap& map;
  int row, col;
};

/// A consumer's 64 rows of a tile on their way out, as a thread sees them: eight columns of each 32, in two rows of its
/// warp's 16. For this kernel an epilogue is a value with the members `column`, `row` and `fetch` of kernels/gemm.cuh,
/// and
/// - `kChunksAhead`: of how many of its groups of eight a thread keeps operands,
/// - `kOutputs`: how many results eight columns of the product become, 8 or 4,
/// - `put(row, column, operands, values, own, stage)`: calls stage(col, results) with arrays of 4 or 8 neighbouring
///   results; columns count from the staging buffer's first, and `own` is where this thread's would be in their order,
/// - `BoxTarget target(row, col)`: where the box belongs whose first result comes from this row and column,
/// - optionally `store_squares(row, part, sum)`, which takes the sums of what `put` then returns over kSquaresColumns.
template <typename T, typename Tile, typename Epilogue>
class ConsumerTile {
 public:
  __device__ ConsumerTile(const Epilogue& epilogue, std::uint32_t staging, int warpgroup, int first_row, int first_col,
                          int m, int n)
      : epilogue_(epilogue),
        staging_(staging),
        barrier_(1 + warpgroup),
        first_row_(first_row),
        first_col_(first_col),
        m_(m),
        n_(n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) rows_[half] = epilogue.row(min(row_at(half), m - 1));
  }

  /// Keeps the compiler from putting off until it is used what the constructor has found out.
  __device__ __forceinline__ void settle() {
    hopper::settle(rows_[0]);
    hopper::settle(rows_[1]);
  }

  /// Starts what the first chunks read, while the last products are under way.
  __device__ __forceinline__ void prefetch() {
#pragma unroll
    for (int chunk = 0; chunk < ahead; ++chunk) fetch(chunk);
  }

  __device__ __forceinline__ void store(const float (&accumulators)[Tile::n / 2]) {
    float squares[2] = {};
#pragma unroll
    for (int first = 0; first < chunks; first += staged_chunks) {
      if (is_leader()) hopper::tma_wait_read();
      hopper::named_sync(barrier_, 128);
      stage(first, accumulators, squares);
      hopper::fence_for_tma();
      hopper::named_sync(barrier_, 128);
      if (is_leader()) store_boxes(first_col_ + first * 32);
    }
  }

  /// For the thread that has started stores.
  __device__ __forceinline__ static bool is_leader() { return threadIdx.x % 128 == 0; }

 private:
  static constexpr int chunks = Tile::n / 32;
  static constexpr bool kFetchesLate = Tile::alternates || Tile::bands > 1;
  static constexpr int ahead = kFetchesLate ? 1 : std::min<int>(Epilogue::kChunksAhead, chunks);
  static constexpr int box_source = Tile::box_columns * 8 / Epilogue::kOutputs;  ///< columns of the product in a box
  static constexpr int staged_chunks = Tile::staged_columns / 32;
  static constexpr bool sums_squares = requires(const Epilogue& e, const typename Epilogue::Row& row) {
    e.store_squares(row, 0, 0.0f);
  };
  static_assert(!sums_squares || Tile::n % kSquaresColumns == 0);

  __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  /// In the consumer's 64.
  __device__ __forceinline__ static int row_in_box(int half) {
    return static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane() / 4 + half * 8;
  }
  __device__ __forceinline__ int row_at(int half) const { return first_row_ + row_in_box(half); }
  __device__ __forceinline__ int col_at(int chunk) const { return first_col_ + chunk * 32 + lane() % 4 * 8; }
  __device__ __forceinline__ bool is_inside(int chunk, int half) const {
    return row_at(half) < m_ && col_at(chunk) < n_;
  }

  __device__ __forceinline__ void fetch(int chunk) {
    const typename Epilogue::Column column = epilogue_.column(min(col_at(chunk), n_ - 8));
    columns_[chunk % ahead] = column;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (is_inside(chunk, half)) operands_[chunk % ahead][half] = epilogue_.fetch(rows_[half], column);
    }
  }

  /// Chunks from `first` on to the staging buffer: boxes of 64 columns, one behind the other, swizzled as TMA reads
  /// them.
  __device__ __forceinline__ void stage(int first, const float (&accumulators)[Tile::n / 2], float (&squares)[2]) {
#pragma unroll
    for (int chunk = first; chunk < first + staged_chunks; ++chunk) {
      typename Epilogue::Column column = columns_[chunk % ahead];
      typename Epilogue::Operands operands[2] = {operands_[chunk % ahead][0], operands_[chunk % ahead][1]};
      if constexpr (kFetchesLate) column = epilogue_.column(min(col_at(chunk), n_ - 8));
      if (!kFetchesLate && chunk + ahead < chunks) fetch(chunk + ahead);
      const int own = ((chunk - first) * 32 + lane() % 4 * 8) * Epilogue::kOutputs / 8;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (kFetchesLate) operands[half] = epilogue_.fetch(rows_[half], column);
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) values[i] = accumulators[chunk * 16 + i / 2 * 4 + half * 2 + i % 2];
        const std::uint32_t row = staging_ + row_in_box(half) * Tile::box_columns * 2;
        const auto store = [&](int col, const auto& results) {
          hopper::store_shared<T>(row + col / Tile::box_columns * Tile::box_bytes + col % Tile::box_columns * 2, results);
        };
        if constexpr (sums_squares) {
          const float sum = epilogue_.put(rows_[half], column, operands[half], values, own, store);
          if (is_inside(chunk, half)) squares[half] += sum;
        } else {
          epilogue_.put(rows_[half], column, operands[half], values, own, store);
        }
      }
      if constexpr (sums_squares) {
        if ((chunk + 1) * 32 % kSquaresColumns == 0) store_squares(chunk, squares);
      }
    }
  }

  /// The rows' sums over the columns up to the chunk's last, which begin anew.
  __device__ __forceinline__ void store_squares(int chunk, float (&squares)[2]) const {
    const int part = (first_col_ + chunk * 32) / static_cast<int>(kSquaresColumns);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(squares[half]);
      const bool writes = lane() % 4 == 0 && row_at(half) < m_ && part * kSquaresColumns < n_;
      if (writes) epilogue_.store_squares(rows_[half], part, sum);
      squares[half] = 0.0f;
    }
  }

  __device__ __forceinline__ void store_boxes(int col) const {
    if (first_row_ >= m_) return;
#pragma unroll
    for (int box = 0; box < staged_chunks * 32 / box_source; ++box, col += box_source) {
      if (col >= n_) break;
      const BoxTarget target = epilogue_.target(first_row_, col);
      hopper::tma_store(target.map, target.row, target.col, staging_ + box * Tile::box_bytes);
    }
    hopper::tma_commit();
  }

  const Epilogue& epilogue_;
  std::uint32_t staging_;
  int barrier_, first_row_, first_col_, m_, n_;
  typename Epilogue::Row rows_[2];
  typename Epilogue::Column columns_[ahead];
  typename Epilogue::Operands operands_[ahead][2];
};

/// The addresses of a stage's barriers, and what lies in it.
template <typename Tile>
struct Ring {
  std::uint32_t base;  ///< of the stages

  __device__ __forceinline__ std::uint32_t a(int stage) const { return base + stage * Tile::stage_bytes; }
  __device__ __forceinline__ std::uint32_t weight(int stage) const { return a(stage) + Tile::a_bytes; }
  __device__ __forceinline__ std::uint32_t staging(int warpgroup) const {
    return base + Tile::staging_offset + warpgroup * Tile::staging_bytes;
  }
  __device__ __forceinline__ std::uint32_t full(int stage) const { return base + Tile::barriers_offset + stage * 16; }
  __device__ __forceinline__ std::uint32_t empty(int stage) const { return full(stage) + 8; }
};

/// With `turns` every other tile's slices come from the last to the first: what the tiles of one round have read last
/// is in L2 when those of the next ask for it.
template <typename Tile>
__device__ __forceinline__ void produce(const Ring<Tile> ring, const CUtensorMap& a_map, const CUtensorMap& weight_map,
                                        int m, int n, int slices, bool turns, int rank) {
  constexpr int part = Tile::n / Tile::cluster;  // rows of the weight that this block loads for the cluster
  constexpr std::uint16_t all = (1 << Tile::cluster) - 1;
  TileSchedule<Tile> schedule(m, n);
  RingPlace<Tile::stages> place;
  bool backwards = false;
  for (int row, col; schedule.take(row, col); backwards ^= turns) {
    for (int i = 0; i < slices; ++i, place.advance()) {
      const int slice = backwards ? slices - 1 - i : i;
      hopper::barrier_wait(ring.empty(place.stage), place.parity ^ 1);  // at once in the ring's first round
      hopper::barrier_arrive_expect(ring.full(place.stage), Tile::stage_bytes);
      hopper::tma_load(ring.a(place.stage), a_map, row + rank * Tile::m, slice * Tile::k, ring.full(place.stage));
      hopper::tma_load<(Tile::cluster > 1)>(ring.weight(place.stage) + rank * part * Tile::k * 2, weight_map,
                                            slice * Tile::k, (col + rank * part) / kPermutedRows,
                                            ring.full(place.stage), all);
    }
  }
}

template <typename T, typename Tile, typename Epilogue>
__device__ __forceinline__ void consume(const Ring<Tile> ring, const Epilogue& epilogue, int m, int n, int slices,
                                        int rank) {
  const int warpgroup = hopper::uniform(static_cast<int>(threadIdx.x) / 128 - 1);
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const auto release = [&](int stage) {
    if (thread < Tile::cluster) hopper::barrier_arrive(ring.empty(stage), thread);
  };
  RingPlace<Tile::stages> place;
  float accumulators[Tile::n / 2];
  const auto multiply = [&](bool accumulate) {
    hopper::barrier_wait(ring.full(place.stage), place.parity);
    const std::uint64_t a = hopper::descriptor(ring.a(place.stage) + warpgroup * 64 * Tile::k * 2);
    const std::uint64_t weight = hopper::descriptor(ring.weight(place.stage));
    hopper::wgmma_fence();
#pragma unroll
    for (int step = 0; step < Tile::k / 16; ++step) {
      hopper::wgmma<T, Tile::n>(accumulators, a + step * hopper::kDescriptorStepK,
                                weight + step * hopper::kDescriptorStepK, accumulate || step > 0);
    }
    hopper::wgmma_commit();
  };
  TileSchedule<Tile> schedule(m, n);
  int row = 0, col = 0;
  bool has_tile = schedule.take(row, col);
  while (has_tile) {
    multiply(false);
    // All that needs no accumulators is found out here, while they are computed.
    ConsumerTile<T, Tile, Epilogue> out(epilogue, ring.staging(warpgroup), warpgroup,
                                        row + rank * Tile::m + warpgroup * 64, col, m, n);
    has_tile = schedule.take(row, col);
    out.settle();
    int reading = place.stage;
    place.advance();
    for (int slice = 1; slice < slices; ++slice, place.advance()) {
      multiply(true);
      hopper::wgmma_wait<1>();  // the slice before this one has been multiplied
      release(reading);
      reading = place.stage;
    }
    out.prefetch();
    hopper::wgmma_wait<0>();
    hopper::pin(accumulators);
    release(reading);
    out.store(accumulators);
  }
  if (ConsumerTile<T, Tile, Epilogue>::is_leader()) hopper::tma_wait();
}

/// Consumers that take tiles by turns: one multiplies while the other's results are on their way out.
template <typename T, typename Tile, typename Epilogue>
__device__ __forceinline__ void consume_by_turns(const Ring<Tile> ring, const Epilogue& epilogue, int m, int n,
                                                 int slices, int rank) {
  const int warpgroup = hopper::uniform(static_cast<int>(threadIdx.x) / 128 - 1);
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const auto release = [&](int stage) {
    if (thread < Tile::cluster) hopper::barrier_arrive(ring.empty(stage), thread);
  };
  RingPlace<Tile::stages> place;
  float accumulators[Tile::bands][Tile::n / 2];
  const auto multiply = [&](bool accumulate) {
    hopper::barrier_wait(ring.full(place.stage), place.parity);
    const std::uint64_t a = hopper::descriptor(
        ring.a(place.stage) + (Tile::alternates ? 0 : warpgroup * Tile::bands * 64 * Tile::k * 2));
    const std::uint64_t weight = hopper::descriptor(ring.weight(place.stage));
    hopper::wgmma_fence();
#pragma unroll
    for (int step = 0; step < Tile::k / 16; ++step) {
#pragma unroll
      for (int band = 0; band < Tile::bands; ++band) {
        hopper::wgmma<T, Tile::n>(accumulators[band],
                                  a + band * (64 * Tile::k * 2 >> 4) + step * hopper::kDescriptorStepK,
                                  weight + step * hopper::kDescriptorStepK, accumulate || step > 0);
      }
    }
    hopper::wgmma_commit();
  };
  TileSchedule<Tile> schedule(m, n);
  bool waits = Tile::alternates && warpgroup == 1;
  if (waits) {
    schedule.skip();
    place.advance(slices);
  }
  for (int row, col; schedule.take(row, col); waits = Tile::alternates) {
    if (waits) hopper::named_sync(3 + warpgroup, 256);
    multiply(false);
    int reading = place.stage;
    place.advance();
    for (int slice = 1; slice < slices; ++slice, place.advance()) {
      multiply(true);
      hopper::wgmma_wait<1>();  // the slice before this one has been multiplied
      release(reading);
      reading = place.stage;
    }
    if constexpr (Tile::alternates) {
      if (schedule.skip()) hopper::named_arrive(4 - warpgroup, 256);
      place.advance(slices);
    }
    hopper::wgmma_wait<0>();
#pragma unroll
    for (int band = 0; band < Tile::bands; ++band) hopper::pin(accumulators[band]);
    release(reading);
#pragma unroll
    for (int band = 0; band < Tile::bands; ++band) {
      ConsumerTile<T, Tile, Epilogue> out(epilogue, ring.staging(warpgroup), warpgroup,
                                          row + rank * Tile::m + ((Tile::alternates ? 0 : warpgroup * Tile::bands) + band) * 64, col, m, n);
      out.store(accumulators[band]);
    }
  }
  if (ConsumerTile<T, Tile, Epilogue>::is_leader()) hopper::tma_wait();
}

template <typename T, typename Tile, typename Epilogue>
__global__ void __launch_bounds__(Tile::threads, 1)
    gemm_hopper([[maybe_unused]] const __grid_constant__ CUtensorMap a_map,
                [[maybe_unused]] const __grid_constant__ CUtensorMap weight_map, [[maybe_unused]] int m,
                [[maybe_unused]] int n, [[maybe_unused]] int slices, [[maybe_unused]] bool turns,
                [[maybe_unused]] const __grid_constant__ Epilogue epilogue) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char unaligned[];
  const Ring<Tile> ring{hopper::aligned(shared_address(unaligned))};
  const int rank = static_cast<int>(hopper::cluster_rank()), warp = hopper::uniform(static_cast<int>(threadIdx.x) / 32);
  if (threadIdx.x == 0) {
    hopper::prefetch_tensor_map(a_map);
    hopper::prefetch_tensor_map(weight_map);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      hopper::barrier_init(ring.full(stage), 1);
      hopper::barrier_init(ring.empty(stage), Tile::readers * Tile::cluster);
    }
    hopper::fence_barrier_init();
  }
  hopper::cluster_sync();
  hopper::let_successor_start();
  hopper::wait_for_predecessor();

  if (warp < 4) {
    hopper::shrink_registers<40>();
    if (threadIdx.x == 0) produce<Tile>(ring, a_map, weight_map, m, n, slices, turns, rank);
  } else {
    hopper::grow_registers<232>();
    if constexpr (Tile::alternates || Tile::bands > 1) {
      consume_by_turns<T>(ring, epilogue, m, n, slices, rank);
    } else {
      consume<T>(ring, epilogue, m, n, slices, rank);
    }
  }
  hopper::cluster_sync();  // no block may end while the other may still arrive at its barriers
#else
  __trap();
#endif
}

/// Tiles of a whole cluster.
template <typename Tile>
std::int64_t cluster_tiles_of(std::int64_t m, std::int64_t n) {
  return ceil_div<std::int64_t>(m, Tile::m * Tile::cluster) * ceil_div<std::int64_t>(n, Tile::n);
}

template <typename Tile>
std::int64_t clusters() {
  return multiprocessors() / Tile::cluster;
}

template <typename Tile, typename T, typename Epilogue>
void launch_hopper_tiles(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                         const Epilogue& epilogue) {
  constexpr DType dtype = std::is_same_v<T, __half> ? DType::fp16 : DType::bf16;
  const CUtensorMap a_map = matrix_map(dtype, a, m, k, Tile::m);
  const CUtensorMap weight_map = permuted_map(dtype, weight, n, k, Tile::n / Tile::cluster);
  const std::int64_t tiles = cluster_tiles_of<Tile>(m, n);
  if (tiles > INT32_MAX / 2) throw std::invalid_argument("a product of over 2^30 tiles");
  // Where a round's operands exceed L2 there is little to be found there, and turning was measured to cost 1%.
  const bool turns = 2 * Tile::group_rows * k * 2 <= device_attribute(cudaDevAttrL2CacheSize);
  launch_hopper_kernel(exec, gemm_hopper<T, Tile, Epilogue>, std::min(tiles, clusters<Tile>()) * Tile::cluster,
                       Tile::threads, Tile::shared_bytes, Tile::cluster, a_map, weight_map, static_cast<int>(m),
                       static_cast<int>(n), static_cast<int>(ceil_div<std::int64_t>(k, Tile::k)), turns, epilogue);
}

/// The larger tile loads less for each FLOP; the smaller leaves fewer multiprocessors idle.
template <typename T, typename Epilogue>
void launch_hopper(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                   const Epilogue& epilogue) {
  using Large = HopperLargeTile;
  using Wide = HopperWideTile;
  using Medium = HopperMediumTile;
  constexpr bool sums_squares =
      requires(const Epilogue& e, const typename Epilogue::Row& row) { e.store_squares(row, 0, 0.0f); };
  if constexpr (!sums_squares) {
    const double large = expected_time<Large>(cluster_tiles_of<Large>(m, n), clusters<Large>(), 0.96);
    const double medium = expected_time<Medium>(cluster_tiles_of<Medium>(m, n), clusters<Medium>(), 0.95);
    const double wide = expected_time<Wide>(cluster_tiles_of<Wide>(m, n), clusters<Wide>(), 1.0);
    if (wide <= std::min(large, medium)) return launch_hopper_tiles<Wide>(exec, a, weight, m, n, k, epilogue);
    if (large <= medium) return launch_hopper_tiles<Large>(exec, a, weight, m, n, k, epilogue);
  }
  launch_hopper_tiles<Medium>(exec, a, weight, m, n, k, epilogue);
}

}  // namespace fusebench::kernels::cuda
