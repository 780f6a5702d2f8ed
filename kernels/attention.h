// What the parts of attention share: one call, and the launchers, each in a .cu of its own so that they compile side by
// side.
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

/// kernels/attention_hopper.cuh, for head_dim 64 and 128 and aligned rows.
void launch_attention_hopper(const AttentionCall& call);

}  // namespace fusebench::kernels::cuda
