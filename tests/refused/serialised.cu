// Not to be built: ptxas makes these wgmma run one by one, as ordinary instructions change an accumulator in between.
#include "kernels/hopper.cuh"

namespace fusebench::kernels::cuda {

__global__ void serialised([[maybe_unused]] float* out, [[maybe_unused]] std::uint64_t a,
                           [[maybe_unused]] std::uint64_t b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  float d[32] = {};
  hopper::wgmma_fence();
  hopper::wgmma<__half, 64>(d, a, b, true);
  d[0] += 1.0f;
  hopper::wgmma<__half, 64>(d, a, b, true);
  hopper::wgmma_commit();
  hopper::wgmma_wait<0>();
  for (int i = 0; i < 32; ++i) out[threadIdx.x * 32 + i] = d[i];
#endif
}

}  // namespace fusebench::kernels::cuda
