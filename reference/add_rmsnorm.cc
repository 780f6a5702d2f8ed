// Stored: h = x + r, which the norm reads; then what rmsnorm stores.
#include <utility>

#include "reference/ops.h"

namespace fusebench::reference {

SumAndNorm add_rmsnorm(const Stack& x, const Stack& r, const Vector& weight, double eps, Rounding stored) {
  Stack h = add(x, r);
  Stack kept = h;
  round_all(stored, kept.values);
  return {.h = std::move(h), .y = rmsnorm(kept, weight, eps)};
}

}  // namespace fusebench::reference
