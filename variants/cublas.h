// cuBLASLt's objects with owners, and its calls checked.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

#include "kernels/cuda_check.h"

namespace fusebench {

inline void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("{}: {} ({}:{})", call, cublasLtGetStatusName(status), file, line));
}
#define FUSEBENCH_CUBLAS_CHECK(call) ::fusebench::check_cublas((call), #call, __FILE__, __LINE__)

constexpr std::int64_t kCublasWorkspaceBytes = std::int64_t{32} << 20;  // what NVIDIA recommends for Hopper

struct Destroy {
  void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayout_t d) const { cublasLtMatrixLayoutDestroy(d); }
  void operator()(cublasLtMatmulPreference_t d) const { cublasLtMatmulPreferenceDestroy(d); }
  void operator()(cublasLtHandle_t d) const { cublasLtDestroy(d); }
  void operator()(cudaEvent_t d) const { cudaEventDestroy(d); }
};
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

inline Owned<cublasLtHandle_t> make_cublas() {
  cublasLtHandle_t created = nullptr;
  FUSEBENCH_CUBLAS_CHECK(cublasLtCreate(&created));
  return Owned<cublasLtHandle_t>(created);
}

inline Owned<cudaEvent_t> make_event() {
  cudaEvent_t event = nullptr;
  FUSEBENCH_CUDA_CHECK(cudaEventCreate(&event));
  return Owned<cudaEvent_t>(event);
}

}  // namespace fusebench
