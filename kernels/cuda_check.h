// Checked CUDA calls, in device and in host code.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace fusebench::kernels {

inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorName(status) + ", " + cudaGetErrorString(status) +
                           " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace fusebench::kernels

/// Throws std::runtime_error that names the failing call, file and line.
#define FUSEBENCH_CUDA_CHECK(call) ::fusebench::kernels::cuda_check((call), #call, __FILE__, __LINE__)
/// The same for the launch before it, which has no status of its own.
#define FUSEBENCH_LAUNCH_CHECK(kernel) \
  ::fusebench::kernels::cuda_check(cudaGetLastError(), "launch of " #kernel, __FILE__, __LINE__)
