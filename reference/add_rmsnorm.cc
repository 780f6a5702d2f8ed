// Stored: h = x + r, which the norm reads; then what rmsnorm stores.
#include "reference/ops.h"

namespace fusebench::reference {

SumAndNorm add_rmsnorm(const Stack& x, const Stack& r, const Vector& weight, double eps) {
  SumAndNorm out;
  out.h = add(x, r);
  out.y = rmsnorm(out.h, weight, eps);
  return out;
}

}  // namespace fusebench::reference
