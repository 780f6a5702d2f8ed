// scores = q·kᵀ / sqrt(head_dim), masked; row max; exp(score - max); row sum; divide; · v. A product a query head
// (see tile.cuh), the rest row by row over [batch · heads · seq, keys].
#include <cmath>
#include <stdexcept>

#include "kernels/naive/map.cuh"
#include "kernels/naive/reduce.cuh"
#include "kernels/naive/steps.h"
#include "kernels/naive/tile.cuh"

namespace fusebench::kernels::naive {
namespace {

// First elements of a query head's rows, and how far its rows are apart, in q and out, and in k and v.
struct HeadPlace {
  std::int64_t query;
  std::int64_t query_stride;
  std::int64_t key;
  std::int64_t key_stride;
};

// `matrix` is b · heads + h.
__device__ HeadPlace head_place(const AttentionShape& shape, std::int64_t matrix) {
  const std::int64_t b = matrix / shape.heads;
  const std::int64_t h = matrix % shape.heads;
  const std::int64_t kv_head = h / (shape.heads / shape.kv_heads);
  return {.query = (b * shape.seq * shape.heads + h) * shape.head_dim,
          .query_stride = shape.heads * shape.head_dim,
          .key = (b * shape.keys * shape.kv_heads + kv_head) * shape.head_dim,
          .key_stride = shape.kv_heads * shape.head_dim};
}

template <class T>
__global__ void __launch_bounds__(tile_threads)
    scores_kernel(const T* q, const T* k, float* scores, AttentionShape shape, float scale, Tiles tiles) {
  for (std::int64_t tile = blockIdx.x; tile < tiles.total(); tile += gridDim.x) {
    const std::int64_t matrix = tiles.matrix(tile);
    const HeadPlace head = head_place(shape, matrix);
    multiply_tile<Contiguous::depth, ZeroOfA::multiplies>(
        tiles.row0(tile), tiles.col0(tile), tiles.rows, tiles.cols, shape.head_dim,
        [=](std::int64_t s, std::int64_t d) { return load(q, head.query + s * head.query_stride + d); },
        [=](std::int64_t key, std::int64_t d) { return load(k, head.key + key * head.key_stride + d); },
        [=](std::int64_t s, std::int64_t key, float sum) {
          const bool visible = !shape.causal || key < shape.keys - shape.seq + s + 1;
          scores[(matrix * shape.seq + s) * shape.keys + key] = visible ? sum * scale : -INFINITY;
        });
  }
}

__global__ void row_max_kernel(const float* x, float* max, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* const values = x + row * cols;
    const float result = reduce_row(
        cols, -INFINITY, [=](std::int64_t col) { return values[col]; }, [](float a, float b) { return fmaxf(a, b); });
    if (threadIdx.x == 0) max[row] = result;
  }
}

// A masked score gives 0 also where no key is visible and the maximum is -inf itself: -inf - -inf would be NaN.
template <class T>
__global__ void exp_minus_max_kernel(const float* scores, const float* max, T* out, std::int64_t rows,
                                     std::int64_t cols) {
  for_each_in_rows(rows, cols, [=](std::int64_t row, std::int64_t col) {
    const float score = scores[row * cols + col];
    store(out, row * cols + col, score == -INFINITY ? 0.0f : expf(score - max[row]));
  });
}

template <class T>
__global__ void row_sum_kernel(const T* x, float* sum, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* const values = x + row * cols;
    const float result = reduce_row(
        cols, 0.0f, [=](std::int64_t col) { return load(values, col); }, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) sum[row] = result;
  }
}

// The sum is 0 only where no key is visible: elsewhere the largest score alone adds 1.
template <class T>
__global__ void divide_rows_kernel(const T* x, const float* sum, T* out, std::int64_t rows, std::int64_t cols) {
  for_each_in_rows(rows, cols, [=](std::int64_t row, std::int64_t col) {
    const float total = sum[row];
    store(out, row * cols + col, total == 0.0f ? 0.0f : load(x, row * cols + col) / total);
  });
}

template <class T>
__global__ void __launch_bounds__(tile_threads)
    weighted_values_kernel(const T* probabilities, const T* v, T* out, AttentionShape shape, Tiles tiles) {
  for (std::int64_t tile = blockIdx.x; tile < tiles.total(); tile += gridDim.x) {
    const std::int64_t matrix = tiles.matrix(tile);
    const HeadPlace head = head_place(shape, matrix);
    multiply_tile<Contiguous::column, ZeroOfA::skips>(
        tiles.row0(tile), tiles.col0(tile), tiles.rows, tiles.cols, shape.keys,
        [=](std::int64_t s, std::int64_t key) {
          return load(probabilities, (matrix * shape.seq + s) * shape.keys + key);
        },
        [=](std::int64_t d, std::int64_t key) { return load(v, head.key + key * head.key_stride + d); },
        [=](std::int64_t s, std::int64_t d, float sum) { store(out, head.query + s * head.query_stride + d, sum); });
  }
}

}  // namespace

void scores(const Exec& exec, DType dtype, const void* q, const void* k, float* scores, AttentionShape shape) {
  const Tiles tiles{.count = shape.batch * shape.heads, .rows = shape.seq, .cols = shape.keys};
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  dispatch(dtype, [&]<class T>() {
    scores_kernel<<<grid_for(tiles.total(), 1), tile_threads, 0, stream_of(exec)>>>(
        static_cast<const T*>(q), static_cast<const T*>(k), scores, shape, scale, tiles);
    FUSEBENCH_LAUNCH_CHECK(scores_kernel);
  });
}

void row_max(const Exec& exec, const float* x, float* max, std::int64_t rows, std::int64_t cols) {
  row_max_kernel<<<grid_for(rows, 1), threads_per_block, 0, stream_of(exec)>>>(x, max, rows, cols);
  FUSEBENCH_LAUNCH_CHECK(row_max_kernel);
}

void exp_minus_max(const Exec& exec, DType dtype, const float* scores, const float* max, void* out, std::int64_t rows,
                   std::int64_t cols) {
  dispatch(dtype, [&]<class T>() {
    exp_minus_max_kernel<<<row_grid(rows, cols), threads_per_block, 0, stream_of(exec)>>>(
        scores, max, static_cast<T*>(out), rows, cols);
    FUSEBENCH_LAUNCH_CHECK(exp_minus_max_kernel);
  });
}

void row_sum(const Exec& exec, DType dtype, const void* x, float* sum, std::int64_t rows, std::int64_t cols) {
  dispatch(dtype, [&]<class T>() {
    row_sum_kernel<<<grid_for(rows, 1), threads_per_block, 0, stream_of(exec)>>>(static_cast<const T*>(x), sum, rows,
                                                                                 cols);
    FUSEBENCH_LAUNCH_CHECK(row_sum_kernel);
  });
}

void divide_rows(const Exec& exec, DType dtype, const void* x, const float* sum, void* out, std::int64_t rows,
                 std::int64_t cols) {
  dispatch(dtype, [&]<class T>() {
    divide_rows_kernel<<<row_grid(rows, cols), threads_per_block, 0, stream_of(exec)>>>(
        static_cast<const T*>(x), sum, static_cast<T*>(out), rows, cols);
    FUSEBENCH_LAUNCH_CHECK(divide_rows_kernel);
  });
}

void weighted_values(const Exec& exec, DType dtype, const void* probabilities, const void* v, void* out,
                     AttentionShape shape) {
  if (shape.value_stride != 0) throw std::invalid_argument("naive attention takes dense values alone");
  const Tiles tiles{.count = shape.batch * shape.heads, .rows = shape.seq, .cols = shape.head_dim};
  dispatch(dtype, [&]<class T>() {
    weighted_values_kernel<<<grid_for(tiles.total(), 1), tile_threads, 0, stream_of(exec)>>>(
        static_cast<const T*>(probabilities), static_cast<const T*>(v), static_cast<T*>(out), shape, tiles);
    FUSEBENCH_LAUNCH_CHECK(weighted_values_kernel);
  });
}

}  // namespace fusebench::kernels::naive
