#include <algorithm>
#include <set>

#include "harness/oracle.h"
#include "tests/catch.h"

using namespace fusebench;

namespace {

Case block_case(std::int64_t batch, std::int64_t seq) {
  return canonical({.op = Op::block, .dim = 64, .hidden = 64, .heads = 4, .batch = batch, .seq = seq});
}

bool has(const std::vector<std::int64_t>& rows, std::int64_t row) {
  return std::binary_search(rows.begin(), rows.end(), row);
}

}  // namespace

TEST_CASE("rows are sorted, within the case, without repeats, and no more than asked", "[rows]") {
  for (const Op op : kOps) {
    for (const std::int64_t batch : {1, 3, 40, 200}) {
      for (const std::int64_t seq : {1, 2, 63, 64, 65, 500, 5000}) {
        for (const std::int64_t asked : {0, 1, 2, 7, 96, 400}) {
          Case c = block_case(batch, seq);
          c.op = op;
          c = canonical(c);
          const std::vector<std::int64_t> rows = choose_rows(c, {.full = false, .rows_per_case = asked});
          INFO(case_id(c) << " asked " << asked);
          CHECK(std::is_sorted(rows.begin(), rows.end()));
          CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
          CHECK(rows.front() == 0);
          CHECK(rows.back() < c.tokens());
          if (asked > 1) CHECK(rows.back() == c.tokens() - 1);
          const auto count = static_cast<std::int64_t>(rows.size());
          if (asked > 0) CHECK(count == std::min(std::max(asked, batch), c.tokens()));
          if (asked == 0 && c.tokens() <= 256) CHECK(count == c.tokens());
          std::set<std::int64_t> batches;
          for (const std::int64_t row : rows) batches.insert(row / seq);
          CHECK(static_cast<std::int64_t>(batches.size()) == batch);
        }
      }
    }
  }
}

TEST_CASE("the seed's benchmark case has its batches' ends, tile boundaries and others checked", "[rows]") {
  const Case c = block_case(2, 2048);
  const std::vector<std::int64_t> rows = choose_rows(c, {});
  CHECK(rows.size() == 96);
  for (const std::int64_t row : {0, 2047, 2048, 4095}) CHECK(has(rows, row));
  for (const std::int64_t tile : {64, 128, 192, 256}) {
    INFO("tile " << tile);
    CHECK(has(rows, tile - 1));
    CHECK(has(rows, tile));
    const std::int64_t last = 4095 / tile * tile;
    CHECK(has(rows, last - 1));
    CHECK(has(rows, last));
  }
  const auto inside =
      std::count_if(rows.begin(), rows.end(), [](std::int64_t row) { return row % 64 != 0 && row % 64 != 63; });
  CHECK(inside > 20);
}

TEST_CASE("other seeds check other rows, the same seed the same", "[rows]") {
  Case c = block_case(2, 2048);
  const std::vector<std::int64_t> rows = choose_rows(c, {});
  CHECK(choose_rows(c, {}) == rows);
  c.seed = 43;
  CHECK(choose_rows(c, {}) != rows);
}

TEST_CASE("full means all, whatever number is asked", "[rows]") {
  const Case c = block_case(3, 1000);
  const std::vector<std::int64_t> rows = choose_rows(c, {.full = true, .rows_per_case = 5});
  REQUIRE(rows.size() == 3000);
  CHECK(rows[0] == 0);
  CHECK(rows[2999] == 2999);
}
