// Launches a kernel of sm_90a that takes most of a multiprocessor's shared memory.
#pragma once

#include <array>

#include "kernels/device.cuh"

namespace fusebench::kernels::cuda {

/// `blocks` in clusters of `cluster`. The kernel may start before the one in front of it in the stream has ended, and
/// says by hopper::wait_for_predecessor where it needs that one's results.
template <typename Kernel, typename... Arguments>
void launch_hopper_kernel(const Exec& exec, Kernel* kernel, std::int64_t blocks, int threads, int shared_bytes,
                          unsigned cluster, const Arguments&... arguments) {
  FUSEBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  std::array<cudaLaunchAttribute, 2> attributes{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {cluster, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream_of(exec);
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  FUSEBENCH_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace fusebench::kernels::cuda
