// Thin wrappers of the sm_80 tensor-core instructions that the product and attention kernels are built from: cp.async,
// ldmatrix and mma.sync m16n8k16 with fp16 or bf16 operands and fp32 accumulators.
//
// Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16"), with g = lane / 4 and t = lane % 4:
//   A [16 x 16]  a[0] (g, 2t..2t+1)  a[1] (g+8, 2t..)  a[2] (g, 2t+8..)  a[3] (g+8, 2t+8..)
//   B [16 x 8]   b0 (k = 2t..2t+1, n = g)   b1 (k = 2t+8.., n = g)
//   C [16 x 8]   d[0], d[1] (g, 2t), (g, 2t+1)   d[2], d[3] (g+8, 2t), (g+8, 2t+1)
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace fusebench::kernels::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// 16 bytes from global to shared memory, both 16-byte aligned, past L1. Only the first `bytes` (0..16) are read, the
/// rest becomes zero: with 0 nothing is read at all.
__device__ __forceinline__ void cp_async16(std::uint32_t shared, const void* global, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

/// Waits until at most `Pending` of this thread's committed groups are under way. Other threads' copies need a barrier.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

/// Four 8x8 matrices of 16-bit elements: lane l gives the address of row l % 8 of matrix l / 8 (16 bytes, aligned), and
/// gets of each matrix i in r[i] the elements (lane / 4, 2 (lane % 4)) and the next.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

/// The same, each matrix transposed.
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

/// d += a · b
template <typename T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1);

template <>
__device__ __forceinline__ void mma_m16n8k16<__half>(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                                     std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma_m16n8k16<__nv_bfloat16>(float (&d)[4], const std::uint32_t (&a)[4],
                                                            std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Of 32 neighbouring columns, four C fragments, a thread has two in each group of eight; the four threads of its quad
/// have all. Thread t of the quad gets the eight of group t. `d` points to the row's value in the first fragment.
__device__ __forceinline__ void transpose_quad(const float* d, float (&values)[8]) {
  const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
  float from_even[2][2],
      from_odd[2][2];  // [groups 0 and 1 or 2 and 3][of a pair], of the one with this thread's parity
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float even_group = d[half * 8 + i], odd_group = d[half * 8 + 4 + i];
      const float received = __shfl_xor_sync(~0u, odd ? even_group : odd_group, 1);
      from_even[half][i] = odd ? received : even_group;
      from_odd[half][i] = odd ? odd_group : received;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float even = __shfl_xor_sync(~0u, upper ? from_even[0][i] : from_even[1][i], 2);
    const float odd_one = __shfl_xor_sync(~0u, upper ? from_odd[0][i] : from_odd[1][i], 2);
    values[i] = upper ? even : from_even[0][i];
    values[2 + i] = upper ? odd_one : from_odd[0][i];
    values[4 + i] = upper ? from_even[1][i] : even;
    values[6 + i] = upper ? from_odd[1][i] : odd_one;
  }
}

/// Two floats, each rounded to T, as neighbours in memory order: what an MMA operand or a 4-byte store takes.
template <typename T>
__device__ __forceinline__ std::uint32_t pack(float low, float high);

template <>
__device__ __forceinline__ std::uint32_t pack<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

template <>
__device__ __forceinline__ std::uint32_t pack<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

}  // namespace fusebench::kernels::cuda
