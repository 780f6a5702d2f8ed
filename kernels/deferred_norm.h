// RMSNorm deferred behind the product that takes its result: a row's 1 / sqrt(mean(x²) + eps) commutes with the
// product, so the product takes x as it is and its epilogue multiplies the row. The norm's weight is folded into the
// product's own. So the normalised rows are neither written nor read, and the sums of squares come from the product
// before.
//
// CUDA alone, by GemmKernel::hopper; tensors are dense and row-major in `dtype`, fp16 or bf16, unless typed float.
#pragma once

#include "kernels/fused.h"

namespace fusebench::kernels {

constexpr std::int64_t kSquaresColumns = 128;  ///< of a row in one sum that product_residual writes

/// What an epilogue needs for a row's factor: 1 / (fold · sqrt(sum of the row's squares / dim + eps)).
struct DeferredNorm {
  const float* squares = nullptr;  ///< [rows, parts], to be added; null: rows keep what the product gives
  std::int64_t parts = 0;
  float eps = 0;
  const float* fold = nullptr;  ///< fold_norm's
};

struct DeferredNormKernels {
  // squares[rows] = sum of x²
  void (*row_squares)(const Exec&, DType, const void* x, float* squares, std::int64_t rows, std::int64_t cols);

  // weight[rows, cols] in place: column c times norm_weight[c] · fold, where fold is the power of two for which the
  // largest |norm_weight| is in [1/2, 1): no weight grows, and none but a small one becomes subnormal
  void (*fold_norm)(const Exec&, DType, const void* norm_weight, void* weight, float* fold, std::int64_t rows,
                    std::int64_t cols);

  // The products of kernels/fused.h behind a deferred norm, and before one: squares [m, ceil(n / kSquaresColumns)] are
  // sums over columns of out as it is stored.
  void (*product_rope)(const Exec&, GemmKernel, DType, const void* a, const void* prepared_weight, DeferredNorm,
                       const float* cos, const float* sin, void* q, void* k, void* v, QkvShape);
  void (*product_swiglu)(const Exec&, GemmKernel, DType, const void* a, const void* prepared_weight, DeferredNorm,
                         void* y, std::int64_t m, std::int64_t hidden, std::int64_t k);
  void (*product_residual)(const Exec&, GemmKernel, DType, const void* a, const void* weight, const void* residual,
                           void* out, float* squares, std::int64_t m, std::int64_t n, std::int64_t k);
};

const DeferredNormKernels& cuda_deferred_norm();

}  // namespace fusebench::kernels
