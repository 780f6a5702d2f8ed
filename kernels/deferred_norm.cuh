// A row's factor, where a product's epilogue applies the norm before it (kernels/deferred_norm.h).
#pragma once

#include "kernels/fused.h"
#include "kernels/hopper.cuh"
#include "kernels/online_softmax.cuh"
#include "kernels/row.cuh"

namespace fusebench::kernels::cuda {

/// Brings what row_factor reads into L2; the four lanes of a quad ask for the same row.
__device__ __forceinline__ void touch_row_factor(const DeferredNorm& norm, int row) {
  if (norm.squares == nullptr) return;
  hopper::touch_by_quad(norm.squares + row * norm.parts, static_cast<int>(norm.parts));
  hopper::touch(norm.fold);
}

/// The four lanes of a quad ask for the same row, together.
__device__ __forceinline__ float row_factor(const DeferredNorm& norm, int row, int dim) {
  if (norm.squares == nullptr) return 1.0f;
  const auto parts = static_cast<int>(norm.parts);
  const float* squares = norm.squares + static_cast<std::int64_t>(row) * parts;
  float sum = 0.0f;
#pragma unroll 8
  for (int part = static_cast<int>(threadIdx.x) % 4; part < parts; part += 4) sum += squares[part];
  sum = quad_sum(sum);
  return rstd_of(sum, dim, norm.eps) / *norm.fold;
}

}  // namespace fusebench::kernels::cuda
