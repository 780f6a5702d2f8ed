// Stored: the product, then the sum with the residual.
#include "reference/ops.h"

namespace fusebench::reference {

Stack attn_out(const Stack& a, const Source& wo, const Stack& x, Deviation deviation) {
  Stack branch = product(a, wo);
  return deviation == Deviation::no_attention_residual ? branch : add(x, branch);
}

}  // namespace fusebench::reference
