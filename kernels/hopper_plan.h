// How the Hopper product (kernels/gemm_hopper.cuh) is shared out: its tiles, and which of them, in which plan, is
// expected to be done first. Host code without CUDA; the kernel reads a plan, and a tile's numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "kernels/fused.h"
#include "kernels/l2_partitions.h"

namespace fusebench::kernels::cuda {

/// Of the weight's neighbouring rows, so of c's columns, that TMA brings in another order, see permuted_map.
constexpr int kPermutedRows = 32;

/// Results leave in boxes of 64 rows and 32 columns, or of fewer rows, see kTokenBoxRows.
constexpr int kBoxRows = 64, kBoxColumns = 32, kBoxBytes = kBoxRows * kBoxColumns * 2;

enum class Consumers : std::uint8_t { together, by_turns, together_on_parts };

constexpr int kMaxParts = 8;  ///< of k, beyond which adding them up takes too long
constexpr int kPair = 2;      ///< blocks

/// What all tiles have, of 128 rows and Wide columns; a product's last columns may be tiles of Narrow columns, see
/// choose_columns. `StagingBytes` are what a consumer has for results on their way out.
template <int Wide, int Narrow, int Stages, Consumers How, int StagingBytes>
struct HopperTileLayout {
  static constexpr int m = 128, n = Wide, narrow_n = Narrow, k = 64, stages = Stages;
  static constexpr int group_rows = 2048;  ///< rows of tiles' operand a that are read at one time, see TileSchedule
  static constexpr bool by_turns = How == Consumers::by_turns, has_parts = How == Consumers::together_on_parts;
  static constexpr int consumers = 2;                       ///< warpgroups
  static constexpr int readers = by_turns ? 1 : consumers;  ///< of a stage
  static constexpr int bands = m / 64 / readers;            ///< of 64 rows, a consumer's
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int a_bytes = m * k * 2, b_bytes = n * k * 2, stage_bytes = a_bytes + b_bytes;
  static constexpr int staging_bytes = StagingBytes;
  static constexpr int staging_offset = stages * stage_bytes;
  static constexpr int barriers_offset = staging_offset + consumers * staging_bytes;
  static constexpr int place_offset = barriers_offset + 2 * stages * 8;
  static constexpr int answers_offset = place_offset + 4;
  static constexpr int used_bytes = answers_offset + 4 * consumers;

  static_assert(group_rows % (m * kPair) == 0 && narrow_n <= n);
  static_assert(m * kPair <= INT32_MAX - kHopperExtent && n * kPair <= INT32_MAX - kHopperExtent);
};

/// Of a tile's columns, those whose results a consumer stages at one time: what the stages leave room for.
constexpr int staged_columns_of(int columns, Consumers how) {
  return std::min(columns, how == Consumers::by_turns ? 64 : 128);
}

/// A tile's rows are tokens, its columns those of the product.
template <int Wide, int Narrow, int Stages, Consumers How>
struct HopperTile
    : HopperTileLayout<Wide, Narrow, Stages, How, staged_columns_of(Wide, How) / kBoxColumns * kBoxBytes> {
  static constexpr bool by_tokens = false;
  static constexpr int staged_columns = staged_columns_of(Wide, How), box_rows = kBoxRows;

  static_assert(Wide / kPair % kPermutedRows == 0 && Wide % 64 == 0);
  static_assert(Narrow / kPair % kPermutedRows == 0 && Narrow % 64 == 0);
};

/// Where the operands change places results leave in boxes of 32 tokens. Before that a consumer exchanges their sums,
/// in fp32, of 64 columns; rows of four more, so that the accesses of a warp do not meet in a bank.
constexpr int kTokenBoxRows = 32, kTokenBoxBytes = kTokenBoxRows * kBoxColumns * 2;
constexpr int kExchangePitch = (64 + 4) * 4, kExchangeBytes = kTokenBoxRows * kExchangePitch;

/// The operands change places: a tile's rows are columns of the product, 128 of them, and its columns are tokens.
template <int Tokens, int Stages, Consumers How>
struct HopperTokenTile : HopperTileLayout<Tokens, Tokens, Stages, How, 2 * kTokenBoxBytes + kExchangeBytes> {
  static constexpr bool by_tokens = true;
  static constexpr int box_rows = kTokenBoxRows;

  static_assert(Tokens % kTokenBoxRows == 0 && HopperTokenTile::staging_bytes % 512 == 0);
};

using HopperLargeTile = HopperTile<256, 256, 4, Consumers::together>;
using HopperTurnTile = HopperTile<192, 128, 5, Consumers::by_turns>;
using HopperPartTile = HopperTile<256, 192, 4, Consumers::together_on_parts>;
using HopperMediumPartTile = HopperTile<128, 128, 6, Consumers::together_on_parts>;
using HopperSmallPartTile = HopperTile<64, 64, 8, Consumers::together_on_parts>;
using HopperTokenTurnTile = HopperTokenTile<160, 5, Consumers::by_turns>;
using HopperTokenPartTile = HopperTokenTile<160, 5, Consumers::together_on_parts>;

/// Of a product, the rows and columns of all tiles.
struct TileExtents {
  std::int64_t rows, columns;
};
template <typename Tile>
constexpr TileExtents tile_extents(std::int64_t m, std::int64_t n) {
  return Tile::by_tokens ? TileExtents{n, m} : TileExtents{m, n};
}

/// How many tiles lie beside each other: first `wide` wide ones, then narrow ones.
struct ColumnPlan {
  int wide, narrow;
};

/// How pairs share the rows of tiles. With `arrivals`, pairs of the first L2 partition have the upper half of the
/// rows and those of the second the lower half, which needs can_halve_rows; who is where is found out when pairs
/// arrive. Without, all share all.
struct RowPlan {
  unsigned long long* arrivals;  ///< next_launch_counters', or null
  L2Partitions partitions;
};

/// Where parts of k come together: partial sums, and how many parts have left theirs, zero between launches.
struct PartSums {
  float* sums;  ///< part_sums_bytes
  unsigned* finished;
};

/// How a product is shared out.
struct HopperPlan {
  ColumnPlan columns;  ///< of pairs, where their tiles lie beside each other
  RowPlan rows = {};
  bool beside = false;  ///< a pair's tiles lie beside each other
  int parts = 1;  ///< of k, up to the slices; more than one only where Tile::has_parts, whose pairs have one tile each
  PartSums part_sums = {};
};

/// What plans depend on of a device.
struct HopperDevice {
  std::int64_t pairs;  ///< that run at one time, a block on each multiprocessor
  std::int64_t l2_bytes;
};

/// How many pairs' tiles lie above each other.
template <typename Tile>
std::int64_t tall_tiles(std::int64_t m, bool beside = false) {
  return ceil_div<std::int64_t>(m, beside ? Tile::m : Tile::m * kPair);
}

/// Tiles of pairs, of both widths, in `tall` rows.
inline std::int64_t pair_tiles_of(std::int64_t tall, ColumnPlan columns) {
  return tall * (columns.wide + columns.narrow);
}

template <typename Tile>
std::int64_t pair_tiles(std::int64_t m, const HopperPlan& plan) {
  return pair_tiles_of(tall_tiles<Tile>(m, plan.beside), plan.columns);
}

/// `wide` wide columns of tiles, and narrow ones for the rest of n.
template <typename Tile>
ColumnPlan columns_of(std::int64_t n, std::int64_t wide) {
  const std::int64_t rest = std::max<std::int64_t>(0, n - wide * Tile::n);
  return {static_cast<int>(wide), static_cast<int>(ceil_div<std::int64_t>(rest, Tile::narrow_n))};
}

/// How many columns are worked on, over all of its tiles, by the busiest of `at_once` pairs, or groups of pairs with
/// the same tiles: the first. A narrow tile's count for more, since it loads more for each FLOP; where columns are
/// fewer than rows, loading takes longer than multiplying.
template <typename Tile>
double busiest_columns(std::int64_t tall, ColumnPlan columns, std::int64_t at_once) {
  constexpr double kWide = std::max<double>(Tile::n, (Tile::n + Tile::m) / 2.0), kNarrow = Tile::narrow_n / 0.94;
  static_assert(Tile::narrow_n == Tile::n || kNarrow < Tile::n);  // so one tile less is never more work
  const std::int64_t its_wide = ceil_div(tall * columns.wide, at_once);
  const std::int64_t its_all = ceil_div(pair_tiles_of(tall, columns), at_once);
  return static_cast<double>(its_wide) * kWide + static_cast<double>(its_all - its_wide) * kNarrow;
}

/// The plan by which the busiest has the least to do; of equals the one with the most wide tiles.
template <typename Tile>
ColumnPlan choose_columns(std::int64_t tall, std::int64_t n, std::int64_t at_once) {
  auto wide = ceil_div<std::int64_t>(n, Tile::n);
  ColumnPlan best = columns_of<Tile>(n, wide);
  if (Tile::narrow_n == Tile::n) return best;
  double least = busiest_columns<Tile>(tall, best, at_once);
  while (--wide >= 0) {
    const ColumnPlan columns = columns_of<Tile>(n, wide);
    const double busiest = busiest_columns<Tile>(tall, columns, at_once);
    if (busiest >= least) continue;
    least = busiest;
    best = columns;
  }
  return best;
}

/// Whether the rows of a group fit in L2 beside what streams by. Then columns are spread over k: in step each row's
/// slice would be read at one time, and be gone when the next columns ask for it.
template <typename Tile>
bool group_stays_in_l2(std::int64_t k, HopperDevice device) {
  return 2 * Tile::group_rows * k * 2 <= device.l2_bytes;
}

/// Whether each partition gets as many tiles, and they are enough for all pairs.
template <typename Tile>
bool can_halve_rows(std::int64_t m, ColumnPlan columns, HopperDevice device) {
  const std::int64_t tall = tall_tiles<Tile>(m);
  return tall % 2 == 0 && device.pairs % 2 == 0 && pair_tiles_of(tall, columns) >= device.pairs;
}

template <typename Tile>
int slices_of(std::int64_t k) {
  return static_cast<int>(ceil_div<std::int64_t>(k, Tile::k));
}

/// How many pairs a plan is launched with. Of tiles that are all alike, as few as take no more rounds: a round's tiles
/// then are whole columns more often, which read less. 256 tiles take four rounds of 64 pairs, of eight rows and
/// columns, as of 66.
template <typename Tile>
std::int64_t pairs_of(std::int64_t m, const HopperPlan& plan, HopperDevice device) {
  const std::int64_t tiles = pair_tiles<Tile>(m, plan);
  if (Tile::has_parts) return tiles * plan.parts;
  const bool alike = plan.columns.wide == 0 || plan.columns.narrow == 0;
  if (!alike || plan.rows.arrivals != nullptr) return std::min(tiles, device.pairs);
  return ceil_div(tiles, ceil_div(tiles, device.pairs));
}

/// Throws std::invalid_argument where the tile cannot follow the plan.
template <typename Tile>
void require(const HopperPlan& plan, std::int64_t m, std::int64_t k, HopperDevice device) {
  const std::int64_t tiles = pair_tiles<Tile>(m, plan);
  if (tiles > INT32_MAX / 2) throw std::invalid_argument("a product of over 2^30 tiles");
  if (Tile::narrow_n == Tile::n && plan.columns.narrow > 0) {
    throw std::invalid_argument("a tile without narrow columns");
  }
  if (plan.rows.arrivals != nullptr &&
      (plan.parts > 1 || plan.beside || !can_halve_rows<Tile>(m, plan.columns, device))) {
    throw std::invalid_argument("rows of tiles that cannot be halved");
  }
  if (plan.parts == 1) return;
  const bool can_split = Tile::has_parts && plan.parts > 1 && plan.parts <= slices_of<Tile>(k);
  if (!can_split || tiles * kPair * Tile::consumers > kPartCounters || plan.part_sums.sums == nullptr) {
    throw std::invalid_argument("k cannot be split so");
  }
}

/// Whether rows should be halved: where columns are spread. In step they would be read more often. Not by tokens, of
/// which all columns are worked on at one time: the weight's rows need not stay.
template <typename Tile>
bool halves_rows(std::int64_t m, std::int64_t k, const HopperPlan& plan, HopperDevice device) {
  const bool pays = !Tile::has_parts && !Tile::by_tokens && !plan.beside && group_stays_in_l2<Tile>(k, device);
  return pays && can_halve_rows<Tile>(m, plan.columns, device);
}

/// A plan, and what its busiest pair is expected to take, in columns times slices of k.
struct CostedPlan {
  HopperPlan plan;
  double cost;
};

/// From measurements on an H200: an epilogue that no products hide costs as much as six slices, and by turns, where a
/// warpgroup has twice the rows, as twelve; to add parts up costs 1600 columns times slices, 4 us, and three slices for
/// each part. Where rows are too long for L2, the narrower tiles by turns cost more, as they read them more often;
/// tiles beside each other read more as well, and those of halved rows less. Token tiles take longer by 8%, or 5%
/// beside each other, where the weight comes to both of a pair's. Memory brings a slice of n rows of the weight in the
/// time of kFromMemory · n.
template <typename Tile>
CostedPlan cost_plan(std::int64_t m, std::int64_t n, std::int64_t k, bool beside, int parts, HopperDevice device) {
  const std::int64_t tall = tall_tiles<Tile>(m, beside), at_once = device.pairs / parts;
  const ColumnPlan columns = choose_columns<Tile>(tall, beside ? ceil_div<std::int64_t>(n, kPair) : n, at_once);
  const HopperPlan plan{.columns = columns, .beside = beside, .parts = parts};
  const double reading = Tile::by_tokens                         ? (beside ? 1.05 : 1.08)
                         : beside                                ? 1.02
                         : halves_rows<Tile>(m, k, plan, device) ? 0.98
                                                                 : 1.0;
  const double busiest = busiest_columns<Tile>(tall, columns, at_once) * reading;
  const int slices = ceil_div(slices_of<Tile>(k), parts);
  constexpr double kEpilogue = 6, kFromMemory = 0.0145;
  const double products =
      std::max(busiest, kFromMemory * static_cast<double>((Tile::by_tokens ? m : n) * parts)) * slices;
  const double rereads = Tile::by_turns && !group_stays_in_l2<Tile>(k, device) ? 1.05 : 1.0;
  const double last = columns.narrow > 0 ? Tile::narrow_n : Tile::n;
  const double epilogue = kEpilogue * (Tile::by_turns ? 2 * last : busiest);
  const double adding = parts > 1 ? 1600 + 3 * parts * busiest : 0;
  return {plan, products * rereads + epilogue + adding};
}

/// Tiles on parts of k are weighed only where all run at one time, since cost_plan knows no more of them; where none
/// do, the cost is infinite.
template <typename Tile>
CostedPlan cheapest_plan(std::int64_t m, std::int64_t n, std::int64_t k, int most_parts, HopperDevice device) {
  CostedPlan best{{}, std::numeric_limits<double>::infinity()};
  for (const bool beside : {false, true}) {
    const std::int64_t fewest = tall_tiles<Tile>(m, beside) * ceil_div<std::int64_t>(n, Tile::n * (beside ? kPair : 1));
    for (int parts = 1; parts <= (Tile::has_parts ? most_parts : 1); ++parts) {
      if (Tile::has_parts && fewest * parts > device.pairs) break;  // nor will more; columns need no weighing
      const CostedPlan costed = cost_plan<Tile>(m, n, k, beside, parts, device);
      const bool fits = pair_tiles<Tile>(m, costed.plan) * parts <= device.pairs;
      if ((fits || !Tile::has_parts) && costed.cost < best.cost) best = costed;
    }
  }
  return best;
}

enum class HopperTileKind : std::uint8_t {
  turns,
  large,
  part,
  medium_part,
  small_part,
  token_turns,
  token_part,
};

/// f.operator()<Tile>() for the tile's type.
template <typename F>
void with_tile(HopperTileKind kind, F&& f) {
  switch (kind) {
    case HopperTileKind::turns:
      return f.template operator()<HopperTurnTile>();
    case HopperTileKind::large:
      return f.template operator()<HopperLargeTile>();
    case HopperTileKind::part:
      return f.template operator()<HopperPartTile>();
    case HopperTileKind::medium_part:
      return f.template operator()<HopperMediumPartTile>();
    case HopperTileKind::small_part:
      return f.template operator()<HopperSmallPartTile>();
    case HopperTileKind::token_turns:
      return f.template operator()<HopperTokenTurnTile>();
    case HopperTileKind::token_part:
      return f.template operator()<HopperTokenPartTile>();
  }
}

struct ChosenPlan {
  HopperTileKind tile;
  HopperPlan plan;
};

/// That whose busiest pair is expected to be done first; of those within half a percent the first one here, which has
/// larger tiles.
inline ChosenPlan choose_plan(std::int64_t m, std::int64_t n, std::int64_t k, bool has_part_sums, HopperDevice device) {
  const std::int64_t slices = slices_of<HopperPartTile>(k);
  const int most_parts =
      has_part_sums ? static_cast<int>(std::min<std::int64_t>({kMaxParts, slices, device.pairs})) : 1;
  ChosenPlan chosen{};
  double least = std::numeric_limits<double>::infinity();
  using enum HopperTileKind;
  for (const HopperTileKind kind : {large, turns, part, medium_part, small_part, token_turns, token_part}) {
    with_tile(kind, [&]<typename Tile>() {
      constexpr std::int64_t kMostTokens = 640;  // beyond which a block took longer with token tiles, on an H200
      if (Tile::by_tokens && m > kMostTokens) return;
      const auto [rows, columns] = tile_extents<Tile>(m, n);
      const CostedPlan costed = cheapest_plan<Tile>(rows, columns, k, most_parts, device);
      if (costed.cost >= 0.995 * least) return;
      least = costed.cost;
      chosen = {kind, costed.plan};
    });
  }
  return chosen;
}

}  // namespace fusebench::kernels::cuda
