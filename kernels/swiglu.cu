// swiglu: y = silu(g) · u. g and u are [rows, cols] with rows `stride` apart, y is dense; dense g and u count as one
// row.
#include "kernels/fused_cuda.h"
#include "kernels/pack.cuh"
#include "kernels/silu.cuh"

namespace fusebench::kernels::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int packs_per_thread = 2;

template <typename T, int N>
__device__ __forceinline__ Pack<T, N> gated(const Pack<T, N>& g, const Pack<T, N>& u) {
  Pack<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.set(i, silu<T>(g[i]) * u[i]);
  return y;
}

/// A block takes packs_per_thread · block_threads packs of y at a time, the threads side by side.
template <typename T, int N>
__global__ void __launch_bounds__(block_threads)
    gate_rows(const T* g, const T* u, std::int64_t stride, T* y, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t block_packs = packs_per_thread * block_threads;
  const std::int64_t row_packs = cols / N, packs = rows * row_packs;
  for (std::int64_t first = blockIdx.x * block_packs + threadIdx.x; first < packs; first += gridDim.x * block_packs) {
    Pack<T, N> gates[packs_per_thread], ups[packs_per_thread];
#pragma unroll
    for (int i = 0; i < packs_per_thread; ++i) {
      const std::int64_t pack = first + i * block_threads;
      if (pack >= packs) break;
      const std::int64_t row = rows == 1 ? 0 : pack / row_packs;
      const std::int64_t source = row * stride + (pack - row * row_packs) * N;
      gates[i] = load_pack_once<N>(g + source);
      ups[i] = load_pack_once<N>(u + source);
    }
#pragma unroll
    for (int i = 0; i < packs_per_thread; ++i) {
      const std::int64_t pack = first + i * block_threads;
      if (pack >= packs) break;
      store_pack(y + pack * N, gated(gates[i], ups[i]));
    }
  }
}

template <typename T, int N>
void launch(const Exec& exec, const T* g, const T* u, std::int64_t stride, T* y, std::int64_t rows, std::int64_t cols) {
  const unsigned blocks = grid_for(rows * (cols / N), packs_per_thread * block_threads);
  gate_rows<T, N><<<blocks, block_threads, 0, stream_of(exec)>>>(g, u, stride, y, rows, cols);
  FUSEBENCH_LAUNCH_CHECK(gate_rows);
}

}  // namespace

void swiglu(const Exec& exec, DType dtype, const void* g, const void* u, std::int64_t in_stride, void* y,
            std::int64_t rows, std::int64_t cols) {
  if (in_stride == cols) return swiglu(exec, dtype, g, u, y, rows * cols);
  dispatch(dtype, [&]<typename T>() {
    const bool vectors = cols % full_pack<T> == 0 && in_stride % full_pack<T> == 0 && all_aligned_16(g, u, y);
    dispatch_pack<T>(vectors, [&]<int N>() {
      launch<T, N>(exec, static_cast<const T*>(g), static_cast<const T*>(u), in_stride, static_cast<T*>(y), rows, cols);
    });
  });
}

void swiglu(const Exec& exec, DType dtype, const void* g, const void* u, void* y, std::int64_t n) {
  dispatch(dtype, [&]<typename T>() {
    const std::int64_t in_packs = all_aligned_16(g, u, y) ? n / full_pack<T> * full_pack<T> : 0;
    const auto* gates = static_cast<const T*>(g);
    const auto* ups = static_cast<const T*>(u);
    auto* out = static_cast<T*>(y);
    if (in_packs > 0) launch<T, full_pack<T>>(exec, gates, ups, in_packs, out, 1, in_packs);
    if (in_packs < n) {
      launch<T, 1>(exec, gates + in_packs, ups + in_packs, n - in_packs, out + in_packs, 1, n - in_packs);
    }
  });
}

}  // namespace fusebench::kernels::cuda
