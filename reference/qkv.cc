// Stored: the norm, three products, and what rope stores for q and k.
#include "reference/ops.h"

namespace fusebench::reference {

Qkv qkv(const Stack& x, const QkvWeights& weights, const std::vector<Index>& positions) {
  const Stack n = rmsnorm(x, weights.norm, weights.eps);
  return {.q = rope(product(n, weights.wq), weights.phases, positions),
          .k = rope(product(n, weights.wk), weights.phases, positions),
          .v = product(n, weights.wv)};
}

}  // namespace fusebench::reference
