// The product of kernels/gemm.cuh for sm_90a: c[m, n] = a[m, k] · weight[n, k]ᵀ, fp16 or bf16 operands and results with
// rows of a multiple of 16 bytes, fp32 accumulators, any m, k >= 1 and n = 32, 64, .. up to kHopperExtent. Epilogues
// have a form of their own, see OutgoingBand.
//
// One block stays on each multiprocessor and takes tile after tile (on parts of k, one). Its first warpgroup is the
// producer: one thread keeps a ring of shared-memory stages filled by TMA, running ahead into the next tile. The two
// others are consumers: they multiply by wgmma, straight from the stages. An epilogue puts results into a staging
// buffer, from which TMA stores them while the consumer goes on.
//
// Consumers share the work in one of two ways. Together, each has half of a tile's rows: larger tiles, but no products
// during epilogues. By turns, each has every other tile: while one is at its epilogue the other multiplies.
//
// Tiles come in rounds, and the last round is seldom full: some narrower tiles at the end let all be done together.
//
// Two blocks form a pair, a cluster of CUDA's. Their tiles lie one above the other, so that both need the same rows of
// the weight: each loads one half of them and TMA delivers it to both, which halves what the weight costs of L2. Where
// an odd number of rows of tiles would leave blocks without work, tiles lie beside each other and share rows of a.
// Where rows can be halved, pairs beside one partition of L2 take other rows than those beside the other, so that
// either caches its own rows of a alone.
//
// Few tiles would leave multiprocessors without work. Then tiles are narrower, and several pairs may have the same two
// tiles, each a part of k, and add up what they have in device memory, see PartsOfTile.
//
// Where tokens fill no tiles of 128 rows the operands change places, see HopperTokenTile. Below a is the operand whose
// rows are a tile's rows, and b the one whose rows are its columns, as wgmma calls them: the weight is b, or a.
//
// Two barriers guard a stage. `full` ends its phase when all of the stage's bytes have come. `empty` ends its phase
// when the consumers of both blocks of a pair have read the stage, since either block's producer writes to both.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/gemm.cuh"
#include "kernels/hopper.cuh"
#include "kernels/hopper_launch.cuh"
#include "kernels/hopper_plan.h"
#include "kernels/online_softmax.cuh"
#include "kernels/ring.cuh"
#include "kernels/tensor_map.h"

namespace fusebench::kernels::cuda {

/// Of 32 neighbouring rows of the weight, the order in shared memory: row 8c + 2t + i of the stage is row 8t + 2c + i
/// of the 32. A thread t of a quad has columns 2t and 2t + 1 of each eight of wgmma's, so it gets eight columns of c
/// that are neighbours, without an exchange between threads. TMA brings them so: the 32 rows are three of a box's
/// dimensions.
inline CUtensorMap permuted_map(DType dtype, const void* weight, std::int64_t n, std::int64_t k, int box_rows) {
  return tensor_map(dtype, weight,
                    std::array{TensorDimension{k, 1, 64}, TensorDimension{2, k, 2}, TensorDimension{4, 8 * k, 4},
                               TensorDimension{4, 2 * k, 4},
                               TensorDimension{n / kPermutedRows, kPermutedRows * k, box_rows / kPermutedRows}});
}

/// Of 16 neighbouring rows of the weight, the order in shared memory where they are a tile's rows: first those with
/// even numbers. A thread has rows r and r + 8 of wgmma's, so it gets two neighbours.
inline CUtensorMap paired_map(DType dtype, const void* weight, std::int64_t n, std::int64_t k, int box_rows) {
  return tensor_map(dtype, weight,
                    std::array{TensorDimension{k, 1, 64}, TensorDimension{8, 2 * k, 8}, TensorDimension{2, k, 2},
                               TensorDimension{n / 16, 16 * k, box_rows / 16}});
}

/// A block in its pair, and the pair among those with the same tiles.
template <typename Tile>
struct Member {
  const HopperPlan& plan;
  int side, part;

  __device__ explicit Member(const HopperPlan& of)
      : plan(of),
        side(static_cast<int>(hopper::cluster_rank())),
        part(Tile::has_parts ? static_cast<int>(blockIdx.x) / kPair % of.parts : 0) {}
  __device__ __forceinline__ bool beside() const { return plan.beside; }
  __device__ __forceinline__ int parts() const { return Tile::has_parts ? plan.parts : 1; }
  __device__ __forceinline__ int first_slice(int slices) const { return part * slices / parts(); }
  __device__ __forceinline__ int slices(int of) const { return (part + 1) * of / parts() - first_slice(of); }
};

/// A pair's share: of `tall` rows of tiles from `first` on every `step`-th tile from number `next` on.
struct TileShare {
  int first, tall, next, step;
};

/// A tile's first row and column, and how many columns of a pair's tiles are to the left of it.
struct TilePlace {
  int row, col, columns_before;
  bool is_wide;
};

/// Which tiles a pair takes of its share: down the rows of a group, then on to the next columns; the narrow tiles of
/// all groups come last. As in `raster` groups of about 2048 rows let the blocks that run at one time share operands in
/// L2. Every other group takes its columns from right to left, as those that the one before ended with are still there.
template <typename Tile>
class TileSchedule {
 public:
  __device__ TileSchedule(TileShare share, Member<Tile> member) : share_(share), member_(member) {}

  /// The block's next tile; false when there is none.
  __device__ __forceinline__ bool take(TilePlace& tile) {
    if (share_.next >= tiles()) return false;
    const int wide_tiles = share_.tall * member_.plan.columns.wide;
    tile.is_wide = Tile::n == Tile::narrow_n || share_.next < wide_tiles;
    const int columns = tile.is_wide ? member_.plan.columns.wide : member_.plan.columns.narrow;
    const int index = share_.next - (tile.is_wide ? 0 : wide_tiles);
    const int most = Tile::group_rows / Tile::m / (member_.beside() ? 1 : kPair);  // rows of a group
    const int group = index / (most * columns), within = index % (most * columns);
    const int rows = min(most, share_.tall - group * most);
    const int row = share_.first + group * most + within % rows;
    const int col = group % 2 == 0 ? within / rows : columns - 1 - within / rows;
    // In tiles: of a pair above each other rows come by twos, of one beside each other columns.
    tile.row = (member_.beside() ? row : row * kPair + member_.side) * Tile::m;
    tile.col = member_.beside() ? col * kPair + member_.side : col;
    tile.columns_before = col + (tile.is_wide ? 0 : member_.plan.columns.wide);
    tile.col = tile.is_wide ? tile.col * Tile::n : wide_columns() + tile.col * Tile::narrow_n;
    share_.next += share_.step;
    return true;
  }

  /// Leaves the next tile to the other consumer; false when there is none.
  __device__ __forceinline__ bool skip() {
    const bool is_there = share_.next < tiles();
    share_.next += share_.step;
    return is_there;
  }

 private:
  __device__ __forceinline__ int tiles() const {
    return share_.tall * (member_.plan.columns.wide + member_.plan.columns.narrow);
  }
  __device__ __forceinline__ int wide_columns() const {
    return member_.plan.columns.wide * (member_.beside() ? kPair : 1) * Tile::n;
  }
  TileShare share_;
  Member<Tile> member_;
};

/// A matrix [rows, cols] of results. Throws std::invalid_argument where its base or rows are not aligned.
inline CUtensorMap output_map(DType dtype, void* base, std::int64_t rows, std::int64_t cols, int box_rows) {
  return tensor_map(dtype, base,
                    std::array{TensorDimension{cols, 1, kBoxColumns}, TensorDimension{rows, cols, box_rows}},
                    CU_TENSOR_MAP_SWIZZLE_64B);
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

/// Tiles by turns alone, which many results come in; with others registers lack. Not by tokens: those are few.
template <typename Tile, typename Epilogue>
__device__ __forceinline__ bool streams(const Epilogue& epilogue) {
  if constexpr (Tile::by_turns && !Tile::by_tokens && requires { epilogue.streams; }) {
    return epilogue.streams;
  } else {
    return false;
  }
}

/// 64 rows of a tile on their way out, as a thread sees them: eight columns of each 32, in two rows of its warp's 16.
/// For this kernel an epilogue is a value with the members `column`, `row` and `fetch` of kernels/gemm.cuh, which are
/// asked for rows below m and columns below n alone, and the following. Constants are an enum's, since nvcc, compiling
/// for other devices, would call them unused.
/// - `kFetchedChunks`: of how many chunks, which are 32 columns, the operands are read at a time, and the next ones
///   while those are staged. One, and none ahead, where accumulators leave no room; not by tokens,
/// - `kFetchesEarly`: whether the first are read while the last products are under way; not by tokens. Not where `row`
///   waits for memory: that would hold up a stage.
/// - `kOutputs`: how many results eight columns of the product become, 8 or 4,
/// - `put(row, column, operands, values, own, place)`: calls place(at, results) with arrays of 4 or 8 neighbouring
///   results. Places are counted from the staging buffer's first, 32 to a box, and `own` is where this thread's would
///   be in the order of columns. It is called for columns beyond n too, whose results TMA leaves out.
/// - `BoxTarget target(row, col)`: where a box belongs, named by its first row and by the column of the product that it
///   would begin with in the order of columns,
/// - optionally `touch(row, first_col, end_col)`, by which a quad brings what `row` and `fetch` will read into L2: the
///   first tile's would come from afar, and one behind the other,
/// - optionally `streams`: whether the weight and the results are to leave L2 first, so that rows of a stay; where the
///   results are too many for the next kernel to find them there; not by tokens,
/// - optionally `store_squares(row, part, sum)`, which takes the sums of what `put` then returns over kSquaresColumns.
template <typename T, typename Tile, int N, int Band, typename Epilogue>
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
    if constexpr (fetches_early) fetch(0);
  }

  __device__ __forceinline__ void store(const float (&accumulators)[N / 2]) {
    float squares[2] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; chunk += fetched_chunks) {
      if (!fetches_early && (chunk == 0 || !has_room)) fetch(chunk);
      const std::array<Fetched, fetched_chunks> fetched = fetched_;
      if (has_room && chunk + fetched_chunks < chunks) fetch(chunk + fetched_chunks);
      if (chunk % staged_chunks == 0) {
        if (is_leader()) hopper::tma_wait_read();
        hopper::named_sync(barrier_, 128);
      }
#pragma unroll
      for (int i = 0; i < fetched_chunks; ++i) {
        if (chunk + i < chunks) stage_chunk(chunk + i, fetched[i], accumulators, squares);
      }
      const int staged = chunk + fetched_chunks < chunks ? chunk + fetched_chunks : chunks;
      if (staged % staged_chunks == 0 || staged == chunks) {
        hopper::fence_for_tma();
        hopper::named_sync(barrier_, 128);
        if (is_leader()) store_boxes((staged - 1) / staged_chunks * staged_chunks, staged);
      }
    }
  }

  /// Of `row` and `fetch`, for a band to come.
  __device__ static __forceinline__ void touch(const Epilogue& epilogue, int first_row, int first_col, int m, int n) {
    if constexpr (requires { epilogue.touch(0, 0, 0); }) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        epilogue.touch(min(first_row + row_in_box(half), m - 1), first_col, min(first_col + N, n));
      }
    }
  }

  /// In registers, beside the accumulators of this band and those behind it.
  static constexpr bool has_room = (Tile::bands - Band) * N <= 256;
  static constexpr bool fetches_early = Epilogue::kFetchesEarly && Band == 0 && has_room && !Tile::has_parts;

 private:
  static constexpr int chunks = N / 32;
  static constexpr int staged_chunks = Tile::staged_columns / 32;
  static constexpr int fetched_chunks = has_room ? std::min<int>(Epilogue::kFetchedChunks, staged_chunks) : 1;
  static constexpr int box_source = kBoxColumns * 8 / Epilogue::kOutputs;  ///< columns of the product in a box
  static_assert(staged_chunks % fetched_chunks == 0);
  static_assert(Tile::staged_columns % box_source == 0 && N % box_source == 0);
  static_assert(!sums_squares<Epilogue> || N % kSquaresColumns == 0);

  struct Fetched {
    typename Epilogue::Column column;
    typename Epilogue::Operands operands[2];
  };

  /// In the band.
  __device__ __forceinline__ static int row_in_box(int half) {
    return static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane() / 4 + half * 8;
  }
  __device__ __forceinline__ int row_at(int half) const { return first_row_ + row_in_box(half); }
  __device__ __forceinline__ int col_at(int chunk) const { return first_col_ + chunk * 32 + lane() % 4 * 8; }

  __device__ __forceinline__ void fetch(int first) {
#pragma unroll
    for (int i = 0; i < fetched_chunks; ++i) {
      if (first + i >= chunks) continue;
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
      const int swizzle = lane() / 8 * 16;  // TMA's, row / 2 % 4: results of 8 bytes meet in fewer banks
      const auto place = [&](int at, const auto& results) {
        hopper::store_shared<T>(row + at / kBoxColumns * kBoxBytes + (at % kBoxColumns * 2 ^ swizzle), results);
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

  /// The staged chunks from `first` to `end`.
  __device__ __forceinline__ void store_boxes(int first, int end) const {
    if (first_row_ >= m_) return;
#pragma unroll
    for (int chunk = first; chunk < end; chunk += box_source / 32) {
      const int col = first_col_ + chunk * 32;
      if (col >= n_) break;
      const BoxTarget target = epilogue_.target(first_row_, col);
      const std::uint32_t box = staging_ + (chunk - first) * 32 / box_source * kBoxBytes;
      if (streams<Tile>(epilogue_)) {
        hopper::tma_store(target.map, target.row, target.col, box, hopper::evict_first());
      } else {
        hopper::tma_store(target.map, target.row, target.col, box);
      }
    }
    hopper::tma_commit();
  }

  const Epilogue& epilogue_;
  std::uint32_t staging_;
  int barrier_, first_row_, first_col_, m_, n_;
  typename Epilogue::Row rows_[2];
  std::array<Fetched, fetched_chunks> fetched_;
};

/// 64 columns of N tokens on their way out, where the operands have changed places. A thread has two neighbouring
/// columns in a quarter of the tokens. It leaves those of 32 tokens in shared memory, and takes one token's 16 columns,
/// eight of each 32, as the epilogues want them.
template <typename T, typename Tile, int N, typename Epilogue>
class OutgoingTokens {
 public:
  static constexpr bool fetches_early = false;

  __device__ OutgoingTokens(const Epilogue& epilogue, std::uint32_t staging, int warpgroup, int first_col,
                            int first_token, int m, int n)
      : epilogue_(epilogue),
        staging_(staging),
        barrier_(1 + warpgroup),
        first_col_(first_col),
        first_token_(first_token),
        columns_(m),
        tokens_(n) {}

  __device__ static __forceinline__ void touch(const Epilogue& epilogue, int first_col, int first_token, int m, int n) {
    if constexpr (requires { epilogue.touch(0, 0, 0); }) {
#pragma unroll 1
      for (int group = 0; group < kGroups; ++group) {
        const int token = first_token + group * kTokenBoxRows + token_in_group();
        epilogue.touch(min(token, n - 1), min(first_col, m - 8), min(first_col + kColumns, m));
      }
    }
  }

  __device__ __forceinline__ void store(const float (&accumulators)[N / 2]) const {
#pragma unroll 1
    for (int group = 0; group < kGroups; ++group) {
      const int first_token = first_token_ + group * kTokenBoxRows;
      if (first_token >= tokens_) return;
      const typename Epilogue::Row row = epilogue_.row(min(first_token + token_in_group(), tokens_ - 1));
      [[maybe_unused]] Fetched early[2];
      if constexpr (kHasRoom) {
#pragma unroll
        for (int chunk = 0; chunk < 2; ++chunk) early[chunk] = fetch(row, chunk);
      }
#pragma unroll
      for (int of = 0; of < kGroups; ++of) {
        if (of == group) leave(accumulators, of);
      }
      if (is_leader()) hopper::tma_wait_read();
      hopper::named_sync(barrier_, 128);
      float squares = 0.0f;
      if constexpr (kHasRoom) {
#pragma unroll
        for (int chunk = 0; chunk < 2; ++chunk) stage_chunk(chunk, row, early[chunk], squares);
      } else {
#pragma unroll 1
        for (int chunk = 0; chunk < 2; ++chunk) stage_chunk(chunk, row, fetch(row, chunk), squares);
      }
      if constexpr (sums_squares<Epilogue>) {
        const float sum = quad_sum(squares);
        const bool writes = lane() % 4 == 0 && first_token + token_in_group() < tokens_ && first_col_ < columns_;
        if (writes) epilogue_.store_squares(row, first_col_ / kColumns, sum);
      }
      hopper::fence_for_tma();
      hopper::named_sync(barrier_, 128);
      if (is_leader()) store_boxes(first_token);
    }
  }

 private:
  static constexpr int kColumns = 64, kGroups = N / kTokenBoxRows;
  static constexpr bool kHasRoom = Tile::bands == 1;  ///< in registers, for what both chunks read
  static_assert(!sums_squares<Epilogue> || kColumns == kSquaresColumns);

  __device__ __forceinline__ static int warp() { return static_cast<int>(threadIdx.x) % 128 / 32; }
  __device__ __forceinline__ static int token_in_group() { return warp() * 8 + lane() / 4; }
  __device__ __forceinline__ int col_at(int chunk) const { return first_col_ + chunk * 32 + lane() % 4 * 8; }
  __device__ __forceinline__ std::uint32_t exchange() const { return staging_ + 2 * kTokenBoxBytes; }

  /// `group` has to be known at compile time, since accumulators are registers.
  __device__ __forceinline__ void leave(const float (&accumulators)[N / 2], int group) const {
    const std::uint32_t place = exchange() + lane() % 4 * 2 * kExchangePitch + (warp() * 16 + lane() / 4 * 2) * 4;
#pragma unroll
    for (int eight = 0; eight < kTokenBoxRows / 8; ++eight) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = (group * kTokenBoxRows / 8 + eight) * 4 + i;
        hopper::store_pair(place + (eight * 8 + i) * kExchangePitch, accumulators[at], accumulators[at + 2]);
      }
    }
  }

  struct Fetched {
    typename Epilogue::Column column;
    typename Epilogue::Operands operands;
  };

  __device__ __forceinline__ Fetched fetch(const typename Epilogue::Row& row, int chunk) const {
    const typename Epilogue::Column column = epilogue_.column(min(col_at(chunk), columns_ - 8));
    return {column, epilogue_.fetch(row, column)};
  }

  __device__ __forceinline__ void stage_chunk(int chunk, const typename Epilogue::Row& row, const Fetched& fetched,
                                              float& squares) const {
    const int in_band = chunk * 32 + lane() % 4 * 8;
    float values[8];
    hopper::load_eight(exchange() + token_in_group() * kExchangePitch + in_band * 4, values);
    const std::uint32_t staged = staging_ + token_in_group() * kBoxColumns * 2;
    const int swizzle = lane() / 8 * 16;  // TMA's, token / 2 % 4
    const auto place = [&](int at, const auto& results) {
      hopper::store_shared<T>(staged + at / kBoxColumns * kTokenBoxBytes + (at % kBoxColumns * 2 ^ swizzle), results);
    };
    const int own = in_band * Epilogue::kOutputs / 8;
    if constexpr (sums_squares<Epilogue>) {
      const float sum = epilogue_.put(row, fetched.column, fetched.operands, values, own, place);
      if (col_at(chunk) < columns_) squares += sum;
    } else {
      epilogue_.put(row, fetched.column, fetched.operands, values, own, place);
    }
  }

  __device__ __forceinline__ void store_boxes(int first_token) const {
    constexpr int kSource = kBoxColumns * 8 / Epilogue::kOutputs;  // columns of the product in a box
#pragma unroll
    for (int in_band = 0; in_band < kColumns; in_band += kSource) {
      const int col = first_col_ + in_band;
      if (col >= columns_) break;
      const BoxTarget target = epilogue_.target(first_token, col);
      hopper::tma_store(target.map, target.row, target.col, staging_ + in_band / kSource * kTokenBoxBytes);
    }
    hopper::tma_commit();
  }

  const Epilogue& epilogue_;
  std::uint32_t staging_;
  int barrier_, first_col_, first_token_, columns_, tokens_;
};

template <typename T, typename Tile, int N, int Band, typename Epilogue>
using Outgoing =
    std::conditional_t<Tile::by_tokens, OutgoingTokens<T, Tile, N, Epilogue>, OutgoingBand<T, Tile, N, Band, Epilogue>>;

/// The addresses of a stage's barriers, and what lies in it.
template <typename Tile>
struct Ring {
  std::uint32_t base;  ///< of the stages

  __device__ __forceinline__ std::uint32_t a(int stage) const { return base + stage * Tile::stage_bytes; }
  __device__ __forceinline__ std::uint32_t b(int stage) const { return a(stage) + Tile::a_bytes; }
  __device__ __forceinline__ std::uint32_t staging(int warpgroup) const {
    return base + Tile::staging_offset + warpgroup * Tile::staging_bytes;
  }
  __device__ __forceinline__ std::uint32_t full(int stage) const { return base + Tile::barriers_offset + stage * 16; }
  __device__ __forceinline__ std::uint32_t empty(int stage) const { return full(stage) + 8; }
  __device__ __forceinline__ std::uint32_t place() const { return base + Tile::place_offset; }
  __device__ __forceinline__ std::uint32_t answer(int warpgroup) const {
    return base + Tile::answers_offset + 4 * warpgroup;
  }
};

/// A place for a pair, by its partition; for one thread of it.
__device__ __forceinline__ int arrive(const RowPlan& plan, int pairs) {
  const bool is_second = plan.partitions.is_second(hopper::multiprocessor_id());
  const unsigned long long before = atomicAdd(plan.arrivals, 1ull << 32 | (is_second ? 1 : 0));
  const int all = static_cast<int>(before >> 32), seconds = static_cast<int>(before);
  if (all + 1 == pairs) atomicExch(plan.arrivals, 0);  // for the counter's next launch
  return place_of(is_second, all - seconds, seconds, pairs / 2);
}

/// Once the pair has come together: its share, by the place that its first block has in shared memory.
template <typename Tile>
__device__ __forceinline__ TileShare share_of(const Ring<Tile> ring, int m, const Member<Tile>& member) {
  const int pair = static_cast<int>(blockIdx.x) / kPair, pairs = static_cast<int>(gridDim.x) / kPair;
  const int tall = ceil_div(m, member.beside() ? Tile::m : Tile::m * kPair);
  if (member.plan.rows.arrivals == nullptr) return {0, tall, pair / member.parts(), pairs / member.parts()};
  const int place = hopper::uniform(hopper::load_number(ring.place(), 0)), half = pairs / 2;
  return {place < half ? 0 : tall / 2, tall / 2, place < half ? place : place - half, half};
}

/// Operands as a block loads them. `last_a` is for the last rows, where they fill no tile: TMA takes long for rows that
/// a does not have. What a stage holds beyond them is old, and comes to rows of c that are not stored.
struct OperandMaps {
  CUtensorMap a, last_a, wide, narrow;
  int last_rows;  ///< rounded up to whole swizzle patterns, in each half of a pair's
};

/// A tile's slices on their way in. Of what a pair shares either block loads a half, for both; what lies wholly outside
/// is not loaded.
template <typename Tile>
class IncomingTile {
 public:
  __device__ IncomingTile(const Ring<Tile> ring, const OperandMaps& maps, int m, int n, Member<Tile> member,
                          TilePlace tile, bool streams)
      : ring_(ring),
        member_(member),
        streams_(streams),
        tile_(tile),
        rows_(tile.row + Tile::m <= m ? Tile::m
              : tile.row < m          ? maps.last_rows
                                      : 0),
        box_columns_((tile.is_wide ? Tile::n : Tile::narrow_n) / (member.beside() ? 1 : kPair)),
        columns_(min(max(ceil_div(n - tile.col, box_columns_), 0), member.beside() ? 1 : kPair) * box_columns_),
        a_map_(rows_ == Tile::m ? maps.a : maps.last_a),
        b_map_(tile.is_wide ? maps.wide : maps.narrow) {}

  /// Says what will come to a stage, and sends for what no predecessor writes: the weight.
  __device__ __forceinline__ void load_early(int stage, int slice) const {
    hopper::barrier_arrive_expect(ring_.full(stage), (rows_ + columns_) * Tile::k * 2);
    if constexpr (Tile::by_tokens) {
      load_a(stage, slice);
    } else {
      load_b(stage, slice);
    }
  }
  __device__ __forceinline__ void load_late(int stage, int slice) const {
    if constexpr (Tile::by_tokens) {
      load_b(stage, slice);
    } else {
      load_a(stage, slice);
    }
  }

 private:
  __device__ __forceinline__ void load_b(int stage, int slice) const {
    const int part = member_.beside() ? 0 : member_.side * box_columns_;
    if (part >= columns_) return;
    const std::uint32_t box = ring_.b(stage) + part * Tile::k * 2, barrier = ring_.full(stage);
    if constexpr (Tile::by_tokens) {
      if (member_.beside()) return hopper::tma_load(box, b_map_, tile_.col, slice * Tile::k, barrier);
      return hopper::tma_load(box, b_map_, tile_.col + part, slice * Tile::k, barrier, kBoth);
    }
    const int col = (tile_.col + part) / kPermutedRows;
    const std::uint16_t ranks = member_.beside() ? 1 << member_.side : kBoth;
    if (streams_) {
      hopper::tma_load_permuted(box, b_map_, slice * Tile::k, col, barrier, ranks, hopper::evict_first());
    } else {
      hopper::tma_load_permuted(box, b_map_, slice * Tile::k, col, barrier, ranks);
    }
  }

  __device__ __forceinline__ void load_a(int stage, int slice) const {
    if (rows_ == 0) return;
    if constexpr (Tile::by_tokens) {
      if (!member_.beside()) {
        return hopper::tma_load(ring_.a(stage), a_map_, slice * Tile::k, 0, 0, tile_.row / 16, ring_.full(stage));
      }
      const int part = member_.side * (rows_ / kPair);
      return hopper::tma_load(ring_.a(stage) + part * Tile::k * 2, a_map_, slice * Tile::k, 0, 0,
                              (tile_.row + part) / 16, ring_.full(stage), kBoth);
    }
    if (!member_.beside()) {
      return hopper::tma_load(ring_.a(stage), a_map_, tile_.row, slice * Tile::k, ring_.full(stage));
    }
    const int part = member_.side * (rows_ / kPair);
    hopper::tma_load(ring_.a(stage) + part * Tile::k * 2, a_map_, tile_.row + part, slice * Tile::k, ring_.full(stage),
                     kBoth);
  }

  static constexpr std::uint16_t kBoth = 3;
  const Ring<Tile> ring_;
  Member<Tile> member_;
  bool streams_;
  TilePlace tile_;
  int rows_, box_columns_, columns_;  ///< that come to a stage; a box is what one load brings of b
  const CUtensorMap& a_map_;
  const CUtensorMap& b_map_;
};

/// Neighbouring columns, unless on parts of k, begin `spread` slices apart, and go on from the last slice to the first.
/// Where spread is 0 all are in step, and every other tile goes from the last slice back to the first, as what was read
/// last is still in L2. The weight is nothing that a predecessor writes, so that the first stages' part of it need not
/// wait.
template <typename Tile>
__device__ __forceinline__ void produce(const Ring<Tile> ring, const OperandMaps& maps, TileSchedule<Tile> schedule,
                                        int m, int n, int slices, int spread, Member<Tile> member, bool streams) {
  const int first = member.first_slice(slices), count = member.slices(slices);
  RingPlace<Tile::stages> place;
  int sent = min(count, Tile::stages);  // slices whose weight is sent for before the other operand
  int step = 1;
  for (TilePlace tile; schedule.take(tile); step = spread == 0 ? -step : 1) {
    const IncomingTile<Tile> incoming(ring, maps, m, n, member, tile, streams);
    const int begin = step < 0 ? count - 1 : Tile::has_parts ? 0 : tile.columns_before * spread % count;
    const auto next = [&](int slice) { return slice + step < count ? slice + step : 0; };
    if (sent > 0) {
      for (int i = 0, slice = begin; i < sent; ++i, slice = next(slice)) incoming.load_early(i, first + slice);
      hopper::wait_for_predecessor();
    }
    for (int i = 0, slice = begin; i < count; ++i, slice = next(slice), place.advance()) {
      if (sent > 0) {
        --sent;
      } else {
        hopper::barrier_wait(ring.empty(place.stage), place.parity ^ 1);  // at once in the ring's first round
        incoming.load_early(place.stage, first + slice);
      }
      incoming.load_late(place.stage, first + slice);
    }
    if constexpr (Tile::has_parts) break;  // its only tile; a loop would cost registers
  }
}

/// Where a warpgroup has the sums of a part of k alone it leaves them in device memory. Who comes last of the parts
/// adds up all, in their order. Nobody waits, so that not all parts need to run at one time.
template <typename Tile>
class PartsOfTile {
 public:
  __device__ PartsOfTile(const Ring<Tile> ring, const Member<Tile>& member, int warpgroup)
      : member_(member), answer_(ring.answer(warpgroup)), barrier_(1 + warpgroup) {
    const int tile = static_cast<int>(blockIdx.x) / kPair / member.parts();
    tile_ = (tile * kPair + member.side) * Tile::consumers + warpgroup;
  }

  /// The pages that `add` will need.
  __device__ __forceinline__ void touch() const {
    hopper::touch(sums_of(member_.part));
    hopper::touch(member_.plan.part_sums.finished + tile_);
  }

  /// True for the last of the parts, whose sums are those of all from then on; for the others the tile is done.
  template <int Count>
  __device__ __forceinline__ bool add(float (&sums)[Count]) const {
    float4* const own = sums_of(member_.part);
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) {
      __stcg(own + i * kThreads, make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    }
    if (!is_last()) return false;
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
#pragma unroll 1
    for (int part = 0; part < member_.parts(); ++part) {
      const float4* const more = sums_of(part);
#pragma unroll
      for (int i = 0; i < Count / 4; ++i) {
        const float4 quad = __ldcg(more + i * kThreads);
        sums[4 * i] += quad.x;
        sums[4 * i + 1] += quad.y;
        sums[4 * i + 2] += quad.z;
        sums[4 * i + 3] += quad.w;
      }
    }
    return true;
  }

 private:
  static constexpr int kThreads = 128, kPitch = Tile::n / 8 * kThreads;  // from part to part
  static_assert(Tile::m == kPartRows && Tile::n <= kPartColumns);

  __device__ __forceinline__ float4* sums_of(int part) const {
    return reinterpret_cast<float4*>(member_.plan.part_sums.sums) +
           std::int64_t{tile_ * member_.parts() + part} * kPitch + threadIdx.x % kThreads;
  }

  __device__ __forceinline__ bool is_last() const {
    __threadfence();
    hopper::named_sync(barrier_, kThreads);
    if (is_leader()) {
      unsigned* const finished = member_.plan.part_sums.finished + tile_;
      const bool is_last = atomicAdd(finished, 1) + 1 == static_cast<unsigned>(member_.parts());
      if (is_last) *finished = 0;  // for the counters' next launch
      hopper::store_number(answer_, is_last ? 1 : 0);
    }
    hopper::named_sync(barrier_, kThreads);
    const bool is_last = hopper::load_number(answer_) != 0;
    __threadfence();
    return is_last;
  }

  const Member<Tile>& member_;
  std::uint32_t answer_;
  int barrier_, tile_;
};

template <typename T, typename Tile, typename Epilogue>
__device__ __forceinline__ void consume(const Ring<Tile> ring, const Epilogue& epilogue, TileSchedule<Tile> schedule,
                                        int m, int n, int slices, Member<Tile> member) {
  const int warpgroup = hopper::uniform(static_cast<int>(threadIdx.x) / 128 - 1);
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int first_row = Tile::by_turns ? 0 : warpgroup * Tile::bands * 64;
  const auto release = [&](int stage) {
    if (thread < kPair) hopper::barrier_arrive(ring.empty(stage), thread);
  };
  // The stages say nothing of whose turn it is, since a barrier's phases are told apart by their parity alone.
  const auto turn_of = [](int consumer) { return 1 + Tile::consumers + consumer; };  // behind Outgoing's
  RingPlace<Tile::stages> place;

  // Where c has none of a consumer's rows; by turns there are no registers for it. One warp alone follows the stages,
  // since nothing keeps the others beside it, and who came late would take a later phase for its own.
  const auto pass_over_tile = [&] {
    for (int slice = 0; slice < slices; ++slice, place.advance()) {
      if (thread >= 32) continue;
      hopper::barrier_wait(ring.full(place.stage), place.parity);
      __syncwarp();
      release(place.stage);
    }
    hopper::named_sync(1 + warpgroup, 128);
  };

  const auto make_tile = [&]<int N, int Bands>(TilePlace tile, bool is_first) {
    float accumulators[Bands][N / 2];
    if (is_first) {
      if constexpr (Tile::has_parts) {
        if (member.parts() > 1) PartsOfTile<Tile>(ring, member, warpgroup).touch();
      }
#pragma unroll
      for (int band = 0; band < Bands; ++band) {
        Outgoing<T, Tile, N, 0, Epilogue>::touch(epilogue, tile.row + first_row + band * 64, tile.col, m, n);
      }
    }
    const auto multiply = [&](bool accumulate) {
      hopper::barrier_wait(ring.full(place.stage), place.parity);
      const std::uint64_t a = hopper::descriptor(ring.a(place.stage) + first_row * Tile::k * 2);
      const std::uint64_t b = hopper::descriptor(ring.b(place.stage));
      hopper::wgmma_fence();
#pragma unroll
      for (int step = 0; step < Tile::k / 16; ++step) {
#pragma unroll
        for (int band = 0; band < Bands; ++band) {
          hopper::wgmma<T, N>(accumulators[band], a + band * (64 * Tile::k * 2 >> 4) + step * hopper::kDescriptorStepK,
                              b + step * hopper::kDescriptorStepK, accumulate || step > 0);
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
    if constexpr (!Outgoing<T, Tile, N, 0, Epilogue>::fetches_early) finish_products();
    if constexpr (Tile::has_parts) {
      if (member.parts() > 1 && !PartsOfTile<Tile>(ring, member, warpgroup).add(accumulators[0])) return;
    }
    const auto store_band = [&]<int Band>() {
      using Out = Outgoing<T, Tile, N, Band, Epilogue>;
      Out out(epilogue, ring.staging(warpgroup), warpgroup, tile.row + first_row + Band * 64, tile.col, m, n);
      if constexpr (Out::fetches_early) finish_products();
      out.store(accumulators[Band]);
    };
    store_band.template operator()<0>();
    if constexpr (Bands == 2) store_band.template operator()<1>();
  };
  // A tile's second band is left out where it has no rows, but not beside operands (RoPE's) for which registers lack.
  constexpr bool leaves_out_bands = Tile::bands == 2 && sizeof(typename Epilogue::Operands) <= 16;
  const auto make_bands = [&]<int N>(TilePlace tile, bool is_first) {
    if constexpr (leaves_out_bands) {
      if (tile.row + 64 >= m) return make_tile.template operator()<N, 1>(tile, is_first);
    }
    make_tile.template operator()<N, Tile::bands>(tile, is_first);
  };

  bool waits = Tile::by_turns && warpgroup == 1, is_first = true;
  if (waits) {
    schedule.skip();
    place.advance(slices);
  }
  for (TilePlace tile; schedule.take(tile); waits = Tile::by_turns, is_first = false) {
    if (waits) hopper::named_sync(turn_of(warpgroup), 256);
    if (!Tile::by_turns && tile.row + first_row >= m) {
      pass_over_tile();
    } else if (tile.is_wide) {
      make_bands.template operator()<Tile::n>(tile, is_first);
    } else {
      make_bands.template operator()<Tile::narrow_n>(tile, is_first);
    }
    if constexpr (Tile::has_parts) break;  // its only tile; a loop would cost registers
  }
  if (is_leader()) hopper::tma_wait_read();  // shared memory has to last so long; the rest does not need the block
}

template <typename T, typename Tile, typename Epilogue>
__global__ void __launch_bounds__(Tile::threads, 1)
    gemm_hopper([[maybe_unused]] const __grid_constant__ OperandMaps maps,
                [[maybe_unused]] const __grid_constant__ HopperPlan plan, [[maybe_unused]] int m,
                [[maybe_unused]] int n, [[maybe_unused]] int slices, [[maybe_unused]] int spread,
                [[maybe_unused]] const __grid_constant__ Epilogue epilogue) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char unaligned[];
  const Ring<Tile> ring{hopper::aligned(shared_address(unaligned))};
  const Member<Tile> member(plan);
  const int warp = hopper::uniform(static_cast<int>(threadIdx.x) / 32);
  if (threadIdx.x == 0) {
    hopper::prefetch_tensor_map(maps.a);
    hopper::prefetch_tensor_map(maps.last_a);
    hopper::prefetch_tensor_map(maps.wide);
    hopper::prefetch_tensor_map(maps.narrow);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      hopper::barrier_init(ring.full(stage), 1);
      hopper::barrier_init(ring.empty(stage), Tile::readers * kPair);
    }
    hopper::fence_barrier_init();
    if (member.side == 0 && plan.rows.arrivals != nullptr) {
      hopper::store_number(ring.place(), arrive(plan.rows, static_cast<int>(gridDim.x) / kPair));
    }
  }
  hopper::cluster_sync();
  hopper::let_successor_start();

  const TileSchedule<Tile> schedule(share_of(ring, m, member), member);
  if (warp < 4) {
    hopper::shrink_registers<hopper::kLoadingRegisters>();
    if (threadIdx.x == 0) produce(ring, maps, schedule, m, n, slices, spread, member, streams<Tile>(epilogue));
  } else {
    hopper::grow_registers<hopper::kComputingRegisters>();
    hopper::wait_for_predecessor();
    consume<T>(ring, epilogue, schedule, m, n, member.slices(slices), member);
  }
  hopper::cluster_sync();  // no block may end while the other may still arrive at its barriers
#else
  __trap();
#endif
}

inline HopperDevice hopper_device() {
  return {.pairs = multiprocessors() / kPair, .l2_bytes = device_attribute<cudaDevAttrL2CacheSize>()};
}

/// `epilogue_of`(box_rows): the epilogue, whose maps of results have boxes of so many rows. The plan is one of
/// tile_extents.
template <typename Tile, typename T, typename EpilogueOf>
void launch_hopper_tiles(const Exec& exec, const T* a, const T* weight, std::int64_t tokens, std::int64_t features,
                         std::int64_t k, const EpilogueOf& epilogue_of, const HopperPlan& plan) {
  constexpr int kSharedBytes = hopper::kAlignBytes + Tile::used_bytes;
  static_assert(Tile::stage_bytes % hopper::kAlignBytes == 0 && Tile::b_bytes / kPair % hopper::kAlignBytes == 0);
  static_assert(kSharedBytes <= 227 * 1024);
  const HopperDevice device = hopper_device();
  const auto [m, n] = tile_extents<Tile>(tokens, features);
  const T* const rows = Tile::by_tokens ? weight : a;
  const T* const columns = Tile::by_tokens ? a : weight;
  const auto epilogue = epilogue_of(Tile::box_rows);
  using Epilogue = std::remove_const_t<decltype(epilogue)>;
  if (features % kPermutedRows != 0) throw std::invalid_argument("the Hopper product takes a multiple of 32 columns");
  require<Tile>(plan, m, k, device);
  constexpr DType dtype = std::is_same_v<T, __half> ? DType::fp16 : DType::bf16;
  const int shared_a = plan.beside ? kPair : 1, shared_b = plan.beside ? 1 : kPair;
  constexpr int kAlignRows = hopper::kAlignBytes / (Tile::k * 2);  // by tokens all m are multiples of 32
  const int rest = static_cast<int>((m - 1) % Tile::m) + 1;
  const int last_rows = ceil_div(rest, shared_a * kAlignRows) * shared_a * kAlignRows;
  const auto rows_map = Tile::by_tokens ? paired_map : matrix_map;
  const auto columns_map = Tile::by_tokens ? matrix_map : permuted_map;
  const OperandMaps maps{.a = rows_map(dtype, rows, m, k, Tile::m / shared_a),
                         .last_a = rows_map(dtype, rows, m, k, last_rows / shared_a),
                         .wide = columns_map(dtype, columns, n, k, Tile::n / shared_b),
                         .narrow = columns_map(dtype, columns, n, k, Tile::narrow_n / shared_b),
                         .last_rows = last_rows};
  const int slices = slices_of<Tile>(k), spread = group_stays_in_l2<Tile>(k, device) ? ceil_div(slices, 4) : 0;
  launch_hopper_kernel(exec, gemm_hopper<T, Tile, Epilogue>, pairs_of<Tile>(m, plan, device) * kPair, Tile::threads,
                       kSharedBytes, kPair, maps, plan, static_cast<int>(m), static_cast<int>(n), slices, spread,
                       epilogue);
}

/// By the plan that is expected to be done first. k is split where there is memory for `part_sums`, and all parts have
/// room at one time.
template <typename T, typename EpilogueOf>
void launch_hopper(const Exec& exec, const T* a, const T* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                   const EpilogueOf& epilogue_of, void* part_sums = nullptr) {
  if (std::max(m, n) > kHopperExtent) throw std::invalid_argument("the Hopper product takes m and n up to 2^31 - 513");
  const HopperDevice device = hopper_device();
  const ChosenPlan chosen = choose_plan(m, n, k, part_sums != nullptr, device);
  with_tile(chosen.tile, [&]<typename Tile>() {
    HopperPlan plan = chosen.plan;
    if (halves_rows<Tile>(tile_extents<Tile>(m, n).rows, k, plan, device)) {
      if (const auto partitions = l2_partitions()) plan.rows = {&next_launch_counters()->arrivals, *partitions};
    }
    if (plan.parts > 1) plan.part_sums = {static_cast<float*>(part_sums), next_launch_counters()->finished};
    launch_hopper_tiles<Tile>(exec, a, weight, m, n, k, epilogue_of, plan);
  });
}

}  // namespace fusebench::kernels::cuda
