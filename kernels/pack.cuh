// Packs: N neighbours in memory that move as one access, or as a few of 16 bytes.
#pragma once

#include <bit>

#include "kernels/device.cuh"

namespace fusebench::kernels::cuda {

template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T values[N];

  __device__ __forceinline__ float operator[](int i) const { return to_float(values[i]); }
  __device__ __forceinline__ void set(int i, float x) { values[i] = from_float<T>(x); }
};

/// Elements of T in one 16-byte access.
template <typename T>
constexpr int full_pack = 16 / static_cast<int>(sizeof(T));

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* source) {
  return *reinterpret_cast<const Pack<T, N>*>(source);
}

/// For data that is read once: past L1, where what is read again should stay.
template <int N, typename T>
__device__ __forceinline__ Pack<T, N> load_pack_once(const T* source) {
  if constexpr (sizeof(Pack<T, N>) == 16) {
    return std::bit_cast<Pack<T, N>>(__ldcg(reinterpret_cast<const uint4*>(source)));
  } else {
    return load_pack<N>(source);
  }
}

template <int N, typename T>
__device__ __forceinline__ void store_pack(T* target, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(target) = pack;
}

/// Whether each of `bases` allows 16-byte accesses.
template <typename... Bases>
bool all_aligned_16(const Bases*... bases) {
  return (is_aligned_16(bases) && ...);
}

/// Calls f.operator()<N>() with N = full_pack<T> where 16-byte accesses are possible, and with 1 where they are not.
template <typename T, class F>
void dispatch_pack(bool vectors, F&& f) {
  if (vectors) {
    f.template operator()<full_pack<T>>();
  } else {
    f.template operator()<1>();
  }
}

}  // namespace fusebench::kernels::cuda
