#include "kernels/tensor_map.h"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "kernels/cuda_check.h"

namespace fusebench::kernels::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// From the driver that the runtime has loaded, so that nothing links libcuda, which a machine without a GPU lacks.
Encode load_encode() {
  constexpr unsigned kVersion = 12000;
  void* symbol = nullptr;
  cudaDriverEntryPointQueryResult found{};
  FUSEBENCH_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, kVersion, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<Encode>(symbol);
}

}  // namespace

CUtensorMap tensor_map(DType dtype, const void* base, std::int64_t rows, std::int64_t cols, int box_rows) {
  static const Encode encode = load_encode();
  if (rows > INT32_MAX || cols > INT32_MAX) throw std::invalid_argument("TMA takes extents below 2^31");
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch_bytes[] = {static_cast<cuuint64_t>(cols) * 2};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map{};
  const CUresult status =
      encode(&map, dtype == DType::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
             const_cast<void*>(base), extents, pitch_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw std::invalid_argument("cuTensorMapEncodeTiled refuses a matrix of " + std::to_string(rows) + " x " +
                                std::to_string(cols) + ": error " + std::to_string(status));
  }
  return map;
}

}  // namespace fusebench::kernels::cuda
