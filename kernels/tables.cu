// The CUDA tables of kernels/elementwise.h and kernels/fused.h.
#include "kernels/fused_cuda.h"

namespace fusebench::kernels {

const Elementwise& cuda_elementwise() {
  static constexpr Elementwise table{
      .add = cuda::add,
      .rmsnorm = cuda::rmsnorm,
      .rope = cuda::rope,
      .copy_rows = cuda::copy_rows,
      .masked_softmax = cuda::masked_softmax,
      .swiglu = cuda::swiglu,
  };
  return table;
}

const Fused& cuda_fused() {
  static constexpr Fused table{
      .rmsnorm = cuda::rmsnorm,
      .add_rmsnorm = cuda::add_rmsnorm,
      .rope = cuda::rope,
      .swiglu = cuda::swiglu,
      .attention = cuda::attention,
      .product_residual = cuda::product_residual,
      .product_rope = cuda::product_rope,
      .product_swiglu = cuda::product_swiglu,
      .prepare_qkv = cuda::prepare_qkv,
      .prepare_gate_up = cuda::prepare_gate_up,
  };
  return table;
}

const DeferredNormKernels& cuda_deferred_norm() {
  static const DeferredNormKernels table{
      .row_squares = cuda::row_squares,
      .fold_norm = cuda::fold_norm,
  };
  return table;
}

}  // namespace fusebench::kernels
