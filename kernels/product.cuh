// Launches the product kernel that was chosen, with an epilogue (kernels/gemm.cuh).
#pragma once

#include "kernels/deferred_norm.h"
#include "kernels/gemm.cuh"
#include "kernels/gemm_hopper.cuh"

namespace fusebench::kernels::cuda {

inline void require_hopper_for(const DeferredNorm& norm, GemmKernel kernel) {
  if (norm.squares != nullptr && kernel != GemmKernel::hopper) {
    throw std::invalid_argument("the Hopper product alone applies a deferred norm");
  }
}

/// Of what an epilogue keeps in 32 bits.
inline void require_32_bits(std::initializer_list<std::int64_t> extents) {
  if (std::max(extents) > INT32_MAX) throw std::invalid_argument("the product's epilogue takes extents below 2^31");
}

/// `epilogue.operator()<Vectors>()` makes the epilogue. With Vectors it may count on 16-byte accesses, which the Hopper
/// kernel asks for, to be spared the registers of what does without.
template <typename T, typename MakeEpilogue>
void launch_product(const Exec& exec, GemmKernel kernel, const T* a, const T* weight, std::int64_t m, std::int64_t n,
                    std::int64_t k, bool vectors, MakeEpilogue&& epilogue) {
  switch (kernel) {
    case GemmKernel::portable:
      return launch_portable(exec, a, weight, m, n, k, epilogue.template operator()<false>());
    case GemmKernel::portable_unaligned:
      return launch_tiles<SmallTile, false>(exec, a, weight, m, n, k, epilogue.template operator()<false>());
    case GemmKernel::hopper:
      if (!vectors) throw std::invalid_argument("the Hopper product stores aligned vectors alone");
      return launch_hopper(exec, a, weight, m, n, k, epilogue.template operator()<true>());
    case GemmKernel::cpu:
      break;
  }
  throw std::invalid_argument("not a CUDA product kernel");
}

}  // namespace fusebench::kernels::cuda
