// Stored: the norm, two products, what swiglu stores, the third product, then the sum with the residual.
#include "reference/ops.h"

namespace fusebench::reference {

Stack mlp(const Stack& h, const MlpWeights& weights) {
  const Stack n = rmsnorm(h, weights.norm, weights.eps);
  const Stack activated = swiglu(product(n, weights.w_gate), product(n, weights.w_up));
  return add(h, product(activated, weights.w_down));
}

}  // namespace fusebench::reference
