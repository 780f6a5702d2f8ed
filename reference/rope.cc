// Stored: the four products a·cos, b·sin, a·sin, b·cos, then their difference and sum.
#include "reference/ops.h"
#include "reference/parallel.h"

namespace fusebench::reference {
namespace {

/// Where the elements of pair i of a head of 2 · half elements lie.
struct Pair {
  Index a, b;
};

Pair pair_at(Pairs pairs, Index i, Index half) {
  return pairs == Pairs::neighbours ? Pair{2 * i, 2 * i + 1} : Pair{i, i + half};
}

void rope_head(const double* x, const double* cos, const double* sin, Index half, Pairs pairs, Rounding format,
               double* out) {
  for (Index i = 0; i < half; ++i) {
    const Pair at = pair_at(pairs, i, half);
    const double a_cos = rounded(format, x[at.a] * cos[i]);
    const double b_sin = rounded(format, x[at.b] * sin[i]);
    const double a_sin = rounded(format, x[at.a] * sin[i]);
    const double b_cos = rounded(format, x[at.b] * cos[i]);
    out[at.a] = rounded(format, a_cos - b_sin);
    out[at.b] = rounded(format, a_sin + b_cos);
  }
}

}  // namespace

Stack rope(const Stack& x, const Phases& phases, const std::vector<Index>& positions) {
  const Index half = phases.cos.cols();
  Stack out(x.roundings, x.rows(), x.cols());
  for_each_index(x.values.rows(), [&](Index i) {
    const Index position = positions[static_cast<std::size_t>(i % x.rows())];
    for (Index head = 0; head < x.cols(); head += 2 * half) {
      rope_head(&x.values(i, head), &phases.cos(position, 0), &phases.sin(position, 0), half, phases.pairs,
                x.rounding(i), &out.values(i, head));
    }
  });
  return out;
}

}  // namespace fusebench::reference
