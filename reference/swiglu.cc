// Stored: sigmoid(g), g · sigmoid(g), · u.
#include <cmath>

#include "reference/ops.h"
#include "reference/parallel.h"

namespace fusebench::reference {
namespace {

/// exp never gets a positive argument, so that no value of g overflows it.
double sigmoid(double g) { return g < 0 ? std::exp(g) / (1 + std::exp(g)) : 1 / (1 + std::exp(-g)); }

/// Where the sigmoid is 0, g may be minus infinity, and the product's limit is 0.
double silu(double g, Rounding format) {
  const double gate = rounded(format, sigmoid(g));
  return gate == 0 ? 0 : rounded(format, g * gate);
}

}  // namespace

Stack swiglu(const Stack& g, const Stack& u) {
  Stack y(g.roundings, g.rows(), g.cols());
  for_each_index(y.values.rows(), [&](Index i) {
    const Rounding format = g.rounding(i);
    for (Index j = 0; j < y.cols(); ++j) {
      y.values(i, j) = rounded(format, silu(g.values(i, j), format) * u.values(i, j));
    }
  });
  return y;
}

}  // namespace fusebench::reference
