// square; row mean; 1 / sqrt(mean + eps); x · rstd; · weight. Squares and statistics are in fp32: the square of a
// half-precision 256 is already infinite in half precision.
#include "kernels/naive/map.cuh"
#include "kernels/naive/reduce.cuh"
#include "kernels/naive/steps.h"

namespace fusebench::kernels::naive {
namespace {

template <class T>
__global__ void square_kernel(const T* x, float* out, std::int64_t n) {
  for_each(n, [=](std::int64_t i) {
    const float value = load(x, i);
    out[i] = value * value;
  });
}

__global__ void row_mean_kernel(const float* x, float* mean, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* const values = x + row * cols;
    const float sum = reduce_row(
        cols, 0.0f, [=](std::int64_t col) { return values[col]; }, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) mean[row] = sum / static_cast<float>(cols);
  }
}

__global__ void rsqrt_eps_kernel(const float* mean, float eps, float* rstd, std::int64_t rows) {
  for_each(rows, [=](std::int64_t i) { rstd[i] = 1.0f / sqrtf(mean[i] + eps); });
}

template <class T>
__global__ void scale_rows_kernel(const T* x, const float* scale, T* out, std::int64_t rows, std::int64_t cols) {
  for_each_in_rows(rows, cols, [=](std::int64_t row, std::int64_t col) {
    store(out, row * cols + col, load(x, row * cols + col) * scale[row]);
  });
}

template <class T>
__global__ void scale_columns_kernel(const T* x, const T* weight, T* out, std::int64_t rows, std::int64_t cols) {
  for_each_in_rows(rows, cols, [=](std::int64_t row, std::int64_t col) {
    store(out, row * cols + col, load(x, row * cols + col) * load(weight, col));
  });
}

}  // namespace

void square(const Exec& exec, DType dtype, const void* x, float* out, std::int64_t n) {
  dispatch(dtype, [&]<class T>() {
    square_kernel<<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(static_cast<const T*>(x),
                                                                                             out, n);
    FUSEBENCH_LAUNCH_CHECK(square_kernel);
  });
}

void row_mean(const Exec& exec, const float* x, float* mean, std::int64_t rows, std::int64_t cols) {
  row_mean_kernel<<<grid_for(rows, 1), threads_per_block, 0, stream_of(exec)>>>(x, mean, rows, cols);
  FUSEBENCH_LAUNCH_CHECK(row_mean_kernel);
}

void rsqrt_eps(const Exec& exec, const float* mean, float eps, float* rstd, std::int64_t rows) {
  rsqrt_eps_kernel<<<grid_for(rows, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(mean, eps, rstd, rows);
  FUSEBENCH_LAUNCH_CHECK(rsqrt_eps_kernel);
}

void scale_rows(const Exec& exec, DType dtype, const void* x, const float* scale, void* out, std::int64_t rows,
                std::int64_t cols) {
  dispatch(dtype, [&]<class T>() {
    scale_rows_kernel<<<row_grid(rows, cols), threads_per_block, 0, stream_of(exec)>>>(
        static_cast<const T*>(x), scale, static_cast<T*>(out), rows, cols);
    FUSEBENCH_LAUNCH_CHECK(scale_rows_kernel);
  });
}

void scale_columns(const Exec& exec, DType dtype, const void* x, const void* weight, void* out, std::int64_t rows,
                   std::int64_t cols) {
  dispatch(dtype, [&]<class T>() {
    scale_columns_kernel<<<row_grid(rows, cols), threads_per_block, 0, stream_of(exec)>>>(
        static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<T*>(out), rows, cols);
    FUSEBENCH_LAUNCH_CHECK(scale_columns_kernel);
  });
}

}  // namespace fusebench::kernels::naive
