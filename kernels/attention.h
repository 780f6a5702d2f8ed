// What the parts of the portable attention share: one call, and the launchers by padded head_dim, each in a .cu of its
// own so that they compile side by side.
#pragma once

#include "kernels/types.h"

namespace fusebench::kernels::cuda {

struct AttentionCall {
  Exec exec;
  DType dtype;
  bool aligned;  ///< 16-byte aligned rows; false takes element loads
  const void* q;
  const void* k;
  const void* v;
  void* out;
  AttentionShape shape;
};

/// For head_dim <= HeadDim. 96 and 192 have no kernel with element loads.
template <int HeadDim>
void launch_attention(const AttentionCall& call);

}  // namespace fusebench::kernels::cuda
