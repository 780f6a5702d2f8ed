// Plans of the Hopper product (kernels/hopper_plan.h): which tiles are taken, and that tiles cover the product.
#include "tests/hopper_plan.h"

#include <algorithm>
#include <vector>

namespace {

using namespace fusebench;
using namespace fusebench::kernels::cuda;
using namespace fusebench::testing;

template <typename Tile>
void check_refused(std::int64_t m, std::int64_t k, const HopperPlan& plan) {
  CHECK_THROWS_AS(require<Tile>(plan, m, k, kH200), std::invalid_argument);
}

}  // namespace

TEST_CASE("each of a Hopper product's tiles is taken by some shape") {
  for (const HopperCase& c : hopper_cases()) check_chosen(c, kH200);
}

TEST_CASE("the products of LLaMA-3-8B take the tiles that were measured to be fastest") {
  using enum HopperTileKind;
  constexpr std::int64_t kQkv = 6144, kDim = 4096, kHidden = 14336;
  for (const HopperCase& c : {
           HopperCase{turns, false, 1, 4096, kQkv, kDim},
           {turns, false, 1, 4096, kDim, kDim},
           {turns, false, 1, 4096, 2 * kHidden, kDim},
           {large, false, 1, 4096, kDim, kHidden},
           {turns, true, 1, 640, 2 * kHidden, kDim},
           {turns, true, 1, 384, 2 * kHidden, kDim},
           {token_turns, true, 1, 320, 2 * kHidden, kDim},
           {token_part, true, 2, 320, kDim, kHidden},
           {token_part, true, 1, 640, kDim, kHidden},
           {medium_part, false, 1, 256, kQkv, kDim},
           {small_part, false, 1, 256, kDim, kDim},
           {small_part, true, 2, 128, kDim, kDim},
           {small_part, true, 2, 128, kDim, kHidden},
       }) {
    check_chosen(c, kH200);
  }
  CHECK(cheapest_plan<HopperLargeTile>(128, 28672, 4096, 1, kH200).plan.beside);
  CHECK_FALSE(cheapest_plan<HopperLargeTile>(256, 28672, 4096, 1, kH200).plan.beside);
}

TEST_CASE("a chosen plan covers its product, and its tile can follow it") {
  for (const std::int64_t pairs : {1, 8, 57, 66}) {
    const HopperDevice device{.pairs = pairs, .l2_bytes = kH200.l2_bytes};
    for (const std::int64_t m : {1, 64, 65, 128, 129, 300, 640, 1100, 4096, 20000}) {
      for (const std::int64_t n : {32, 160, 416, 1024, 4096, 6144, 28672}) {
        for (const std::int64_t k : {8, 72, 4096, 14336}) {
          for (const bool has_part_sums : {false, true}) {
            const ChosenPlan chosen = choose_plan(m, n, k, has_part_sums, device);
            CAPTURE(pairs, m, n, k, has_part_sums, static_cast<int>(chosen.tile));
            with_tile(chosen.tile, [&]<typename Tile>() {
              HopperPlan plan = chosen.plan;
              const TileExtents of = tile_extents<Tile>(m, n);
              const std::int64_t columns = (plan.columns.wide * Tile::n + plan.columns.narrow * Tile::narrow_n) *
                                           (plan.beside ? std::int64_t{kPair} : 1);
              CHECK(columns >= of.columns);
              CHECK((plan.parts == 1 || has_part_sums));
              CHECK((!Tile::has_parts || pairs_of<Tile>(of.rows, plan, device) <= pairs));
              float sums = 0;
              unsigned finished = 0;
              plan.part_sums = {&sums, &finished};
              CHECK_NOTHROW(require<Tile>(plan, of.rows, k, device));
            });
          }
        }
      }
    }
  }
  CHECK(kernels::part_sums_bytes(132, 4096, 4096) == 0);
}

TEST_CASE("a Hopper product refuses plans that its tiles cannot follow") {
  float sums{};
  unsigned finished = 0;
  unsigned long long arrivals = 0;
  const HopperPlan halved{.columns = {1, 0}, .rows = RowPlan{&arrivals, {}}};
  const HopperPlan beside{.columns = {1, 0}, .beside = true};
  const HopperPlan split{.columns = {1, 0}, .parts = 4, .part_sums = {&sums, &finished}};
  check_refused<HopperTurnTile>(128, 512, halved);  // one row of tiles
  check_refused<HopperLargeTile>(128, 256, {.columns = {1, 1}});
  check_refused<HopperTokenPartTile>(128, 256, {.columns = {1, 1}});
  CHECK_NOTHROW(require<HopperLargeTile>(beside, 300, 512, kH200));
  CHECK_NOTHROW(require<HopperTurnTile>(beside, 300, 512, kH200));
  CHECK_NOTHROW(require<HopperPartTile>(split, 128, 256, kH200));  // four slices
  check_refused<HopperPartTile>(128, 192, split);                  // three
  check_refused<HopperLargeTile>(128, 256, split);
  check_refused<HopperTurnTile>(128, 256, split);
  check_refused<HopperPartTile>(128, 256, {.columns = {1, 0}, .parts = 4});
  HopperPlan wide = split;
  wide.columns.wide = kernels::kPartCounters / 4 + 1;
  check_refused<HopperPartTile>(128, 256, wide);
}

TEST_CASE("a Hopper product's columns of tiles leave the busiest pair the least to do") {
  using Tile = HopperTurnTile;
  for (const std::int64_t m : {1, 257, 2300, 4096}) {
    for (const std::int64_t n : {32, 416, 4096, 12288}) {
      for (const std::int64_t at_once : {1, 7, 66}) {
        CAPTURE(m, n, at_once);
        const std::int64_t tall = tall_tiles<Tile>(m);
        const ColumnPlan chosen = choose_columns<Tile>(tall, n, at_once);
        double least = 1e300;
        for (std::int64_t wide = 0; wide <= kernels::ceil_div<std::int64_t>(n, Tile::n); ++wide) {
          const ColumnPlan columns = columns_of<Tile>(n, wide);
          CHECK(columns.wide * Tile::n + columns.narrow * Tile::narrow_n >= n);
          std::vector<double> work(static_cast<std::size_t>(at_once));
          const std::int64_t wide_tiles = tall * wide, tiles = wide_tiles + tall * columns.narrow;
          for (std::int64_t tile = 0; tile < tiles; ++tile) {
            work[static_cast<std::size_t>(tile % at_once)] += tile < wide_tiles ? Tile::n : Tile::narrow_n / 0.94;
          }
          const double busiest = *std::max_element(work.begin(), work.end());
          CHECK(busiest_columns<Tile>(tall, columns, at_once) == Approx(busiest));
          least = std::min(least, busiest);
        }
        CHECK(busiest_columns<Tile>(tall, chosen, at_once) == Approx(least));
      }
    }
  }
  const ColumnPlan columns = choose_columns<Tile>(16, 4096, 66);
  CHECK((columns.wide == 16 && columns.narrow == 8));
}
