#include "harness/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/parallel.h"

namespace fusebench {
namespace {

// A variant rounds at other places than the replica and adds in another order, so its error differs by chance. Over
// few elements chance is larger: the factors grow by 1 + 4 / sqrt(elements), those of a whole or of a row.
constexpr double kErrorFactor = 2;
constexpr double kMaxErrorFactor = 4;  // of the replica's largest error: extremes scatter more than sums
constexpr double kAccumulationFactor = 4;
constexpr double kSeedTolerance = 2e-3;  // the seed's torch.allclose(atol = rtol)

double unit_roundoff(DType dtype) { return dtype == DType::fp16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24; }

struct Worst {
  double error = -1;  // NaN and wrong infinities count as infinite
  std::int64_t row = 0, col = 0;
  double got = 0, expected = 0;
};

// Sums of squares of one row's or one tensor's errors, of what was expected, and of the replica's errors.
struct Sums {
  double error = 0, expected = 0, replica = 0;
  void operator+=(const Sums& o) {
    error += o.error;
    expected += o.expected;
    replica += o.replica;
  }
};

double relative(double error, double norm) {
  if (error == 0) return 0;
  return norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(error / norm);
}

// How one tensor compares, before any budget.
struct Comparison {
  Sums total;
  std::vector<Sums> rows;
  double max_abs = 0, replica_max_abs = 0, expected_max = 0;
  std::int64_t nonfinite = 0, elements = 0;
  Worst worst, first_nonfinite;
  bool all_zero = true, expected_all_zero = true, allclose = true;
};

Comparison compare(DType dtype, const HostTensor& got, const std::vector<std::int64_t>& rows,
                   const ExpectedTensor& want) {
  Comparison out;
  std::vector<double> values(static_cast<std::size_t>(want.cols));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    got.read_rows(rows[i], 1, values.data());
    Sums row;
    for (std::int64_t col = 0; col < want.cols; ++col) {
      const std::size_t at = i * static_cast<std::size_t>(want.cols) + static_cast<std::size_t>(col);
      const double value = values[static_cast<std::size_t>(col)];
      const double rounded = round_to(dtype, want.expected[at]);
      if (value != 0) out.all_zero = false;
      if (rounded != 0) out.expected_all_zero = false;
      ++out.elements;
      if (std::isinf(rounded) && value == rounded) continue;  // the same infinity
      if (!std::isfinite(value) || !std::isfinite(rounded)) {
        if (out.nonfinite++ == 0) out.first_nonfinite = {0, rows[i], col, value, want.expected[at]};
        out.allclose = false;
        continue;
      }
      const double expected = want.expected[at];
      const double error = std::abs(value - expected);
      // Where rounding alone overflowed, the replica tells nothing about the size of an error.
      const double replica = std::isfinite(want.replica[at]) ? std::abs(want.replica[at] - expected) : 0;
      row += {error * error, expected * expected, replica * replica};
      out.max_abs = std::max(out.max_abs, error);
      out.replica_max_abs = std::max(out.replica_max_abs, replica);
      out.expected_max = std::max(out.expected_max, std::abs(expected));
      out.allclose = out.allclose && error <= kSeedTolerance + kSeedTolerance * std::abs(expected);
      if (error > out.worst.error) out.worst = {error, rows[i], col, value, expected};
    }
    out.rows.push_back(row);
    out.total += row;
  }
  return out;
}

std::string at(const std::string& name, const Worst& w) {
  // A NaN's sign means nothing.
  return fmt::format("{}[row {}, col {}]: got {:.7g}, expected {:.7g}", name, w.row, w.col,
                     std::isnan(w.got) ? std::abs(w.got) : w.got, w.expected);
}

double chance_over(std::int64_t elements) {
  return 1 + 4 / std::sqrt(static_cast<double>(std::max<std::int64_t>(elements, 1)));
}

Budget budget_of(const Case& c, const Comparison& x) {
  const double roundoff = unit_roundoff(c.dtype);
  const double chance = chance_over(x.elements);
  const double chance_in_row = chance_over(x.elements / std::max<std::int64_t>(std::ssize(x.rows), 1));
  const double accumulation = kAccumulationFactor * std::sqrt(static_cast<double>(accumulation_length(c))) * 0x1p-24;
  double replica_worst_row = 0;
  for (const Sums& row : x.rows) {
    if (row.expected > 0) replica_worst_row = std::max(replica_worst_row, relative(row.replica, row.expected));
  }
  return {
      .rel_l2 = std::max(kErrorFactor * chance * relative(x.total.replica, x.total.expected) + accumulation, roundoff),
      .row_rel_l2 = std::max(kErrorFactor * chance_in_row * replica_worst_row + accumulation, 2 * roundoff),
      .max_abs = std::max(kMaxErrorFactor * chance * x.replica_max_abs + accumulation * x.expected_max,
                          roundoff * x.expected_max)};
}

// The first rule that the tensor breaks, or nothing.
std::string failure_of(const std::string& name, const Comparison& x, const Budget& budget,
                       const std::vector<std::int64_t>& rows) {
  if (x.nonfinite > 0) {
    return fmt::format(
        "{} of {} checked values of {} are not finite where the oracle is, or a wrong infinity; first {}", x.nonfinite,
        x.elements, name, at(name, x.first_nonfinite));
  }
  if (x.all_zero && !x.expected_all_zero) return fmt::format("{} is all zero; {}", name, at(name, x.worst));
  const double rel_l2 = relative(x.total.error, x.total.expected);
  if (!(rel_l2 <= budget.rel_l2)) {
    return fmt::format("{}: relative L2 error {:.3g} over the budget of {:.3g}; worst {}", name, rel_l2, budget.rel_l2,
                       at(name, x.worst));
  }
  if (!(x.max_abs <= budget.max_abs)) {
    return fmt::format("{}: absolute error {:.3g} over the budget of {:.3g}; worst {}", name, x.max_abs, budget.max_abs,
                       at(name, x.worst));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double row_rel_l2 = relative(x.rows[i].error, x.rows[i].expected);
    if (row_rel_l2 <= budget.row_rel_l2) continue;
    return fmt::format("{}: row {} has a relative L2 error of {:.3g}, over the budget of {:.3g}; worst {}", name,
                       rows[i], row_rel_l2, budget.row_rel_l2, at(name, x.worst));
  }
  return {};
}

}  // namespace

std::int64_t accumulation_length(const Case& c) {
  const bool attends = c.op == Op::attention || c.op == Op::block;
  return std::max({c.dim, c.hidden, attends ? c.keys() : 0, std::int64_t{1}});
}

Judgement judge(const Case& c, const std::vector<Output>& outputs, const Expected& expected) {
  Judgement out;
  out.figures.seed_allclose = true;
  out.figures.rows_checked = static_cast<std::int64_t>(expected.rows.size());
  out.figures.rows_total = c.tokens();
  double worst_share = -1;
  for (const ExpectedTensor& want : expected.tensors) {
    const auto got = std::find_if(outputs.begin(), outputs.end(), [&](const Output& o) { return o.name == want.name; });
    const Comparison x = compare(c.dtype, got->tensor, expected.rows, want);
    const Budget budget = budget_of(c, x);
    out.budgets.push_back(budget);
    const double rel_l2 = relative(x.total.error, x.total.expected);
    out.figures.nonfinite += x.nonfinite;
    out.figures.seed_allclose = out.figures.seed_allclose && x.allclose;
    // The record shows the tensor that comes nearest to its budget.
    const double share = std::max(rel_l2 / budget.rel_l2, budget.max_abs == 0 ? 0 : x.max_abs / budget.max_abs);
    if (share > worst_share) {
      worst_share = share;
      out.figures.rel_l2 = rel_l2;
      out.figures.max_abs = x.max_abs;
      out.figures.budget_rel_l2 = budget.rel_l2;
      out.figures.budget_max_abs = budget.max_abs;
    }
    if (out.failure.empty()) out.failure = failure_of(want.name, x, budget, expected.rows);
  }
  return out;
}

namespace {

// How far two variants' values of one row lie apart, as a share of what their budgets allow to both together; infinite
// where a non-finite value is not the same in both.
double distance(const std::vector<double>& x, const std::vector<double>& y, const Budget& budget) {
  double error = 0;
  double norm = 0;
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i])) norm += x[i] * x[i];
    if (x[i] == y[i]) continue;
    const double difference = std::abs(x[i] - y[i]);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    error += difference * difference;
    most = std::max(most, difference);
  }
  if (error == 0) return 0;
  return std::max(relative(error, norm) / (2 * budget.rel_l2), most / (2 * budget.max_abs));
}

}  // namespace

std::vector<std::int64_t> disagreements(const std::vector<Output>& a, const std::vector<Output>& b,
                                        const std::vector<Budget>& budgets, std::size_t limit) {
  constexpr std::int64_t kGrain = 16;  // rows a thread takes at least
  const std::int64_t tokens = a.front().tensor.rows;
  std::vector<double> worst(static_cast<std::size_t>(tokens), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    parallel_ranges(tokens, kGrain, [&](std::int64_t first, std::int64_t last) {
      std::vector<double> x(static_cast<std::size_t>(a[i].tensor.cols));
      std::vector<double> y(x.size());
      for (std::int64_t row = first; row < last; ++row) {
        a[i].tensor.read_rows(row, 1, x.data());
        b[i].tensor.read_rows(row, 1, y.data());
        double& most = worst[static_cast<std::size_t>(row)];
        most = std::max(most, distance(x, y, budgets[i]));
      }
    });
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < tokens; ++row) {
    if (worst[static_cast<std::size_t>(row)] > 1) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t l, std::int64_t r) {
    return worst[static_cast<std::size_t>(l)] > worst[static_cast<std::size_t>(r)];
  });
  if (rows.size() > limit) rows.resize(limit);
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace fusebench
