// Launches the portable product that was chosen, with an epilogue (kernels/gemm.cuh).
#pragma once

#include "kernels/fused.h"
#include "kernels/gemm.cuh"
#include "kernels/gemm_hopper.cuh"

namespace fusebench::kernels::cuda {

inline void require_no(const DeferredNorm& norm) {
  if (norm.squares != nullptr) throw std::invalid_argument("the Hopper product alone applies a deferred norm");
}

template <typename T, typename Epilogue>
void launch_product(const Exec& exec, GemmKernel kernel, const T* a, const T* weight, std::int64_t m, std::int64_t n,
                    std::int64_t k, const Epilogue& epilogue) {
  switch (kernel) {
    case GemmKernel::portable:
      return launch_portable(exec, a, weight, m, n, k, epilogue);
    case GemmKernel::portable_unaligned:
      return launch_tiles<SmallTile, false>(exec, a, weight, m, n, k, epilogue);
    case GemmKernel::cpu:
    case GemmKernel::hopper:
      break;
  }
  throw std::invalid_argument("not a portable product kernel");
}

}  // namespace fusebench::kernels::cuda
