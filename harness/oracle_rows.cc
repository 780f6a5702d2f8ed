// Which token rows of a case the oracle computes.
#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "harness/draw.h"
#include "harness/oracle.h"

namespace fusebench {
namespace {

/// Few enough tokens, or little enough work, are all checked; else as many as a reference can do in seconds.
std::int64_t default_rows(const Case& c) {
  constexpr std::int64_t kFewTokens = 256;
  constexpr std::int64_t kCheapElements = 1 << 21;
  if (c.tokens() <= kFewTokens) return c.tokens();
  switch (c.op) {
    case Op::rmsnorm:
    case Op::add_rmsnorm:
    case Op::rope:
    case Op::swiglu:
      return std::max<std::int64_t>(384, kCheapElements / std::max(c.dim, c.hidden));
    case Op::attention:
    case Op::attn_out:
    case Op::qkv:
      return 192;
    case Op::mlp:
    case Op::block:
      return 96;
  }
  throw std::logic_error("no such op");
}

/// Collects rows, each once, up to a number of them.
class RowSample {
 public:
  RowSample(std::int64_t tokens, std::int64_t wanted) : tokens_(tokens), wanted_(std::min(wanted, tokens)) {}

  bool full() const { return size() >= wanted_; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  void add(std::int64_t row) {
    if (!full() && row >= 0 && row < tokens_) rows_.insert(row);
  }

  std::vector<std::int64_t> sorted() const {
    std::vector<std::int64_t> rows(rows_.begin(), rows_.end());
    std::sort(rows.begin(), rows.end());
    return rows;
  }

 private:
  std::int64_t tokens_;
  std::int64_t wanted_;
  std::unordered_set<std::int64_t> rows_;
};

/// Both sides of a boundary between tiles: of rows of the whole, as products have them, or of positions in a batch,
/// as attention has them.
void add_tile_boundaries(const Case& c, const WordStream& words, std::int64_t most, RowSample& sample) {
  const auto add_boundary = [&](std::int64_t first, std::int64_t at) {
    sample.add(first + at - 1);
    sample.add(first + at);
  };
  const std::int64_t end = sample.size() + most;
  for (const std::int64_t tile : {64, 128, 192, 256}) {
    if (sample.size() < end && tile < c.tokens()) add_boundary(0, tile);
    const std::int64_t last = (c.tokens() - 1) / tile * tile;
    if (sample.size() < end && last > 0) add_boundary(0, last);
  }
  constexpr std::int64_t kTile = 64;
  const std::int64_t in_batch = (c.seq - 1) / kTile;
  const std::int64_t in_all = (c.tokens() - 1) / kTile;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(most) && sample.size() < end; ++i) {
    const auto draw = [&](std::uint64_t which, std::int64_t below) {
      return static_cast<std::int64_t>(words.word(3 * i + which) % static_cast<std::uint64_t>(below));
    };
    if (i % 2 == 0 && in_all > 0) add_boundary(0, (1 + draw(0, in_all)) * kTile);
    if (i % 2 == 1 && in_batch > 0) add_boundary(draw(1, c.batch) * c.seq, (1 + draw(2, in_batch)) * kTile);
  }
}

std::vector<std::int64_t> all_rows(std::int64_t tokens) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(tokens));
  for (std::int64_t row = 0; row < tokens; ++row) rows[static_cast<std::size_t>(row)] = row;
  return rows;
}

}  // namespace

std::int64_t most_rows(const Case& c, const VerifyRows& verify) {
  if (verify.full) return c.tokens();
  const std::int64_t asked = verify.rows_per_case > 0 ? verify.rows_per_case : default_rows(c);
  return std::min(std::max(asked, c.batch), c.tokens());  // no batch goes unchecked
}

std::vector<std::int64_t> choose_rows(const Case& c, const VerifyRows& verify) {
  const std::int64_t tokens = c.tokens();
  const std::int64_t wanted = most_rows(c, verify);
  if (wanted >= tokens) return all_rows(tokens);

  RowSample sample(tokens, wanted);
  sample.add(0);
  sample.add(tokens - 1);
  const WordStream words(c.seed, "checked rows");
  if (2 * c.batch <= wanted / 2) {
    for (std::int64_t b = 0; b < c.batch; ++b) {
      sample.add(b * c.seq);
      sample.add((b + 1) * c.seq - 1);
    }
  } else {
    for (std::int64_t b = 1; b + 1 < c.batch; ++b) {
      const std::uint64_t draw = words.word(static_cast<std::uint64_t>(b)) % static_cast<std::uint64_t>(c.seq);
      sample.add(b * c.seq + static_cast<std::int64_t>(draw));
    }
  }
  add_tile_boundaries(c, WordStream(c.seed, "checked tiles"), (wanted - sample.size()) / 2, sample);
  const WordStream rest(c.seed, "other checked rows");
  for (std::uint64_t i = 0; !sample.full(); ++i) {
    sample.add(static_cast<std::int64_t>(rest.word(i) % static_cast<std::uint64_t>(tokens)));
  }
  return sample.sorted();
}

}  // namespace fusebench
