// What a deferred norm needs beside its products: the first rows' sums of squares, and the folding of its weight.
#include "kernels/deferred_norm.h"

#include "kernels/fused_cuda.h"
#include "kernels/hopper.cuh"
#include "kernels/pack.cuh"
#include "kernels/row.cuh"

namespace fusebench::kernels::cuda {
namespace {

template <typename T, int N>
__global__ void __launch_bounds__(max_row_threads)
    sum_row_squares(const T* x, float* squares, std::int64_t rows, std::int64_t cols) {
  hopper::let_successor_start();
  const std::int64_t packs = cols / N, step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.y; first < rows; first += step) {
    const std::int64_t row = first + threadIdx.y;
    float sum = 0.0f;
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < (row < rows ? packs : 0); i += blockDim.x) {
      const Pack<T, N> pack = load_pack<N>(x + row * cols + i * N);  // kept in L2 for the product that comes next
#pragma unroll
      for (int j = 0; j < N; ++j) sum = fmaf(pack[j], pack[j], sum);
    }
    sum = row_sum(sum);
    if (threadIdx.x == 0 && row < rows) squares[row] = sum;
  }
}

/// One block.
template <typename T>
__global__ void __launch_bounds__(max_row_threads) find_fold(const T* norm_weight, std::int64_t cols, float* fold) {
  float largest = 0.0f;
  for (std::int64_t i = threadIdx.x; i < cols; i += blockDim.x) largest = fmaxf(largest, fabsf(load(norm_weight, i)));
  largest = row_max(largest);
  if (threadIdx.x > 0) return;
  int exponent = 0;
  if (isfinite(largest)) frexpf(largest, &exponent);
  *fold = ldexpf(1.0f, -max(min(exponent, 100), -100));
}

template <typename T>
__global__ void scale_columns(const T* norm_weight, const float* fold, T* weight, std::int64_t rows,
                              std::int64_t cols) {
  for (std::int64_t i = grid_thread(); i < rows * cols; i += grid_threads()) {
    store(weight, i, load(weight, i) * (load(norm_weight, i % cols) * *fold));
  }
}

}  // namespace

void row_squares(const Exec& exec, DType dtype, const void* x, float* squares, std::int64_t rows, std::int64_t cols) {
  dispatch_half(dtype, [&]<typename T>() {
    dispatch_pack<T>(cols % full_pack<T> == 0 && is_aligned_16(x), [&]<int N>() {
      const RowLaunch launch = row_launch(rows, cols / N, INT_MAX);
      sum_row_squares<T, N>
          <<<launch.grid, launch.block, 0, stream_of(exec)>>>(static_cast<const T*>(x), squares, rows, cols);
      FUSEBENCH_LAUNCH_CHECK(sum_row_squares);
    });
  });
}

void fold_norm(const Exec& exec, DType dtype, const void* norm_weight, void* weight, float* fold, std::int64_t rows,
               std::int64_t cols) {
  dispatch_half(dtype, [&]<typename T>() {
    const T* norm = static_cast<const T*>(norm_weight);
    find_fold<<<1, max_row_threads, 0, stream_of(exec)>>>(norm, cols, fold);
    FUSEBENCH_LAUNCH_CHECK(find_fold);
    scale_columns<<<grid_for(rows * cols, 256), 256, 0, stream_of(exec)>>>(norm, fold, static_cast<T*>(weight), rows,
                                                                           cols);
    FUSEBENCH_LAUNCH_CHECK(scale_columns);
  });
}

}  // namespace fusebench::kernels::cuda
