// The product's main loop: every tile and loader on few rows, with the pipeline at each of its borders.
#include "kernels/product.cuh"

#include <array>

#include "tests/catch.h"
#include "tests/gpu/plain_tile.h"
#include "tests/gpu/product.h"

namespace {

using namespace fusebench;
using namespace fusebench::kernels::cuda;
using namespace fusebench::testing;

/// Stores the accumulators as they are.
struct PlainEpilogue {
  using Column = std::int64_t;
  using Row = std::int64_t;
  struct Operands {};

  float* c;
  std::int64_t n;

  __device__ Column column(std::int64_t col) const { return col; }
  __device__ Row row(std::int64_t row) const { return row; }
  __device__ Operands fetch(Row, Column) const { return {}; }
  __device__ void store(Row row, Column col, Operands, const float (&values)[8]) const {
    fusebench::kernels::cuda::store_elements(c + row * n + col, values, false, n - col);
  }
};

template <typename Tile>
constexpr bool is_hopper = requires {
  Tile::consumers;
};

/// f.operator()<Tile>() for each tile on parts of k.
template <typename F>
void for_part_tiles(F&& f) {
  for_types<HopperPartTile, HopperMediumPartTile, HopperSmallPartTile, HopperTokenPartTile>(f);
}

/// For each of the Hopper product's.
template <typename F>
void for_hopper_tiles(F&& f) {
  for_types<HopperLargeTile, HopperTurnTile, HopperTokenTurnTile>(f);
  for_part_tiles(f);
}

/// A product's m and n.
struct ProductExtents {
  std::int64_t tokens, features;
};

/// Those that tiles of so many rows and columns in all cover, the reverse of tile_extents.
template <typename Tile>
constexpr ProductExtents product_of(std::int64_t rows, std::int64_t columns) {
  if constexpr (is_hopper<Tile>) {
    if (Tile::by_tokens) return {columns, rows};
  }
  return {rows, columns};
}

/// Of a pair's tiles, which lie above each other.
template <typename Tile>
constexpr std::int64_t pair_features() {
  return Tile::by_tokens ? Tile::m * kPair : Tile::n;
}

/// Wide columns of tiles alone, narrow ones alone, and some of each.
template <typename Tile>
std::vector<ColumnPlan> column_plans(std::int64_t n) {
  const std::int64_t wide = kernels::ceil_div<std::int64_t>(n, Tile::n);
  if (Tile::narrow_n == Tile::n) return {columns_of<Tile>(n, wide)};
  std::vector<ColumnPlan> plans{columns_of<Tile>(n, wide), columns_of<Tile>(n, 0)};
  if (wide > 1) plans.push_back(columns_of<Tile>(n, wide / 2));
  return plans;
}

constexpr std::array kParts{2, 3, 8};

/// The same for every way in which a product can be shared out.
template <typename Tile>
std::vector<HopperPlan> plans(std::int64_t tokens, std::int64_t features, std::int64_t k) {
  const auto [m, n] = tile_extents<Tile>(tokens, features);
  static DeviceBuffer<float> sums = part_sums_buffer();
  std::vector<HopperPlan> plans;
  for (const bool beside : {false, true}) {
    for (const ColumnPlan columns : column_plans<Tile>(beside ? kernels::ceil_div<std::int64_t>(n, kPair) : n)) {
      plans.push_back({.columns = columns, .beside = beside});
      for (const int parts : kParts) {
        const PartSums part_sums{sums.data(), kernels::next_launch_counters()->finished};
        const HopperPlan split{.columns = columns, .beside = beside, .parts = parts, .part_sums = part_sums};
        const bool fits = parts <= slices_of<Tile>(k) && pair_tiles<Tile>(m, split) * parts <= hopper_device().pairs;
        if (Tile::has_parts && fits) plans.push_back(split);
      }
    }
  }
  return plans;
}

template <typename Tile, bool Aligned, typename T>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  CAPTURE(m, n, k, Tile::m, Tile::n, Aligned, name_of(Format<T>::dtype));
  const Exec exec{Backend::cuda, nullptr};
  const std::int64_t offset = Aligned ? 0 : 1;
  const std::vector<T> a = draw<T>(m * k, 1), weight = draw<T>(n * k, 2);
  const DeviceBuffer<T> device_a(a, offset), device_weight(weight, offset);
  const Product expected = product(a, weight, m, n, k);
  const auto check = [&](const auto& c) {
    CHECK(mismatch(c.read(), expected.value, expected.slack) == "");
    CHECK(c.guards_intact());
  };
  if constexpr (is_hopper<Tile>) {
    for (const HopperPlan& plan : plans<Tile>(m, n, k)) {
      CAPTURE(plan.columns.wide, plan.columns.narrow, plan.beside, plan.parts);
      DeviceBuffer<T> c(m * n, 0, output_guard);
      launch_hopper_tiles<Tile>(exec, device_a.data(), device_weight.data(), m, n, k,
                                plain_tile_of(Format<T>::dtype, c.data(), m, n), plan);
      check(c);
    }
  } else {
    DeviceBuffer<float> c(m * n, 0, output_guard);
    launch_tiles<Tile, Aligned>(exec, device_a.data(), device_weight.data(), m, n, k, PlainEpilogue{c.data(), n});
    check(c);
  }
}

/// fp16, and of m rows those at the borders of warps, bands and tiles.
template <typename Tile>
void check_product_rows(std::int64_t m, std::int64_t n, std::int64_t k) {
  CAPTURE(m, n, k, Tile::n);
  const std::vector<__half> a = draw<__half>(m * k, 1), weight = draw<__half>(n * k, 2);
  const DeviceBuffer<__half> device_a(a), device_weight(weight);
  std::vector<std::int64_t> rows{0, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 129, 159, 160};
  std::erase_if(rows, [&](std::int64_t row) { return row >= m; });
  std::vector<__half> a_rows;
  for (const std::int64_t row : rows) a_rows.insert(a_rows.end(), a.begin() + row * k, a.begin() + (row + 1) * k);
  const Product expected = product(a_rows, weight, static_cast<std::int64_t>(rows.size()), n, k);
  for (const HopperPlan& plan : plans<Tile>(m, n, k)) {
    CAPTURE(plan.columns.wide, plan.columns.narrow, plan.beside, plan.parts);
    DeviceBuffer<__half> c(m * n, 0, output_guard);
    launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, device_a.data(), device_weight.data(), m, n, k,
                              plain_tile_of(DType::fp16, c.data(), m, n), plan);
    std::vector<__half> c_rows;
    for (const std::int64_t row : rows) {
      const std::vector<__half> c_row = c.read(row * n, n);
      c_rows.insert(c_rows.end(), c_row.begin(), c_row.end());
    }
    CHECK(mismatch(c_rows, expected.value, expected.slack) == "");
    CHECK(c.guards_intact());
  }
}

/// Rows that are halved between L2 partitions, where these are as measured and where they are wrong: a result may not
/// depend on them.
template <typename Tile>
void check_halved_rows(std::int64_t m, std::int64_t k) {
  const std::int64_t n = (hopper_device().pairs / tall_tiles<Tile>(m) + 2) * Tile::n + kPermutedRows;
  CAPTURE(m, n, k, Tile::n);
  const std::vector<__half> a = draw<__half>(m * k, 1), weight = draw<__half>(n * k, 2);
  const DeviceBuffer<__half> device_a(a), device_weight(weight);
  const auto result = [&](RowPlan rows, ColumnPlan columns) {
    DeviceBuffer<__half> c(m * n, 0, output_guard);
    launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, device_a.data(), device_weight.data(), m, n, k,
                              plain_tile_of(DType::fp16, c.data(), m, n), {.columns = columns, .rows = rows});
    CHECK(c.guards_intact());
    return c.read();
  };
  std::vector<kernels::L2Partitions> tables(4);
  tables[1].second.fill(~std::uint64_t{0});                  // all in one
  tables[2].second.fill(std::uint64_t{0xcccccccccccccccc});  // every other pair
  tables[3] = kernels::l2_partitions().value_or(kernels::L2Partitions{});
  unsigned long long* const counter =
      &kernels::next_launch_counters()->arrivals;  // one for all, since a launch leaves it zero
  for (const ColumnPlan columns : column_plans<Tile>(n)) {
    REQUIRE(can_halve_rows<Tile>(m, columns, hopper_device()));
    const std::vector<__half> expected = result(RowPlan{}, columns);
    for (const kernels::L2Partitions& table : tables) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        const bool same = result({counter, table}, columns) == expected;
        CHECK(same);
      }
    }
  }
}

template <typename Tile, bool Aligned>
void check_both_types(std::int64_t m, std::int64_t n, std::int64_t k) {
  check_product<Tile, Aligned, __half>(m, n, k);
  check_product<Tile, Aligned, __nv_bfloat16>(m, n, k);
}

template <typename Tile, bool Aligned>
void check_pipeline() {
  constexpr ProductExtents one = product_of<Tile>(Tile::m, Tile::n);
  for (const int slices : {1, Tile::stages - 1, Tile::stages, Tile::stages + 1, 5, 2 * Tile::stages + 1}) {
    check_both_types<Tile, Aligned>(one.tokens, one.features, slices * Tile::k);
  }
}

template <typename Tile, bool Aligned>
void check_edges(std::int64_t k = 40) {
  constexpr std::int64_t unit = is_hopper<Tile> ? kPermutedRows : 1;
  constexpr ProductExtents one = product_of<Tile>(Tile::m, Tile::n);
  for (const std::int64_t m :
       {std::int64_t{1}, std::int64_t{33}, std::int64_t{64}, std::int64_t{65}, one.tokens - 1, one.tokens + 1}) {
    for (const std::int64_t n : {unit, 33 * unit, one.features - unit, one.features + unit}) {
      check_both_types<Tile, Aligned>(m, n, k);
    }
  }
}

}  // namespace

TEST_CASE("a product is right with every number of slices in its pipeline") {
  if (skip_without_device()) return;
  for_types<LargeTile, MediumTile, SmallTile, SkinnyTile>([&]<typename Tile>() { check_pipeline<Tile, true>(); });
}

TEST_CASE("a product is right where its last tiles are not full") {
  if (skip_without_device()) return;
  for_types<LargeTile, MediumTile, SmallTile, SkinnyTile>([&]<typename Tile>() { check_edges<Tile, true>(); });
}

TEST_CASE("a product is right with a last slice of every length") {
  if (skip_without_device()) return;
  for_types<LargeTile, MediumTile, SmallTile, SkinnyTile>([&]<typename Tile>() {
    for (std::int64_t k = 8; k <= 2 * Tile::k; k += 8) check_both_types<Tile, true>(17, 35, k);
  });
}

TEST_CASE("a product of unaligned operands is right with every length and edge") {
  if (skip_without_device()) return;
  check_pipeline<SmallTile, false>();
  check_edges<SmallTile, false>();
  for (std::int64_t tail = 1; tail <= 8; ++tail) {
    check_both_types<SmallTile, false>(17, 35, tail);
    check_both_types<SmallTile, false>(17, 35, SmallTile::k + tail);
  }
}

TEST_CASE("a product of several row groups and waves is right") {
  if (skip_without_device()) return;
  for_types<LargeTile, MediumTile, SmallTile>([&]<typename Tile>() {
    const std::int64_t m = 2048 + Tile::m + 1, n = 9 * Tile::n + 1;  // a second group, and more than 132 tiles
    check_product<Tile, true, __half>(m, n, 24);
  });
}

TEST_CASE("a few rows on many columns are right") {
  if (skip_without_device()) return;
  check_both_types<SkinnyTile, true>(3, 300 * SkinnyTile::n + 5, 136);
}

TEST_CASE("a Hopper product is right with every number of slices, on full tiles and others") {
  if (skip_without_hopper()) return;
  for_hopper_tiles([&]<typename Tile>() {
    check_pipeline<Tile, true>();
    check_edges<Tile, true>();
    for (std::int64_t k = 8; k <= 2 * Tile::k; k += 8) check_both_types<Tile, true>(17, 96, k);
  });
}

TEST_CASE("a Hopper product is right from wave to wave, with the ring at every place") {
  if (skip_without_hopper()) return;
  for_hopper_tiles([&]<typename Tile>() {
    // A second group of rows, a last tile with as few rows as can be, and three rounds.
    constexpr ProductExtents many = product_of<Tile>(Tile::group_rows + Tile::m, 17 * Tile::n);
    constexpr ProductExtents few = product_of<Tile>(Tile::m, 3 * Tile::n);
    check_both_types<Tile, true>(many.tokens + 1, many.features + kPermutedRows, 24);
    check_product<Tile, true, __half>(many.tokens + 1, many.features + kPermutedRows, (Tile::stages + 1) * Tile::k);
    // Rows too long to stay in L2.
    check_product<Tile, true, __half>(few.tokens + 1, few.features + kPermutedRows, 8192);
  });
}

TEST_CASE("a Hopper product is right over many tiles of each block, for both of its consumers") {
  if (skip_without_hopper()) return;
  for_types<HopperLargeTile, HopperTurnTile, HopperTokenTurnTile>([&]<typename Tile>() {
    for (const std::int64_t m : {1, Tile::by_tokens ? 161 : 130}) {  // with 1 the second block of a pair has no rows
      for (const int tiles : {3, 4}) {                               // and one more in all
        const std::int64_t n = hopper_device().pairs * pair_features<Tile>() * tiles + kPermutedRows;
        for (const int slices : {1, 2, Tile::stages - 1, Tile::stages, Tile::stages + 1, 2 * Tile::stages + 1}) {
          check_product_rows<Tile>(m, n, slices * Tile::k - 24);
        }
      }
    }
  });
}

TEST_CASE("a Hopper product is right where every other tile goes through k from its end") {
  if (skip_without_hopper()) return;
  for_types<HopperLargeTile, HopperTurnTile, HopperTokenTurnTile>([&]<typename Tile>() {
    const std::int64_t k = hopper_device().l2_bytes / (4 * Tile::group_rows) / 8 * 8 + 8;  // too long to stay in L2
    REQUIRE_FALSE(group_stays_in_l2<Tile>(k, hopper_device()));
    // Two tiles a pair.
    check_product_rows<Tile>(130, hopper_device().pairs * pair_features<Tile>() + kPermutedRows, k);
  });
}

TEST_CASE("a Hopper product does not depend on what a stage held beyond its rows and columns") {
  if (skip_without_hopper()) return;
  const std::int64_t n = 544, k = 1024;
  const std::vector<__half> weight = draw<__half>(n * k, 2);
  const DeviceBuffer<__half> device_weight(weight), nans(std::vector<__half>(n * k, rounded<__half>(NAN)));
  for (const std::int64_t m : {33, 200}) {
    const std::vector<__half> a = draw<__half>(m * k, 1);
    const DeviceBuffer<__half> device_a(a);
    const Product expected = product(a, weight, m, n, k);
    for_hopper_tiles([&]<typename Tile>() {
      const auto launch = [&](const DeviceBuffer<__half>& rows, const DeviceBuffer<__half>& columns, std::int64_t count,
                              const HopperPlan& plan) {
        DeviceBuffer<__half> c(count * n);
        launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, rows.data(), columns.data(), count, n, k,
                                  plain_tile_of(DType::fp16, c.data(), count, n), plan);
        return c.read();
      };
      for (const HopperPlan& plan : plans<Tile>(m, n, k)) {
        CAPTURE(m, Tile::n, plan.columns.wide, plan.columns.narrow, plan.beside, plan.parts);
        launch(nans, nans, n, {.columns = columns_of<Tile>(n, kernels::ceil_div<std::int64_t>(n, Tile::n))});
        CHECK(mismatch(launch(device_a, device_weight, m, plan), expected.value, expected.slack) == "");
      }
    });
  }
}

TEST_CASE("a Hopper product is right where pairs of blocks have parts of k", "[large]") {
  if (skip_without_hopper()) return;
  for_part_tiles([&]<typename Tile>() {
    constexpr ProductExtents one = product_of<Tile>(Tile::m, Tile::n),
                             some = product_of<Tile>(2 * Tile::m, 9 * Tile::n),
                             tall = product_of<Tile>(Tile::group_rows + Tile::m, 2 * Tile::n);
    for (const int parts : kParts) {  // each of as many slices as the pipeline's borders are, or of one less
      for (const int slices : {1, Tile::stages - 1, Tile::stages, Tile::stages + 1, 2 * Tile::stages + 1}) {
        for (const int fewer : {0, 1}) {
          const int k = (parts * slices - fewer) * Tile::k;
          if (k >= parts * Tile::k) check_both_types<Tile, true>(one.tokens, one.features, k);
        }
      }
      check_edges<Tile, true>(parts * Tile::k - 24);
    }
    check_both_types<Tile, true>(some.tokens + 1, some.features + kPermutedRows, 5 * Tile::k);
    check_product<Tile, true, __half>(tall.tokens + 1, tall.features + kPermutedRows, 5 * Tile::k);  // a second group
  });
}

TEST_CASE("a Hopper product is right where not all parts of k run at one time") {
  if (skip_without_hopper()) return;
  using Tile = HopperPartTile;
  const std::int64_t m = 256, n = 16 * Tile::n, k = 8 * Tile::k;
  const std::vector<__half> a = draw<__half>(m * k, 1), weight = draw<__half>(n * k, 2);
  const DeviceBuffer<__half> device_a(a), device_weight(weight);
  DeviceBuffer<float> sums(16 * 8 * kPair * kernels::kPartRows * kernels::kPartColumns);
  DeviceBuffer<__half> c(m * n, 0, output_guard);
  launch_hopper_tiles<Tile>(
      {Backend::cuda, nullptr}, device_a.data(), device_weight.data(), m, n, k,
      plain_tile_of(DType::fp16, c.data(), m, n),
      {.columns = {16, 0}, .parts = 8, .part_sums = {sums.data(), kernels::next_launch_counters()->finished}});
  const Product expected = product(a, weight, m, n, k);
  CHECK(mismatch(c.read(), expected.value, expected.slack) == "");
  CHECK(c.guards_intact());
}

TEST_CASE("a Hopper product with parts of k gives the same bits whichever part comes last") {
  if (skip_without_hopper()) return;
  const std::int64_t m = 256, n = 1024, k = 4096;
  const DeviceBuffer<__half> a(draw<__half>(m * k, 1)), weight(draw<__half>(n * k, 2));
  for_part_tiles([&]<typename Tile>() {
    for (const HopperPlan& plan : plans<Tile>(m, n, k)) {
      if (plan.parts == 1) continue;
      CAPTURE(plan.columns.wide, plan.columns.narrow, plan.beside, plan.parts);
      std::vector<__half> first;
      for (int repeat = 0; repeat < 20; ++repeat) {
        DeviceBuffer<__half> c(m * n);
        launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, a.data(), weight.data(), m, n, k,
                                  plain_tile_of(DType::fp16, c.data(), m, n), plan);
        const std::vector<__half> result = c.read();
        if (repeat == 0) first = result;
        const bool same = result == first;
        CHECK(same);
      }
    }
  });
}

TEST_CASE("a Hopper product splits k where it has memory for it, and few tiles") {
  if (skip_without_hopper()) return;
  const std::int64_t k = 4096;
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{40, 64}, {40, 1024}, {256, 1024}}) {
    CAPTURE(m, n);
    const std::vector<__half> a = draw<__half>(m * k, 1), weight = draw<__half>(n * k, 2);
    const DeviceBuffer<__half> device_a(a), device_weight(weight);
    DeviceBuffer<float> sums(kernels::part_sums_bytes(kernels::multiprocessors(), m, n) / sizeof(float), 0,
                             output_guard);
    DeviceBuffer<__half> c(m * n, 0, output_guard);
    launch_hopper({Backend::cuda, nullptr}, device_a.data(), device_weight.data(), m, n, k,
                  plain_tile_of(DType::fp16, c.data(), m, n), sums.data());
    const Product expected = product(a, weight, m, n, k);
    CHECK(mismatch(c.read(), expected.value, expected.slack) == "");
    CHECK(sums.guards_intact());
    const std::vector<float> after = sums.read();
    const bool has_split = !DeviceBuffer<float>::untouched(after.data(), sums.count());
    CHECK(has_split);
  }
}

TEST_CASE("a Hopper product does not depend on which multiprocessors are in which L2 partition") {
  if (skip_without_hopper()) return;
  if (hopper_device().pairs % 2 != 0 && skip("an odd number of pairs cannot be halved")) return;
  for_types<HopperLargeTile, HopperTurnTile>([&]<typename Tile>() {
    for (const std::int64_t m : {257, 1000, 4500}) {  // 4500: two groups of rows in a half
      for (const std::int64_t k : {72, 520}) check_halved_rows<Tile>(m, k);
    }
  });
}

TEST_CASE("a Hopper product refuses extents that with a tile to spare do not fit in 32 bits") {
  if (skip_without_device()) return;
  const __half* nothing = nullptr;
  const auto launch = [&](std::int64_t m, std::int64_t n) {
    launch_hopper({Backend::cuda, nullptr}, nothing, nothing, m, n, 8, plain_tile_of(DType::fp16, nullptr, m, n));
  };
  CHECK_THROWS_AS(launch(kernels::kHopperExtent + 1, 32), std::invalid_argument);
  CHECK_THROWS_AS(launch(1, (std::int64_t{1} << 31) - 32), std::invalid_argument);
  CHECK_THROWS_AS(launch(1, std::int64_t{1} << 31), std::invalid_argument);
}

TEST_CASE("a product refuses operands that its kernel cannot take") {
  if (skip_without_device()) return;
  const DeviceBuffer<__half> a(draw<__half>(64, 1)), weight(draw<__half>(64, 2));
  DeviceBuffer<float> c(64);
  const auto launch = [&](kernels::GemmKernel kernel, const __half* first, std::int64_t k) {
    launch_product({Backend::cuda, nullptr}, kernel, first, weight.data(), 1, 1, k, PlainEpilogue{c.data(), 1});
  };
  CHECK_THROWS_AS(launch(kernels::GemmKernel::portable, a.data() + 1, 8), std::invalid_argument);
  CHECK_THROWS_AS(launch(kernels::GemmKernel::portable, a.data(), 7), std::invalid_argument);
  CHECK_THROWS_AS(launch(kernels::GemmKernel::cpu, a.data(), 8), std::invalid_argument);
  CHECK_NOTHROW(launch(kernels::GemmKernel::portable_unaligned, a.data() + 1, 7));
}

TEST_CASE("a Hopper product refuses what TMA cannot reach") {
  if (skip_without_hopper()) return;
  const DeviceBuffer<__half> a(draw<__half>(4096, 1)), weight(draw<__half>(4096, 2));
  DeviceBuffer<__half> c(4096);
  const auto launch = [&](std::int64_t offset, std::int64_t n, std::int64_t k, std::int64_t out_offset = 0) {
    launch_hopper({Backend::cuda, nullptr}, a.data() + offset, weight.data(), 8, n, k,
                  plain_tile_of(DType::fp16, c.data() + out_offset, 8, n));
  };
  CHECK_NOTHROW(launch(0, 32, 8));
  CHECK_THROWS_AS(launch(1, 32, 8), std::invalid_argument);
  CHECK_THROWS_AS(launch(0, 32, 7), std::invalid_argument);
  CHECK_THROWS_AS(launch(0, 40, 8), std::invalid_argument);
  CHECK_THROWS_AS(launch(0, 32, 8, 1), std::invalid_argument);
}
