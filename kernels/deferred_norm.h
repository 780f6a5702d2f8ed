// RMSNorm deferred behind the product that takes its result: a row's 1 / sqrt(mean(x²) + eps) commutes with the
// product, so the product takes x as it is and its epilogue multiplies the row. The norm's weight is folded into the
// product's own. So the normalised rows are neither written nor read. Where a product made x its epilogue has summed
// the squares. Here is what is needed beside the products of kernels/fused.h.
//
// CUDA alone. These two run on any device; the products that take part are GemmKernel::hopper's. Tensors are dense and
// row-major in `dtype`, fp16 or bf16, unless typed float.
#pragma once

#include "kernels/fused.h"

namespace fusebench::kernels {

struct DeferredNormKernels {
  // squares[rows] = sum of x²
  void (*row_squares)(const Exec&, DType, const void* x, float* squares, std::int64_t rows, std::int64_t cols);

  // weight[rows, cols] in place: column c times norm_weight[c] · fold, where fold is the power of two for which the
  // largest |norm_weight| is in [1/2, 1): no weight grows, and none but a small one becomes subnormal. It stays within
  // 2^-100 and 2^100, and is 1 where all are zero or one is not finite
  void (*fold_norm)(const Exec&, DType, const void* norm_weight, void* weight, float* fold, std::int64_t rows,
                    std::int64_t cols);
};

const DeferredNormKernels& cuda_deferred_norm();

}  // namespace fusebench::kernels
