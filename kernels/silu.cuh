// silu, as the elementwise kernel and the product's epilogue apply it to a gate.
#pragma once

#include "kernels/online_softmax.cuh"

namespace fusebench::kernels::cuda {

/// g · sigmoid(g), with exp(-|g|), which cannot overflow. The limit at -inf is 0, where the formula gives -inf · 0.
/// For a result that is stored in 16 bits as T the fast exponential and reciprocal are as good; exp(-|g|) is then the
/// square of one that underflows only where the result is 0.
template <typename T>
__device__ __forceinline__ float silu(float g) {
  if constexpr (sizeof(T) == 4) {
    const float e = expf(-fabsf(g));
    if (g < 0.0f && e == 0.0f) return 0.0f;
    return (g < 0.0f ? g * e : g) / (1.0f + e);
  } else {
    constexpr float kHalfLog2E = 0.72134752f;
    const float root = power_of_two(-kHalfLog2E * fabsf(g));
    const float numerator = g < 0.0f ? fmaxf(g, -200.0f) * root * root : g;
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(fmaf(root, root, 1.0f)));
    return numerator * reciprocal;
  }
}

}  // namespace fusebench::kernels::cuda
