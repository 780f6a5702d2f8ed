// masked_softmax: probabilities [batch, heads, seq, keys] = softmax of fp32 scores of the same shape over the keys that
// each query sees; 0 elsewhere. A row is read once, its visible part alone, and written once. exp(x - max) is taken
// after the subtraction, which is exact where it matters: logits of any size keep their differences.
#include "kernels/fused_cuda.h"
#include "kernels/pack.cuh"
#include "kernels/row.cuh"

namespace fusebench::kernels::cuda {
namespace {

template <typename T>
struct Arguments {
  const float* scores;
  T* probabilities;
  std::int64_t rows;
  std::int64_t seq;
  std::int64_t keys;
  bool causal;

  __device__ __forceinline__ std::int64_t visible(std::int64_t row) const {
    return causal ? min(max(keys - seq + row % seq + 1, std::int64_t{0}), keys) : keys;
  }
};

/// What is subtracted from each score: nothing where no score is above -inf, so that exp gives 0 and not NaN.
__device__ __forceinline__ float offset_of(float max) { return max == -INFINITY ? 0.0f : max; }

/// 0 for rows without a visible key; a sum that is NaN stays NaN.
__device__ __forceinline__ float reciprocal(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

/// The row stays in registers.
template <typename T, int N, int Chunks>
__global__ void __launch_bounds__(max_row_threads) softmax_rows(const Arguments<T> args) {
  const auto column = [](int chunk) { return static_cast<int>(threadIdx.x + chunk * blockDim.x) * N; };
  const int keys = static_cast<int>(args.keys);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.y; first < args.rows; first += step) {
    const std::int64_t row = first + threadIdx.y;
    const std::int64_t start = row * args.keys;
    const int visible = row < args.rows ? static_cast<int>(args.visible(row)) : 0;

    Pack<float, N> x[Chunks];
#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
      if (column(i) < visible) x[i] = load_pack_once<N>(args.scores + start + column(i));
    }
    float max = -INFINITY;
#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (column(i) + e >= visible) x[i].values[e] = -INFINITY;
        max = fmaxf(max, x[i].values[e]);
      }
    }
    const float offset = offset_of(row_max(max));
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
#pragma unroll
      for (int e = 0; e < N; ++e) {
        x[i].values[e] = expf(x[i].values[e] - offset);
        sum += x[i].values[e];
      }
    }
    const float scale = reciprocal(row_sum(sum));
    if (row >= args.rows) continue;
#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
      if (column(i) >= keys) continue;
      Pack<T, N> probabilities;
#pragma unroll
      for (int e = 0; e < N; ++e) probabilities.set(e, x[i].values[e] * scale);
      store_pack(args.probabilities + start + column(i), probabilities);
    }
  }
}

/// Rows of any length: a block a row, which it reads twice, the second time mostly from L2.
template <typename T, int N>
__global__ void __launch_bounds__(max_row_threads) softmax_long_rows(const Arguments<T> args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const std::int64_t start = row * args.keys, visible = args.visible(row);
    float max = -INFINITY, sum = 0.0f;  // this thread's, the sum relative to its maximum
    for (std::int64_t col = threadIdx.x * N; col < visible; col += max_row_threads * N) {
      const Pack<float, N> x = load_pack<N>(args.scores + start + col);
#pragma unroll
      for (int e = 0; e < N; ++e) {
        if (col + e >= visible) continue;
        if (x[e] > max) {
          sum *= expf(max - x[e]);
          max = x[e];
        }
        sum += expf(x[e] - offset_of(max));
      }
    }
    const float offset = offset_of(row_max(max));
    const float scale = reciprocal(row_sum(max == -INFINITY ? sum : sum * expf(max - offset)));
    for (std::int64_t col = threadIdx.x * N; col < args.keys; col += max_row_threads * N) {
      Pack<float, N> x{};
      if (col < visible) x = load_pack<N>(args.scores + start + col);
      Pack<T, N> probabilities;
#pragma unroll
      for (int e = 0; e < N; ++e) probabilities.set(e, col + e < visible ? expf(x[e] - offset) * scale : 0.0f);
      store_pack(args.probabilities + start + col, probabilities);
    }
  }
}

template <typename T>
void launch(const Exec& exec, const Arguments<T>& args) {
  const bool vectors = args.keys % full_pack<T> == 0 && all_aligned_16(args.scores, args.probabilities);
  dispatch_pack<T>(vectors, [&]<int N>() {
    constexpr int max_chunks = N == 1 ? 8 : 4;
    const RowLaunch rows = row_launch(args.rows, args.keys / N, max_chunks);
    if (rows.chunks == 0) {
      softmax_long_rows<T, N><<<rows.grid, rows.block, 0, stream_of(exec)>>>(args);
    } else {
      dispatch_chunks<max_chunks>(rows.chunks, [&]<int Chunks>() {
        softmax_rows<T, N, Chunks><<<rows.grid, rows.block, 0, stream_of(exec)>>>(args);
      });
    }
  });
  FUSEBENCH_LAUNCH_CHECK(masked_softmax);
}

}  // namespace

void masked_softmax(const Exec& exec, DType dtype, const float* scores, void* probabilities, AttentionShape shape) {
  dispatch(dtype, [&]<typename T>() {
    launch(exec, Arguments<T>{scores, static_cast<T*>(probabilities), shape.batch * shape.heads * shape.seq, shape.seq,
                              shape.keys, shape.causal});
  });
}

}  // namespace fusebench::kernels::cuda
