// The product of kernels/gemm.cuh for sm_90a: c[m, n] = a[m, k] · weight[n, k]ᵀ, fp16 or bf16 operands and results with
// rows of a multiple of 16 bytes, fp32 accumulators, any m, k >= 1 and n = 32, 64, .. up to kHopperExtent. Epilogues
// have a form of their own, see OutgoingBand.
//
// One block stays on each multiprocessor and takes tile after tile. Its first warpgroup is the producer: one thread
// keeps a ring of shared-memory stages filled by TMA, running ahead into the next tile. The two others are consumers:
// they multiply by wgmma, straight from the stages. An epilogue puts results into a staging buffer, from which TMA
// stores them while the consumer goes on.
//
// Consumers share the work in one of two ways. Together, each has half of a tile's rows: larger tiles, but no products
// during epilogues. By turns, each has every other tile: while one is at its epilogue the other multiplies.
//
// Tiles come in rounds, and the last round is seldom full: some narrower tiles at the end let all be done together.
//
// Two blocks form a cluster. Their tiles lie one above the other, so that both need the same rows of the weight: each
// loads one half of them and TMA delivers it to both, which halves what the weight costs of L2. Where rows can be
// halved, clusters beside one partition of L2 take other rows than those beside the other, so that either caches its
// own rows of a alone.
//
// Two barriers guard a stage. `full` ends its phase when all of the stage's bytes have come. `empty` ends its phase
// when the consumers of both blocks have read the stage, since either block's producer writes to both.
#pragma once

#include <array>

#include "kernels/gemm.cuh"
#include "kernels/hopper.cuh"
#include "kernels/hopper_launch.cuh"
#include "kernels/l2_partitions.h"
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

/// Results leave in boxes of 64 rows and 32 columns.
constexpr int kBoxRows = 64, kBoxColumns = 32, kBoxBytes = kBoxRows * kBoxColumns * 2;

enum class Consumers : std::uint8_t { together, by_turns };

/// Tiles of 128 rows and Wide columns; a product's last columns may be tiles of Narrow columns, see choose_columns.
template <int Wide, int Narrow, int Stages, Consumers How>
struct HopperTile {
  static constexpr int m = 128, n = Wide, narrow_n = Narrow, k = 64, stages = Stages;
  static constexpr int cluster = 2;        ///< blocks that share the weight
  static constexpr int group_rows = 2048;  ///< rows of c that are worked on at one time, see TileSchedule
  static constexpr bool by_turns = How == Consumers::by_turns;
  static constexpr int consumers = 2;                       ///< warpgroups
  static constexpr int readers = by_turns ? 1 : consumers;  ///< of a stage
  static constexpr int bands = m / 64 / readers;            ///< of 64 rows, a consumer's
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int a_bytes = m * k * 2, weight_bytes = n * k * 2, stage_bytes = a_bytes + weight_bytes;
  static constexpr int staged_columns = by_turns ? 64 : 128;                      ///< what the stages leave room for
  static constexpr int staging_bytes = staged_columns / kBoxColumns * kBoxBytes;  ///< a consumer's
  static constexpr int staging_offset = stages * stage_bytes;
  static constexpr int barriers_offset = staging_offset + consumers * staging_bytes;
  static constexpr int place_offset = barriers_offset + 2 * stages * 8;
  static constexpr int shared_bytes = hopper::kAlignBytes + place_offset + 4;

  static_assert(group_rows % (m * cluster) == 0);
  static_assert(n / cluster % kPermutedRows == 0 && n % staged_columns == 0);
  static_assert(narrow_n <= n && narrow_n / cluster % kPermutedRows == 0 && narrow_n % staged_columns == 0);
  static_assert(stage_bytes % hopper::kAlignBytes == 0 && weight_bytes / cluster % hopper::kAlignBytes == 0);
  static_assert(shared_bytes <= 227 * 1024);
  static_assert(m * cluster <= INT32_MAX - kHopperExtent && n <= INT32_MAX - kHopperExtent);
};

using HopperLargeTile = HopperTile<256, 256, 4, Consumers::together>;
using HopperTurnTile = HopperTile<192, 128, 5, Consumers::by_turns>;

/// How many tiles lie beside each other: first `wide` wide ones, then narrow ones.
struct ColumnPlan {
  int wide, narrow;
};

/// How clusters share the rows of tiles. With `arrivals`, clusters of the first L2 partition have the upper half of the
/// rows and those of the second the lower half, which needs can_halve_rows; who is where is found out when clusters
/// arrive. Without, all share all.
struct RowPlan {
  unsigned long long* arrivals;  ///< next_arrival_counter's, or null
  L2Partitions partitions;
};

/// A cluster's share: of `tall` rows of tiles from `first` on every `step`-th tile from number `next` on.
struct TileShare {
  int first, tall, next, step;
};

/// Which tiles a cluster takes of its share: down the rows of a group, then on to the next columns; the narrow tiles of
/// all groups come last. As in `raster` groups of about 2048 rows let the blocks that run at one time share operands in
/// L2.
template <typename Tile>
class TileSchedule {
 public:
  __device__ TileSchedule(TileShare share, ColumnPlan columns) : share_(share), columns_(columns) {}

  /// The next tile's first row, of the cluster's first block, and column; false when there is none.
  __device__ __forceinline__ bool take(int& row, int& col) {
    if (share_.next >= tiles()) return false;
    const int wide_tiles = share_.tall * columns_.wide;
    const bool is_wide = share_.next < wide_tiles;
    const int columns = is_wide ? columns_.wide : columns_.narrow, index = share_.next - (is_wide ? 0 : wide_tiles);
    const int group = index / (kGroup * columns), within = index % (kGroup * columns);
    const int rows = min(kGroup, share_.tall - group * kGroup);
    row = (share_.first + group * kGroup + within % rows) * kRows;
    col = within / rows * (is_wide ? Tile::n : Tile::narrow_n) + (is_wide ? 0 : columns_.wide * Tile::n);
    share_.next += share_.step;
    return true;
  }

  /// Leaves the next tile to the other consumer; false when there is none.
  __device__ __forceinline__ bool skip() {
    const bool is_there = share_.next < tiles();
    share_.next += share_.step;
    return is_there;
  }

  __device__ __forceinline__ bool is_wide(int col) const { return col < columns_.wide * Tile::n; }

 private:
  static constexpr int kRows = Tile::m * Tile::cluster;
  static constexpr int kGroup = Tile::group_rows / kRows;
  __device__ __forceinline__ int tiles() const { return share_.tall * (columns_.wide + columns_.narrow); }
  TileShare share_;
  ColumnPlan columns_;
};

/// A matrix [rows, cols] of results. Throws std::invalid_argument where its base or rows are not aligned.
inline CUtensorMap output_map(DType dtype, void* base, std::int64_t rows, std::int64_t cols) {
  return tensor_map(dtype, base,
                    std::array{TensorDimension{cols, 1, kBoxColumns}, TensorDimension{rows, cols, kBoxRows}},
                    CU_TENSOR_MAP_SWIZZLE_NONE);
}

/// Where a box of results goes.
struct BoxTarget {
  const CUtensorMap& map;
  int row, col;
};

/// The thread of a consumer that starts stores, and waits for them.
__device__ __forceinline__ bool is_leader() { return threadIdx.x % 128 == 0; }

template <typename Epilogue>
constexpr bool sums_squares = requires(const Epilogue& epilogue, const typename Epilogue::Row& row) {
  epilogue.store_squares(row, 0, 0.0f);
};

/// 64 rows of a tile on their way out, as a thread sees them: eight columns of each 32, in two rows of its warp's 16.
/// For this kernel an epilogue is a value with the members `column`, `row` and `fetch` of kernels/gemm.cuh, which are
/// asked for rows below m and columns below n alone, and the following. Constants are an enum's, since nvcc, compiling
/// for other devices, would call them unused.
/// - `kFetchedChunks`: of how many chunks, which are 32 columns, the operands are read at a time. Of one where
///   accumulators leave no room, and then none ahead,
/// - `kFetchesAhead`: whether the first are read while the last products are under way, and each next ones while those
///   before are staged. Not where `row` waits for memory: that would hold up a stage.
/// - `kOutputs`: how many results eight columns of the product become, 8 or 4,
/// - `put(row, column, operands, values, own, place)`: calls place(at, results) with arrays of 4 or 8 neighbouring
///   results. Places are counted from the staging buffer's first, 32 to a box, and `own` is where this thread's would
///   be in the order of columns. It is called for columns beyond n too, whose results TMA leaves out.
/// - `BoxTarget target(row, col)`: where a box belongs, named by its first row and by the column of the product that it
///   would begin with in the order of columns,
/// - optionally `store_squares(row, part, sum)`, which takes the sums of what `put` then returns over kSquaresColumns.
template <typename T, typename Tile, int N, typename Epilogue>
class OutgoingBand {
 public:
  __device__ OutgoingBand(const Epilogue& epilogue, std::uint32_t staging, int warpgroup, int first_row, int first_col,
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
    if constexpr (fetches_ahead) fetch(0);
  }

  __device__ __forceinline__ void store(const float (&accumulators)[N / 2]) {
    float squares[2] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; chunk += fetched_chunks) {
      if constexpr (!fetches_ahead) fetch(chunk);
      const std::array<Fetched, fetched_chunks> fetched = fetched_;
      if (fetches_ahead && chunk + fetched_chunks < chunks) fetch(chunk + fetched_chunks);
      if (chunk % staged_chunks == 0) {
        if (is_leader()) hopper::tma_wait_read();
        hopper::named_sync(barrier_, 128);
      }
#pragma unroll
      for (int i = 0; i < fetched_chunks; ++i) stage_chunk(chunk + i, fetched[i], accumulators, squares);
      if ((chunk + fetched_chunks) % staged_chunks == 0) {
        hopper::fence_for_tma();
        hopper::named_sync(barrier_, 128);
        if (is_leader()) store_boxes(first_col_ + chunk / staged_chunks * Tile::staged_columns);
      }
    }
  }

  /// In registers, beside the accumulators.
  static constexpr bool has_room = Tile::bands * N <= 256;
  static constexpr bool fetches_ahead = Epilogue::kFetchesAhead && has_room;

 private:
  static constexpr int chunks = N / 32;
  static constexpr int staged_chunks = Tile::staged_columns / 32;
  static constexpr int fetched_chunks = has_room ? std::min<int>(Epilogue::kFetchedChunks, staged_chunks) : 1;
  static constexpr int box_source = kBoxColumns * 8 / Epilogue::kOutputs;  ///< columns of the product in a box
  static_assert(staged_chunks % fetched_chunks == 0);
  static_assert(Tile::staged_columns % box_source == 0 && (!sums_squares<Epilogue> || N % kSquaresColumns == 0));

  struct Fetched {
    typename Epilogue::Column column;
    typename Epilogue::Operands operands[2];
  };

  __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  /// In the band.
  __device__ __forceinline__ static int row_in_box(int half) {
    return static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane() / 4 + half * 8;
  }
  __device__ __forceinline__ int row_at(int half) const { return first_row_ + row_in_box(half); }
  __device__ __forceinline__ int col_at(int chunk) const { return first_col_ + chunk * 32 + lane() % 4 * 8; }

  __device__ __forceinline__ void fetch(int first) {
#pragma unroll
    for (int i = 0; i < fetched_chunks; ++i) {
      fetched_[i].column = epilogue_.column(min(col_at(first + i), n_ - 8));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        fetched_[i].operands[half] = epilogue_.fetch(rows_[half], fetched_[i].column);
      }
    }
  }

  /// A chunk to the staging buffer.
  __device__ __forceinline__ void stage_chunk(int chunk, const Fetched& fetched, const float (&accumulators)[N / 2],
                                              float (&squares)[2]) const {
    const int own = (chunk % staged_chunks * 32 + lane() % 4 * 8) * Epilogue::kOutputs / 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = accumulators[chunk * 16 + i / 2 * 4 + half * 2 + i % 2];
      const std::uint32_t row = staging_ + row_in_box(half) * kBoxColumns * 2;
      const auto place = [&](int at, const auto& results) {
        hopper::store_shared<T>(row + at / kBoxColumns * kBoxBytes + at % kBoxColumns * 2, results);
      };
      if constexpr (sums_squares<Epilogue>) {
        const float sum = epilogue_.put(rows_[half], fetched.column, fetched.operands[half], values, own, place);
        if (col_at(chunk) < n_) squares[half] += sum;
      } else {
        epilogue_.put(rows_[half], fetched.column, fetched.operands[half], values, own, place);
      }
    }
    if constexpr (sums_squares<Epilogue>) {
      if ((chunk + 1) * 32 % kSquaresColumns == 0) store_squares(chunk, squares);
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
    for (int box = 0; box < Tile::staged_columns / box_source; ++box, col += box_source) {
      if (col >= n_) break;
      const BoxTarget target = epilogue_.target(first_row_, col);
      hopper::tma_store(target.map, target.row, target.col, staging_ + box * kBoxBytes);
    }
    hopper::tma_commit();
  }

  const Epilogue& epilogue_;
  std::uint32_t staging_;
  int barrier_, first_row_, first_col_, m_, n_;
  typename Epilogue::Row rows_[2];
  std::array<Fetched, fetched_chunks> fetched_;
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
  __device__ __forceinline__ std::uint32_t place() const { return base + Tile::place_offset; }
};

/// A place for a cluster, by its partition; for one thread of it.
__device__ __forceinline__ int arrive(const RowPlan& plan, int clusters) {
  const bool is_second = plan.partitions.is_second(hopper::multiprocessor_id());
  const unsigned long long before = atomicAdd(plan.arrivals, 1ull << 32 | (is_second ? 1 : 0));
  const int all = static_cast<int>(before >> 32), seconds = static_cast<int>(before);
  if (all + 1 == clusters) atomicExch(plan.arrivals, 0);  // for the counter's next launch
  return place_of(is_second, all - seconds, seconds, clusters / 2);
}

/// Once the cluster has come together: its share, by the place that its first block has in shared memory.
template <typename Tile>
__device__ __forceinline__ TileShare share_of(const RowPlan& plan, const Ring<Tile> ring, int m) {
  const int clusters = static_cast<int>(gridDim.x) / Tile::cluster, tall = ceil_div(m, Tile::m * Tile::cluster);
  if (plan.arrivals == nullptr) return {0, tall, static_cast<int>(blockIdx.x) / Tile::cluster, clusters};
  const int place = hopper::uniform(hopper::load_number(ring.place(), 0)), half = clusters / 2;
  return {place < half ? 0 : tall / 2, tall / 2, place < half ? place : place - half, half};
}

/// The weight as a block loads it for its cluster: a part of a wide tile's rows, or of a narrow one's.
struct WeightMaps {
  CUtensorMap wide, narrow;
};

/// Tiles of neighbouring columns begin `spread` slices apart, and go on from the last slice to the first.
template <typename Tile>
__device__ __forceinline__ void produce(const Ring<Tile> ring, const CUtensorMap& a_map, const WeightMaps& weight_maps,
                                        TileSchedule<Tile> schedule, int slices, int spread, int rank) {
  constexpr std::uint16_t all = (1 << Tile::cluster) - 1;
  RingPlace<Tile::stages> place;
  for (int row, col; schedule.take(row, col);) {
    const int n = schedule.is_wide(col) ? Tile::n : Tile::narrow_n, part = n / Tile::cluster;
    const CUtensorMap& weight_map = schedule.is_wide(col) ? weight_maps.wide : weight_maps.narrow;
    int slice = col / n * spread % slices;
    for (int i = 0; i < slices; ++i, place.advance()) {
      hopper::barrier_wait(ring.empty(place.stage), place.parity ^ 1);  // at once in the ring's first round
      hopper::barrier_arrive_expect(ring.full(place.stage), Tile::a_bytes + n * Tile::k * 2);
      hopper::tma_load(ring.a(place.stage), a_map, row + rank * Tile::m, slice * Tile::k, ring.full(place.stage));
      hopper::tma_load(ring.weight(place.stage) + rank * part * Tile::k * 2, weight_map, slice * Tile::k,
                       (col + rank * part) / kPermutedRows, ring.full(place.stage), all);
      if (++slice == slices) slice = 0;
    }
  }
}

template <typename T, typename Tile, typename Epilogue>
__device__ __forceinline__ void consume(const Ring<Tile> ring, const Epilogue& epilogue, TileSchedule<Tile> schedule,
                                        int m, int n, int slices, int rank) {
  const int warpgroup = hopper::uniform(static_cast<int>(threadIdx.x) / 128 - 1);
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int first_row = Tile::by_turns ? 0 : warpgroup * Tile::bands * 64;
  const auto release = [&](int stage) {
    if (thread < Tile::cluster) hopper::barrier_arrive(ring.empty(stage), thread);
  };
  // The stages say nothing of whose turn it is, since a barrier's phases are told apart by their parity alone.
  const auto turn_of = [](int consumer) { return 1 + Tile::consumers + consumer; };  // behind OutgoingBand's barriers
  RingPlace<Tile::stages> place;

  const auto make_tile = [&]<int N>(int row, int col) {
    using Band = OutgoingBand<T, Tile, N, Epilogue>;
    float accumulators[Tile::bands][N / 2];
    const auto multiply = [&](bool accumulate) {
      hopper::barrier_wait(ring.full(place.stage), place.parity);
      const std::uint64_t a = hopper::descriptor(ring.a(place.stage) + first_row * Tile::k * 2);
      const std::uint64_t weight = hopper::descriptor(ring.weight(place.stage));
      hopper::wgmma_fence();
#pragma unroll
      for (int step = 0; step < Tile::k / 16; ++step) {
#pragma unroll
        for (int band = 0; band < Tile::bands; ++band) {
          hopper::wgmma<T, N>(accumulators[band], a + band * (64 * Tile::k * 2 >> 4) + step * hopper::kDescriptorStepK,
                              weight + step * hopper::kDescriptorStepK, accumulate || step > 0);
        }
      }
      hopper::wgmma_commit();
    };
    multiply(false);
    int reading = place.stage;
    place.advance();
    for (int slice = 1; slice < slices; ++slice, place.advance()) {
      multiply(true);
      hopper::wgmma_wait<1>();  // the slice before this one has been multiplied
      release(reading);
      reading = place.stage;
    }
    if constexpr (Tile::by_turns) {
      if (schedule.skip()) hopper::named_arrive(turn_of(1 - warpgroup), 256);
      place.advance(slices);
    }
    const auto finish_products = [&] {
      hopper::wgmma_wait<0>();
#pragma unroll
      for (auto& band : accumulators) hopper::pin(band);
      release(reading);
    };
    // Reads that wait for nothing go out before the wait for the last products. Others come behind it, so that the
    // stage is given back first.
#pragma unroll
    for (int band = 0; band < Tile::bands; ++band) {
      if (band == 0 && !Band::fetches_ahead) finish_products();
      Band out(epilogue, ring.staging(warpgroup), warpgroup, row + rank * Tile::m + first_row + band * 64, col, m, n);
      if (band == 0 && Band::fetches_ahead) finish_products();
      out.store(accumulators[band]);
    }
  };

  bool waits = Tile::by_turns && warpgroup == 1;
  if (waits) {
    schedule.skip();
    place.advance(slices);
  }
  for (int row, col; schedule.take(row, col); waits = Tile::by_turns) {
    if (waits) hopper::named_sync(turn_of(warpgroup), 256);
    if (Tile::n == Tile::narrow_n || schedule.is_wide(col)) {
      make_tile.template operator()<Tile::n>(row, col);
    } else {
      make_tile.template operator()<Tile::narrow_n>(row, col);
    }
  }
  if (is_leader()) hopper::tma_wait();
}

template <typename T, typename Tile, typename Epilogue>
__global__ void __launch_bounds__(Tile::threads, 1)
    gemm_hopper([[maybe_unused]] const __grid_constant__ CUtensorMap a_map,
                [[maybe_unused]] const __grid_constant__ WeightMaps weight_maps, [[maybe_unused]] ColumnPlan columns,
                [[maybe_unused]] const __grid_constant__ RowPlan rows, [[maybe_unused]] int m, [[maybe_unused]] int n,
                [[maybe_unused]] int slices, [[maybe_unused]] int spread,
                [[maybe_unused]] const __grid_constant__ Epilogue epilogue) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char unaligned[];
  const Ring<Tile> ring{hopper::aligned(shared_address(unaligned))};
  const int rank = static_cast<int>(hopper::cluster_rank()), warp = hopper::uniform(static_cast<int>(threadIdx.x) / 32);
  if (threadIdx.x == 0) {
    hopper::prefetch_tensor_map(a_map);
    hopper::prefetch_tensor_map(weight_maps.wide);
    hopper::prefetch_tensor_map(weight_maps.narrow);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      hopper::barrier_init(ring.full(stage), 1);
      hopper::barrier_init(ring.empty(stage), Tile::readers * Tile::cluster);
    }
    hopper::fence_barrier_init();
    if (rank == 0 && rows.arrivals != nullptr) {
      hopper::store_number(ring.place(), arrive(rows, static_cast<int>(gridDim.x) / Tile::cluster));
    }
  }
  hopper::cluster_sync();
  hopper::let_successor_start();
  hopper::wait_for_predecessor();

  const TileSchedule<Tile> schedule(share_of(rows, ring, m), columns);
  if (warp < 4) {
    hopper::shrink_registers<hopper::kLoadingRegisters>();
    if (threadIdx.x == 0) produce(ring, a_map, weight_maps, schedule, slices, spread, rank);
  } else {
    hopper::grow_registers<hopper::kComputingRegisters>();
    consume<T>(ring, epilogue, schedule, m, n, slices, rank);
  }
  hopper::cluster_sync();  // no block may end while the other may still arrive at its barriers
#else
  __trap();
#endif
}

template <typename Tile>
std::int64_t clusters() {
  return multiprocessors() / Tile::cluster;
}

/// How many of a cluster's tiles lie above each other.
template <typename Tile>
std::int64_t tall_tiles(std::int64_t m) {
  return ceil_div<std::int64_t>(m, Tile::m * Tile::cluster);
}

/// A cluster's tiles, of both widths.
template <typename Tile>
std::int64_t cluster_tiles_of(std::int64_t m, ColumnPlan columns) {
  return tall_tiles<Tile>(m) * (columns.wide + columns.narrow);
}

/// `wide` wide columns of tiles, and narrow ones for the rest of n.
template <typename Tile>
ColumnPlan columns_of(std::int64_t n, std::int64_t wide) {
  const std::int64_t rest = std::max<std::int64_t>(0, n - wide * Tile::n);
  return {static_cast<int>(wide), static_cast<int>(ceil_div<std::int64_t>(rest, Tile::narrow_n))};
}

/// How many columns the busiest of `clusters`, the first, works on over all of its tiles. A narrow tile's count for
/// more, since it loads more for each FLOP.
template <typename Tile>
double busiest_columns(std::int64_t m, ColumnPlan columns, std::int64_t clusters) {
  constexpr double kNarrow = Tile::narrow_n / 0.94;
  static_assert(Tile::narrow_n == Tile::n || kNarrow < Tile::n);  // so one tile less is never more work
  const std::int64_t its_wide = ceil_div(tall_tiles<Tile>(m) * columns.wide, clusters);
  const std::int64_t its_all = ceil_div(cluster_tiles_of<Tile>(m, columns), clusters);
  return static_cast<double>(its_wide) * Tile::n + static_cast<double>(its_all - its_wide) * kNarrow;
}

/// The plan by which the busiest cluster has the least to do; of equals the one with the most wide tiles.
template <typename Tile>
ColumnPlan choose_columns(std::int64_t m, std::int64_t n, std::int64_t clusters) {
  std::int64_t wide = ceil_div<std::int64_t>(n, Tile::n);
  ColumnPlan best = columns_of<Tile>(n, wide);
  if (Tile::narrow_n == Tile::n) return best;
  double least = busiest_columns<Tile>(m, best, clusters);
  while (--wide >= 0) {
    const ColumnPlan columns = columns_of<Tile>(n, wide);
    const double busiest = busiest_columns<Tile>(m, columns, clusters);
    if (busiest >= least) continue;
    least = busiest;
    best = columns;
  }
  return best;
}

/// Whether the rows of a group fit in L2 beside what streams by. Then columns are spread over k: in step each row's
/// slice would be read at one time, and be gone when the next columns ask for it.
template <typename Tile>
bool group_stays_in_l2(std::int64_t k) {
  return 2 * Tile::group_rows * k * 2 <= device_attribute(cudaDevAttrL2CacheSize);
}

/// Whether each partition gets as many tiles, and they are enough for all clusters.
template <typename Tile>
bool can_halve_rows(std::int64_t m, ColumnPlan columns) {
  return tall_tiles<Tile>(m) % 2 == 0 && clusters<Tile>() % 2 == 0 &&
         cluster_tiles_of<Tile>(m, columns) >= clusters<Tile>();
}

template <typename Tile, typename T, typename Epilogue>
void launch_hopper_tiles(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                         const Epilogue& epilogue, ColumnPlan columns, RowPlan rows) {
  constexpr DType dtype = std::is_same_v<T, __half> ? DType::fp16 : DType::bf16;
  const CUtensorMap a_map = matrix_map(dtype, a, m, k, Tile::m);
  const WeightMaps weight_maps{permuted_map(dtype, weight, n, k, Tile::n / Tile::cluster),
                               permuted_map(dtype, weight, n, k, Tile::narrow_n / Tile::cluster)};
  const std::int64_t tiles = cluster_tiles_of<Tile>(m, columns);
  if (tiles > INT32_MAX / 2) throw std::invalid_argument("a product of over 2^30 tiles");
  if (rows.arrivals != nullptr && !can_halve_rows<Tile>(m, columns)) {
    throw std::invalid_argument("rows of tiles that cannot be halved");
  }
  const int slices = static_cast<int>(ceil_div<std::int64_t>(k, Tile::k));
  // Of tiles that are all alike, as few clusters as take no more rounds: a round's tiles then are whole columns more
  // often, which read less. 256 tiles take four rounds of 64 clusters, of eight rows and columns, as of 66.
  const bool alike = columns.wide == 0 || columns.narrow == 0;
  const std::int64_t used = alike && rows.arrivals == nullptr ? ceil_div(tiles, ceil_div(tiles, clusters<Tile>()))
                                                              : std::min(tiles, clusters<Tile>());
  launch_hopper_kernel(exec, gemm_hopper<T, Tile, Epilogue>, used * Tile::cluster, Tile::threads, Tile::shared_bytes,
                       Tile::cluster, a_map, weight_maps, columns, rows, static_cast<int>(m), static_cast<int>(n),
                       slices, group_stays_in_l2<Tile>(k) ? ceil_div(slices, 4) : 0, epilogue);
}

/// Rows are halved where columns are spread; in step they would be read more often.
template <typename Tile>
RowPlan choose_rows(std::int64_t m, std::int64_t k, ColumnPlan columns) {
  if (!group_stays_in_l2<Tile>(k) || !can_halve_rows<Tile>(m, columns)) return {};
  const auto partitions = l2_partitions();
  return partitions ? RowPlan{next_arrival_counter(), *partitions} : RowPlan{};
}

/// Takes the tiles whose busiest cluster is expected to be done first. By turns epilogues are hidden; together each
/// costs as much as six slices. Where rows are too long for L2, narrower tiles cost more, as they read them more often.
template <typename T, typename Epilogue>
void launch_hopper(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                   const Epilogue& epilogue) {
  using Large = HopperLargeTile;
  using Turns = HopperTurnTile;
  if (std::max(m, n) > kHopperExtent) throw std::invalid_argument("the Hopper product takes m and n up to 2^31 - 257");
  const ColumnPlan large = choose_columns<Large>(m, n, clusters<Large>());
  const ColumnPlan turns = choose_columns<Turns>(m, n, clusters<Turns>());
  const double slices = static_cast<double>(ceil_div<std::int64_t>(k, Large::k));
  const double large_cost = busiest_columns<Large>(m, large, clusters<Large>()) * (1.0 + 6.0 / slices);
  const double turns_cost =
      busiest_columns<Turns>(m, turns, clusters<Turns>()) * (group_stays_in_l2<Turns>(k) ? 1.0 : 1.05);
  if (large_cost < turns_cost) {
    return launch_hopper_tiles<Large>(exec, a, weight, m, n, k, epilogue, large, choose_rows<Large>(m, k, large));
  }
  launch_hopper_tiles<Turns>(exec, a, weight, m, n, k, epilogue, turns, choose_rows<Turns>(m, k, turns));
}

}  // namespace fusebench::kernels::cuda
