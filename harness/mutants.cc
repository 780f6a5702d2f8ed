#include "harness/mutants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

namespace fusebench {
namespace {

using reference::Deviation;

constexpr std::int64_t kTile = 64;  // columns
constexpr const char* kPrevious = "previous output";

// Values that differ by less are the same, summed in another order.
constexpr double kSameRelL2 = 1e-12;

using Values = std::span<const double>;

bool differ(Values a, Values b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return true;
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += std::max(a[i] * a[i], b[i] * b[i]);
  }
  return difference > norm * kSameRelL2 * kSameRelL2;
}

// A mistake that is the reference's own deviation, or one of the inputs.
Mistake deviating(const char* name, Deviation deviation) { return {.name = name, .deviation = deviation}; }
Mistake with_input(const char* name, const char* input, double value) {
  return {.name = name, .input = input, .value = value};
}

void add_pairing(std::vector<Mistake>& all) { all.push_back({.name = "other pairing", .other_pairing = true}); }

void add_attention(const Case& c, std::vector<Mistake>& all) {
  // Without a mask there is no key more that a query could see; one less is a loop that ends too early.
  all.push_back(deviating("one key less", Deviation::one_key_less));
  if (c.causal) all.push_back(deviating("one key more", Deviation::one_key_more));
  all.push_back(deviating("scores not scaled", Deviation::scores_not_scaled));
}

Values row_of(const ExpectedTensor& tensor, std::size_t row) {
  const auto cols = static_cast<std::size_t>(tensor.cols);
  return Values(tensor.expected).subspan(row * cols, cols);
}

std::size_t place_of(std::int64_t row, const std::vector<std::int64_t>& rows) {
  const auto found = std::lower_bound(rows.begin(), rows.end(), row);
  if (found == rows.end() || *found != row) throw std::logic_error("a mutant lacks a row");
  return static_cast<std::size_t>(found - rows.begin());
}

// Overwrites part of a row.
void put(HostTensor& tensor, std::int64_t row, std::int64_t first_col, Values values) {
  store(tensor.dtype, values, tensor.data.data() + (row * tensor.cols + first_col) * bytes_of(tensor.dtype));
}

void put_rows(HostTensor& tensor, const std::vector<std::int64_t>& rows, const Expected& from, std::size_t t) {
  for (const std::int64_t row : rows) put(tensor, row, 0, row_of(from.tensors[t], place_of(row, from.rows)));
}

double square_sum(Values values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// Where dropping changes least and is hardest to see: of the pieces that are not zero the smallest.
template <class Piece>
std::size_t faintest(std::size_t count, const Piece& piece) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = square_sum(piece(i));
    if (!(sum > 0 && sum < least)) continue;
    least = sum;
    best = i;
  }
  return best;
}

class Trial {
 public:
  Trial(const Case& c, const Expected& expected, const WrongRows& wrong, std::vector<Output> right, const Check& check)
      : case_(c), expected_(expected), wrong_(wrong), outputs_(std::move(right)), check_(check) {
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      put_rows(outputs_[t].tensor, expected_.rows, expected_, t);
    }
  }

  std::vector<Mutant> run() {
    for (std::size_t i = 0; i < wrong_.mistakes.size(); ++i) try_mistake(wrong_.mistakes[i].name, wrong_.mistaken[i]);
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      try_stale(t);
      try_zeros(t);
      if (!expected_.rows.empty()) try_dropped(t, checked_row(t), "");
      const std::optional<std::int64_t> probe = probe_row(case_, expected_.rows);
      if (probe && check_.sees_other_rows) try_dropped(t, *probe, " (row not sampled)");
    }
    return std::move(mutants_);
  }

 private:
  template <class Spoil>
  void try_one(std::size_t t, const std::string& what, bool changes, const Spoil& spoil) {
    const std::string name = outputs_.size() == 1 ? what : outputs_[t].name + ": " + what;
    if (!changes) {
      mutants_.push_back({name, Outcome::equivalent});
      return;
    }
    HostTensor right = outputs_[t].tensor;
    spoil(outputs_[t].tensor);
    mutants_.push_back({name, check_.failure(outputs_).empty() ? Outcome::let_through : Outcome::rejected});
    outputs_[t].tensor = std::move(right);
  }

  void try_mistake(const std::string& name, const Expected& mistaken) {
    bool changes_any = false;
    for (std::size_t t = 0; t < outputs_.size(); ++t) {
      if (!differ(mistaken.tensors[t].expected, expected_.tensors[t].expected)) continue;
      changes_any = true;
      try_one(t, name, true, [&](HostTensor& out) { put_rows(out, expected_.rows, mistaken, t); });
    }
    if (!changes_any) mutants_.push_back({name, Outcome::equivalent});
  }

  void try_stale(std::size_t t) {
    bool changes = false;
    for (std::size_t i = 0; i < expected_.rows.size() && !changes; ++i) {
      changes = differ(stale_row(t, expected_.rows[i]), row_of(expected_.tensors[t], i));
    }
    try_one(t, kPrevious, changes, [&](HostTensor& out) { put_rows(out, expected_.rows, wrong_.previous, t); });
  }

  void try_zeros(std::size_t t) {
    const bool changes = square_sum(expected_.tensors[t].expected) != 0;
    try_one(t, "zeros", changes, [](HostTensor& out) { std::fill(out.data.begin(), out.data.end(), std::byte{0}); });
  }

  std::int64_t checked_row(std::size_t t) const {
    const ExpectedTensor& tensor = expected_.tensors[t];
    return expected_.rows[faintest(expected_.rows.size(), [&](std::size_t i) { return row_of(tensor, i); })];
  }

  // A row, and 64 columns of it, are as if never written: they hold zeros, or what was there before.
  void try_dropped(std::size_t t, std::int64_t row, const std::string& where) {
    const HostTensor& tensor = outputs_[t].tensor;
    std::vector<double> right(static_cast<std::size_t>(tensor.cols));
    tensor.read_rows(row, 1, right.data());
    const std::vector<double> zeros(right.size(), 0);
    const Values stale = stale_row(t, row);

    const auto drop = [&](const std::string& what, std::size_t first, std::size_t count) {
      const auto try_with = [&](const char* left, Values values) {
        const Values part = values.subspan(first, count);
        try_one(t, what + left + where, differ(part, Values(right).subspan(first, count)),
                [&](HostTensor& out) { put(out, row, static_cast<std::int64_t>(first), part); });
      };
      try_with(" left zero", zeros);
      try_with(" left stale", stale);
    };
    drop("row", 0, right.size());
    const std::size_t tiles = right.size() / kTile;
    if (right.size() <= kTile) return;
    const std::size_t tile = faintest(tiles, [&](std::size_t i) { return Values(right).subspan(i * kTile, kTile); });
    drop("tile", tile * kTile, kTile);
  }

  Values stale_row(std::size_t t, std::int64_t row) const {
    return row_of(wrong_.previous.tensors[t], place_of(row, wrong_.previous.rows));
  }

  const Case& case_;
  const Expected& expected_;
  const WrongRows& wrong_;
  std::vector<Output> outputs_;  // right, but while a mutant is tried
  const Check& check_;
  std::vector<Mutant> mutants_;
};

std::vector<std::int64_t> with_probe(const Case& c, std::vector<std::int64_t> rows) {
  const std::optional<std::int64_t> probe = probe_row(c, rows);
  if (probe) rows.insert(std::lower_bound(rows.begin(), rows.end(), *probe), *probe);
  return rows;
}

}  // namespace

std::vector<Mistake> mistakes_of(const Case& c) {
  std::vector<Mistake> all;
  switch (c.op) {
    case Op::rmsnorm:
      all.push_back(with_input("norm weight ignored", "weight", 1));
      break;
    case Op::add_rmsnorm:
      all.push_back(with_input("residual missing", "r", 0));
      all.push_back(with_input("norm weight ignored", "weight", 1));
      break;
    case Op::rope:
      add_pairing(all);
      break;
    case Op::attention:
      add_attention(c, all);
      break;
    case Op::qkv:
      all.push_back(with_input("norm weight ignored", "norm_weight", 1));
      add_pairing(all);
      break;
    case Op::attn_out:
      all.push_back(deviating("residual missing", Deviation::no_attention_residual));
      break;
    case Op::swiglu:
      break;
    case Op::mlp:
      all.push_back(with_input("norm weight ignored", "norm_weight", 1));
      all.push_back(deviating("residual missing", Deviation::no_mlp_residual));
      break;
    case Op::block:
      all.push_back(with_input("first norm's weight ignored", "norm1_weight", 1));
      add_pairing(all);
      add_attention(c, all);
      all.push_back(deviating("residual of attention missing", Deviation::no_attention_residual));
      all.push_back(with_input("second norm's weight ignored", "norm2_weight", 1));
      all.push_back(deviating("residual of mlp missing", Deviation::no_mlp_residual));
      break;
  }
  return all;
}

WrongRows compute_wrong_rows(const Case& c, const InputSet& inputs,
                             const std::function<std::unique_ptr<TensorSource>(const Case&)>& source,
                             const std::vector<std::int64_t>& rows) {
  WrongRows wrong{.mistakes = mistakes_of(c), .mistaken = {}, .previous = {}};
  wrong.mistaken = compute_mistaken(c, inputs, rows, wrong.mistakes);
  Case previous = c;
  ++previous.seed;
  const InputSet other = read_inputs(spec_of(previous), *source(previous));
  wrong.previous = std::move(compute_mistaken(previous, other, with_probe(c, rows), {Mistake{}}).front());
  return wrong;
}

std::optional<WrongRows> load_wrong_rows(const OracleCache& cache, const Case& c,
                                         const std::vector<std::int64_t>& rows) {
  WrongRows wrong{.mistakes = mistakes_of(c), .mistaken = {}, .previous = {}};
  if (!cache.load(c, with_probe(c, rows), wrong.previous, kPrevious)) return std::nullopt;
  for (const Mistake& mistake : wrong.mistakes) {
    if (!cache.load(c, rows, wrong.mistaken.emplace_back(), mistake.name)) return std::nullopt;
  }
  return wrong;
}

void save_wrong_rows(const OracleCache& cache, const Case& c, const WrongRows& wrong) {
  for (std::size_t i = 0; i < wrong.mistakes.size(); ++i) cache.save(c, wrong.mistaken[i], wrong.mistakes[i].name);
  cache.save(c, wrong.previous, kPrevious);
}

WrongRows wrong_rows(const Case& c, const InputSet& inputs,
                     const std::function<std::unique_ptr<TensorSource>(const Case&)>& source,
                     const std::vector<std::int64_t>& rows, const OracleCache& cache) {
  if (std::optional<WrongRows> known = load_wrong_rows(cache, c, rows)) return std::move(*known);
  WrongRows wrong = compute_wrong_rows(c, inputs, source, rows);
  try {
    save_wrong_rows(cache, c, wrong);
  } catch (const std::exception&) {
    // A cache that cannot be written costs time at the next run, nothing else.
  }
  return wrong;
}

std::optional<std::int64_t> probe_row(const Case& c, const std::vector<std::int64_t>& rows) {
  for (std::int64_t i = 0; i < c.tokens(); ++i) {
    const std::int64_t row = (c.tokens() / 2 + i) % c.tokens();  // not the first: it may be special
    if (!std::binary_search(rows.begin(), rows.end(), row)) return row;
  }
  return std::nullopt;
}

std::vector<Output> exact_outputs(const Case& c, const Expected& expected) {
  std::vector<Output> outputs;
  for (std::size_t t = 0; t < expected.tensors.size(); ++t) {
    const ExpectedTensor& tensor = expected.tensors[t];
    Output& out = outputs.emplace_back(Output{tensor.name, HostTensor(c.dtype, c.tokens(), tensor.cols)});
    put_rows(out.tensor, expected.rows, expected, t);
  }
  return outputs;
}

std::vector<Mutant> try_mutants(const Case& c, const Expected& expected, const WrongRows& wrong,
                                std::vector<Output> right, const Check& check) {
  return Trial(c, expected, wrong, std::move(right), check).run();
}

std::string let_through(const std::vector<Mutant>& mutants) {
  std::string names;
  for (const Mutant& mutant : mutants) {
    if (mutant.outcome == Outcome::let_through) names.append(names.empty() ? "" : ", ").append(mutant.name);
  }
  return names;
}

}  // namespace fusebench
