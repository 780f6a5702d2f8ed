// The matrix product and the sum: what the ops are made of.
#include <algorithm>

#include "reference/ops.h"
#include "reference/parallel.h"

namespace fusebench::reference {
namespace {

/// Rows of a weight that one thread widens and multiplies at a time: many enough for Eigen's blocking, few enough to
/// keep many cores busy. Results must not depend on the number of threads, so neither does this.
Index panel_rows(Index weight_rows) { return std::clamp<Index>(weight_rows / 32, 32, 256); }

void round_rows(Stack& x, Index first_col, Index cols) {
  for (Index i = 0; i < x.values.rows(); ++i) round_all(x.rounding(i), &x.values(i, first_col), cols);
}

}  // namespace

Stack product(const Stack& a, const Source& weight) {
  Stack out(a.roundings, a.rows(), weight.rows);
  const Index panel = panel_rows(weight.rows);
  const Index panels = (weight.rows + panel - 1) / panel;
  for_each_index(panels, [&](Index i) {
    const Index first = i * panel;
    const Index count = std::min(panel, weight.rows - first);
    const Matrix w = weight.block(first, count, 0, weight.cols);
    out.values.middleCols(first, count).noalias() = a.values * w.transpose();
    round_rows(out, first, count);
  });
  return out;
}

Stack add(const Stack& x, const Stack& y) {
  Stack out(x.roundings, x.rows(), x.cols());
  for_each_index(out.values.rows(), [&](Index i) {
    out.values.row(i) = x.values.row(i) + y.values.row(i);
    round_all(out.rounding(i), &out.values(i, 0), out.cols());
  });
  return out;
}

}  // namespace fusebench::reference
