// Stored: the product, then the sum with the residual.
#include "reference/ops.h"

namespace fusebench::reference {

Stack attn_out(const Stack& a, const Source& wo, const Stack& x) { return add(x, product(a, wo)); }

}  // namespace fusebench::reference
