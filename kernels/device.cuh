// What every CUDA kernel of the project needs: checked calls, dispatch over element types, conversions and grids.
// Arithmetic is in fp32; a store rounds to nearest, ties to even. Sizes and indices are 64-bit.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/cuda_check.h"
#include "kernels/types.h"

namespace fusebench::kernels {

/// Calls f.operator()<T>() with the 16-bit type that `dtype` names; throws std::invalid_argument for fp32, which the
/// kernel then has no form for.
template <class F>
decltype(auto) dispatch_half(DType dtype, F&& f) {
  switch (dtype) {
    case DType::fp16:
      return f.template operator()<__half>();
    case DType::bf16:
      return f.template operator()<__nv_bfloat16>();
    case DType::fp32:
      break;
  }
  throw std::invalid_argument("this kernel takes fp16 and bf16, not " + std::string(name_of(dtype)));
}

/// The same for any element type: dispatch(dtype, [&]<class T>() { ... }).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  if (dtype == DType::fp32) return f.template operator()<float>();
  return dispatch_half(dtype, f);
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
// bf16 is fp32's upper half. A shift runs at full rate, where sm_90's conversion instruction runs at a fraction of it.
__device__ __forceinline__ float to_float(__nv_bfloat16 x) {
  return __uint_as_float(static_cast<unsigned>(__bfloat16_as_ushort(x)) << 16);
}

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

template <class T>
__device__ __forceinline__ float load(const T* data, std::int64_t i) {
  return to_float(data[i]);
}
template <class T>
__device__ __forceinline__ void store(T* data, std::int64_t i, float x) {
  data[i] = from_float<T>(x);
}

/// Blocks of a one-dimensional grid over n units of work, `per_block` to a block. Kernels stride over the grid, so a
/// cap costs nothing; it stays far below the hardware's 2^31 - 1 in x.
inline unsigned grid_for(std::int64_t n, std::int64_t per_block) {
  constexpr std::int64_t max_blocks = std::int64_t{1} << 22;
  return static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(n, per_block), 1, max_blocks));
}

/// for (std::int64_t i = grid_thread(); i < n; i += grid_threads()): every i once, over a one-dimensional grid.
__device__ __forceinline__ std::int64_t grid_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t grid_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// In its warp.
__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

/// Whether 16-byte accesses may start at `data`.
inline bool is_aligned_16(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

inline cudaStream_t stream_of(const Exec& exec) { return exec.stream; }

/// Of the current device. Remembered, since launches ask for it often.
template <cudaDeviceAttr Attribute>
std::int64_t device_attribute() {
  thread_local int known = -1, value = 0;
  int device = 0;
  FUSEBENCH_CUDA_CHECK(cudaGetDevice(&device));
  if (device != known) {
    FUSEBENCH_CUDA_CHECK(cudaDeviceGetAttribute(&value, Attribute, device));
    known = device;
  }
  return value;
}

inline std::int64_t multiprocessors() { return device_attribute<cudaDevAttrMultiProcessorCount>(); }

}  // namespace fusebench::kernels
