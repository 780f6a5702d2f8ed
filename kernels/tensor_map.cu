#include "kernels/tensor_map.h"

#include <cuda_runtime_api.h>

#include <array>
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

CUtensorMap tensor_map(DType dtype, const void* base, std::span<const TensorDimension> dimensions,
                       CUtensorMapSwizzle swizzle) {
  static const Encode encode = load_encode();
  constexpr std::size_t kMostDimensions = 5;
  std::array<cuuint64_t, kMostDimensions> sizes{}, strides_bytes{};
  std::array<cuuint32_t, kMostDimensions> box_sizes{}, steps{};
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].extent > INT32_MAX) throw std::invalid_argument("TMA takes extents below 2^31");
    sizes.at(i) = static_cast<cuuint64_t>(dimensions[i].extent);
    if (i > 0)
      strides_bytes.at(i - 1) = static_cast<cuuint64_t>(2 * dimensions[i].stride);  // the first one's is not asked
    box_sizes.at(i) = static_cast<cuuint32_t>(dimensions[i].box);
    steps.at(i) = 1;
  }
  CUtensorMap map{};
  const CUresult status =
      encode(&map, dtype == DType::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
             static_cast<cuuint32_t>(dimensions.size()), const_cast<void*>(base), sizes.data(), strides_bytes.data(),
             box_sizes.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw std::invalid_argument("cuTensorMapEncodeTiled refuses a tensor whose rows have " +
                                std::to_string(dimensions.front().extent) + " elements: error " +
                                std::to_string(status));
  }
  return map;
}

CUtensorMap matrix_map(DType dtype, const void* base, std::int64_t rows, std::int64_t cols, int box_rows) {
  return tensor_map(dtype, base, std::array{TensorDimension{cols, 1, 64}, TensorDimension{rows, cols, box_rows}});
}

}  // namespace fusebench::kernels::cuda
