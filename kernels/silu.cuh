// silu, as the elementwise kernel and the product's epilogue apply it to a gate.
#pragma once

namespace fusebench::kernels::cuda {

/// g · sigmoid(g), with exp(-|g|), which cannot overflow. The limit at -inf is 0, where the formula gives -inf · 0.
/// For a result that is stored in 16 bits as T the fast exponential and quotient are as good.
template <typename T>
__device__ __forceinline__ float silu(float g) {
  constexpr bool exact = sizeof(T) == 4;
  const float e = exact ? expf(-fabsf(g)) : __expf(-fabsf(g));
  if (g < 0.0f && e == 0.0f) return 0.0f;
  const float numerator = g < 0.0f ? g * e : g;
  return exact ? numerator / (1.0f + e) : __fdividef(numerator, 1.0f + e);
}

}  // namespace fusebench::kernels::cuda
