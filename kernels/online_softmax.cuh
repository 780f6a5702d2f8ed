// 2^x, and sums and maxima over a quad: for attention's online softmax, silu and sums of squares.
#pragma once

namespace fusebench::kernels::cuda {

/// 2^x; 0 for -inf.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// What the four lanes that share a row of an MMA accumulator make of their values together.
template <class Combine>
__device__ __forceinline__ float reduce_quad(float value, Combine combine) {
  value = combine(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return combine(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ __forceinline__ float quad_sum(float value) {
  return reduce_quad(value, [](float a, float b) { return a + b; });
}
__device__ __forceinline__ float quad_max(float value) {
  return reduce_quad(value, [](float a, float b) { return fmaxf(a, b); });
}

}  // namespace fusebench::kernels::cuda
