// Stored: the norm, two products, what swiglu stores, the third product, then the sum with the residual.
#include "reference/ops.h"

namespace fusebench::reference {

Stack mlp(const Stack& h, const MlpWeights& weights, Deviation deviation) {
  const Stack n = rmsnorm(h, weights.norm, weights.eps);
  const Stack activated = swiglu(product(n, weights.w_gate), product(n, weights.w_up));
  Stack branch = product(activated, weights.w_down);
  return deviation == Deviation::no_mlp_residual ? branch : add(h, branch);
}

}  // namespace fusebench::reference
