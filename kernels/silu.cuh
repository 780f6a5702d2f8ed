// silu for results that are rounded to 16 bits: what the product's epilogue applies to a gate.
#pragma once

namespace fusebench::kernels::cuda {

/// g · sigmoid(g), with exp(-|g|), which cannot overflow. The limit at -inf is 0, where the formula gives -inf · 0.
__device__ __forceinline__ float fast_silu(float g) {
  const float e = __expf(-fabsf(g));
  if (g < 0.0f && e == 0.0f) return 0.0f;
  return __fdividef(g < 0.0f ? g * e : g, 1.0f + e);
}

}  // namespace fusebench::kernels::cuda
