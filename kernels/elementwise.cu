// add: out = a + b, where out may be a or b; copy_rows: rows of one matrix to places in another.
#include "kernels/fused_cuda.h"
#include "kernels/pack.cuh"

namespace fusebench::kernels::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int packs_per_thread = 2;

/// A block takes packs_per_thread · block_threads packs at a time, the threads side by side.
template <typename T, int N>
__global__ void __launch_bounds__(block_threads) add_packs(const T* a, const T* b, T* out, std::int64_t packs) {
  constexpr std::int64_t block_packs = packs_per_thread * block_threads;
  for (std::int64_t first = blockIdx.x * block_packs + threadIdx.x; first < packs; first += gridDim.x * block_packs) {
    Pack<T, N> left[packs_per_thread], right[packs_per_thread];
#pragma unroll
    for (int i = 0; i < packs_per_thread; ++i) {
      const std::int64_t pack = first + i * block_threads;
      if (pack >= packs) break;
      left[i] = load_pack_once<N>(a + pack * N);
      right[i] = load_pack_once<N>(b + pack * N);
    }
#pragma unroll
    for (int i = 0; i < packs_per_thread; ++i) {
      const std::int64_t pack = first + i * block_threads;
      if (pack >= packs) break;
      Pack<T, N> sum;
#pragma unroll
      for (int e = 0; e < N; ++e) sum.set(e, left[i][e] + right[i][e]);
      store_pack(out + pack * N, sum);
    }
  }
}

template <typename T, int N>
void launch_add(const Exec& exec, const T* a, const T* b, T* out, std::int64_t packs) {
  const unsigned blocks = grid_for(packs, packs_per_thread * block_threads);
  add_packs<T, N><<<blocks, block_threads, 0, stream_of(exec)>>>(a, b, out, packs);
  FUSEBENCH_LAUNCH_CHECK(add_packs);
}

/// Strides and cols count words.
template <typename Word>
__global__ void __launch_bounds__(block_threads)
    copy_words(const Word* x, std::int64_t x_stride, Word* out, std::int64_t out_stride, std::int64_t rows,
               std::int64_t cols, RowMap out_rows) {
  for (std::int64_t i = grid_thread(); i < rows * cols; i += grid_threads()) {
    const std::int64_t row = i / cols, col = i % cols;
    out[out_rows(row) * out_stride + col] = x[row * x_stride + col];
  }
}

}  // namespace

void add(const Exec& exec, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  dispatch(dtype, [&]<typename T>() {
    const std::int64_t packs = all_aligned_16(a, b, out) ? n / full_pack<T> : 0, done = packs * full_pack<T>;
    const auto* left = static_cast<const T*>(a);
    const auto* right = static_cast<const T*>(b);
    auto* sum = static_cast<T*>(out);
    if (packs > 0) launch_add<T, full_pack<T>>(exec, left, right, sum, packs);
    if (done < n) launch_add<T, 1>(exec, left + done, right + done, sum + done, n - done);
  });
}

void copy_rows(const Exec& exec, DType dtype, const void* x, std::int64_t x_stride, void* out, std::int64_t out_stride,
               std::int64_t rows, std::int64_t cols, RowMap out_rows) {
  const auto copy = [&]<typename Word>() {
    const std::int64_t elements = static_cast<std::int64_t>(sizeof(Word)) / bytes_of(dtype);
    copy_words<<<grid_for(rows * (cols / elements), block_threads), block_threads, 0, stream_of(exec)>>>(
        static_cast<const Word*>(x), x_stride / elements, static_cast<Word*>(out), out_stride / elements, rows,
        cols / elements, out_rows);
    FUSEBENCH_LAUNCH_CHECK(copy_words);
  };
  const std::int64_t elements = 16 / bytes_of(dtype);
  const bool vectors =
      cols % elements == 0 && x_stride % elements == 0 && out_stride % elements == 0 && all_aligned_16(x, out);
  if (vectors) {
    copy.operator()<uint4>();
  } else if (dtype == DType::fp32) {
    copy.operator()<std::uint32_t>();
  } else {
    copy.operator()<std::uint16_t>();
  }
}

}  // namespace fusebench::kernels::cuda
