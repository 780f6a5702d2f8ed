// What a deferred norm needs beside its products: the first rows' sums of squares, and the folding of its weight.
#include "kernels/deferred_norm.h"

#include "kernels/fused_cuda.h"
#include "kernels/hopper.cuh"
#include "kernels/pack.cuh"
#include "kernels/row.cuh"

namespace fusebench::kernels::cuda {
namespace {

constexpr int kSquaresWarps = 4;

/// A warp a row, so that no row waits at a barrier and thousands of rows are in flight.
template <typename T, int N>
__global__ void __launch_bounds__(32 * kSquaresWarps)
    sum_row_squares(const T* x, float* squares, std::int64_t rows, std::int64_t cols) {
  hopper::let_successor_start();
  const std::int64_t packs = cols / N, lane = threadIdx.x % 32;
  for (std::int64_t row = grid_thread() / 32; row < rows; row += grid_threads() / 32) {
    float sum = 0.0f;
#pragma unroll 16
    for (std::int64_t i = lane; i < packs; i += 32) {
      const Pack<T, N> pack = load_pack<N>(x + row * cols + i * N);  // kept in L2 for the product that comes next
#pragma unroll
      for (int j = 0; j < N; ++j) sum = fmaf(pack[j], pack[j], sum);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (lane == 0) squares[row] = sum;
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
      sum_row_squares<T, N><<<grid_for(rows, kSquaresWarps), 32 * kSquaresWarps, 0, stream_of(exec)>>>(
          static_cast<const T*>(x), squares, rows, cols);
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
