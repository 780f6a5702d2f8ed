// The CPU kernels of the `eigen` and `fused` variants, one file an op; tables.cc enters them. Signatures and contracts
// are those of kernels/elementwise.h and kernels/fused.h. What one row needs is computed by the same code in both
// variants, and in the epilogues of the fused products.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/function.h"
#include "kernels/fused.h"

namespace fusebench::kernels::cpu {

// elementwise.cc
Function<decltype(Elementwise::add)> add;
Function<decltype(Elementwise::copy_rows)> copy_rows;

// rmsnorm.cc
Function<decltype(Fused::rmsnorm)> rmsnorm;  // of both tables
Function<decltype(Fused::add_rmsnorm)> add_rmsnorm;

// rope.cc
Function<decltype(Elementwise::rope)> rope;
Function<decltype(Fused::rope)> rope;

// softmax.cc
Function<decltype(Elementwise::masked_softmax)> masked_softmax;

// attention.cc
Function<decltype(Fused::attention)> attention;

// swiglu.cc
Function<decltype(Elementwise::swiglu)> swiglu;
Function<decltype(Fused::swiglu)> swiglu;

// gemm.cc
Function<decltype(Fused::product_residual)> product_residual;
Function<decltype(Fused::product_rope)> product_rope;
Function<decltype(Fused::product_swiglu)> product_swiglu;

// prepare.cc
Function<decltype(Fused::prepare_qkv)> prepare_qkv;
Function<decltype(Fused::prepare_gate_up)> prepare_gate_up;

}  // namespace fusebench::kernels::cpu
