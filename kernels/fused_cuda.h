// The CUDA functions behind the tables of kernels/elementwise.h and kernels/fused.h, which say what each one takes and
// computes. Where both tables have a member of one name, the two are overloads; `rmsnorm` is one kernel that serves
// both.
#pragma once

#include "kernels/deferred_norm.h"
#include "kernels/elementwise.h"
#include "kernels/function.h"
#include "kernels/fused.h"

namespace fusebench::kernels::cuda {

// kernels/fused.h
Function<decltype(Fused::rmsnorm)> rmsnorm;
Function<decltype(Fused::add_rmsnorm)> add_rmsnorm;
Function<decltype(Fused::rope)> rope;
Function<decltype(Fused::swiglu)> swiglu;
Function<decltype(Fused::attention)> attention;
Function<decltype(Fused::product_residual)> product_residual;
Function<decltype(Fused::product_rope)> product_rope;
Function<decltype(Fused::product_swiglu)> product_swiglu;
Function<decltype(Fused::prepare_qkv)> prepare_qkv;
Function<decltype(Fused::prepare_gate_up)> prepare_gate_up;

// kernels/deferred_norm.h
Function<decltype(DeferredNormKernels::row_squares)> row_squares;
Function<decltype(DeferredNormKernels::fold_norm)> fold_norm;

// kernels/elementwise.h
Function<decltype(Elementwise::add)> add;
Function<decltype(Elementwise::rope)> rope;
Function<decltype(Elementwise::copy_rows)> copy_rows;
Function<decltype(Elementwise::masked_softmax)> masked_softmax;
Function<decltype(Elementwise::swiglu)> swiglu;

}  // namespace fusebench::kernels::cuda
