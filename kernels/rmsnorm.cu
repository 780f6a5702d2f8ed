// rmsnorm: y = x / sqrt(mean(x²) + eps) · weight, row by row, and add_rmsnorm, which first stores h = x + r and then
// normalises h as stored. x, r, h, y are [rows, cols], weight [cols], dense. One pass: x (and r) are read once, h and y
// written once; the weight comes from L2 for every row.
//
// Statistics are in fp32: squares overflow from |x| = 1.8e19 on, which bf16 and fp32 can hold but fp16 cannot.
#include "kernels/fused_cuda.h"
#include "kernels/pack.cuh"
#include "kernels/row.cuh"

namespace fusebench::kernels::cuda {
namespace {

template <bool Add>
constexpr int max_chunks = Add ? 4 : 8;  ///< what fits 128 registers

template <typename T>
struct Arguments {
  const T* x;
  const T* r;  ///< read by add_rmsnorm alone, as h is written
  const T* weight;
  T* h;
  T* y;
  float eps;
  std::int64_t rows;
  std::int64_t cols;
};

template <typename T, int N>
__device__ __forceinline__ float square_sum(const Pack<T, N>& pack) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += pack[i] * pack[i];
  return sum;
}

template <typename T, int N>
__device__ __forceinline__ Pack<T, N> sum_of(const Pack<T, N>& a, const Pack<T, N>& b) {
  Pack<T, N> sum;
#pragma unroll
  for (int i = 0; i < N; ++i) sum.set(i, a[i] + b[i]);
  return sum;
}

template <typename T, int N>
__device__ __forceinline__ Pack<T, N> scaled(const Pack<T, N>& x, float rstd, const Pack<T, N>& weight) {
  Pack<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.set(i, x[i] * rstd * weight[i]);
  return y;
}

/// The row stays in registers. `Full`: a block has one row, which is Chunks packs of each thread; looking for the row's
/// end would keep loads from being in flight together.
template <typename T, int N, int Chunks, bool Add, bool Full>
__global__ void __launch_bounds__(max_row_threads) rmsnorm_rows(const Arguments<T> args) {
  constexpr bool early_weight = Chunks <= 4;  // in flight beside x; with longer rows registers would run out
  const int packs = static_cast<int>(args.cols / N);
  const auto offset = [](int chunk) { return static_cast<int>(threadIdx.x + chunk * blockDim.x); };
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.y; first < args.rows; first += step) {
    const std::int64_t row = first + threadIdx.y;
    const std::int64_t start = row * args.cols;
    const int row_packs = row < args.rows ? packs : 0;
    const auto is_inside = [&](int chunk) { return Full || offset(chunk) < row_packs; };

    Pack<T, N> x[Chunks], weight[Chunks];
    if constexpr (Add) {
      Pack<T, N> r[Chunks];
#pragma unroll
      for (int i = 0; i < Chunks; ++i) {
        if (is_inside(i)) {
          x[i] = load_pack_once<N>(args.x + start + offset(i) * N);
          r[i] = load_pack_once<N>(args.r + start + offset(i) * N);
        }
      }
#pragma unroll
      for (int i = 0; i < Chunks; ++i) {
        if (is_inside(i)) {
          x[i] = sum_of(x[i], r[i]);
          store_pack(args.h + start + offset(i) * N, x[i]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < Chunks; ++i) {
        if (is_inside(i)) x[i] = load_pack_once<N>(args.x + start + offset(i) * N);
      }
    }
    if constexpr (early_weight) {
#pragma unroll
      for (int i = 0; i < Chunks; ++i) {
        if (is_inside(i)) weight[i] = load_pack<N>(args.weight + offset(i) * N);
      }
    }

    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
      if (is_inside(i)) squares += square_sum(x[i]);
    }
    const float rstd = rstd_of(row_sum(squares), args.cols, args.eps);

#pragma unroll
    for (int i = 0; i < Chunks; ++i) {
      if (is_inside(i)) {
        if constexpr (!early_weight) weight[i] = load_pack<N>(args.weight + offset(i) * N);
        store_pack(args.y + start + offset(i) * N, scaled(x[i], rstd, weight[i]));
      }
    }
  }
}

/// Rows of any length: a block a row, which it reads twice, the second time mostly from L2.
template <typename T, int N, bool Add>
__global__ void __launch_bounds__(max_row_threads) rmsnorm_long_rows(const Arguments<T> args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const std::int64_t start = row * args.cols;
    float squares = 0.0f;
    for (std::int64_t col = threadIdx.x * N; col < args.cols; col += max_row_threads * N) {
      Pack<T, N> x = load_pack<N>(args.x + start + col);
      if constexpr (Add) {
        x = sum_of(x, load_pack<N>(args.r + start + col));
        store_pack(args.h + start + col, x);
      }
      squares += square_sum(x);
    }
    const float rstd = rstd_of(row_sum(squares), args.cols, args.eps);
    for (std::int64_t col = threadIdx.x * N; col < args.cols; col += max_row_threads * N) {
      const Pack<T, N> x = load_pack<N>((Add ? args.h : args.x) + start + col);  // h: what this thread wrote
      store_pack(args.y + start + col, scaled(x, rstd, load_pack<N>(args.weight + col)));
    }
  }
}

template <bool Add, typename T>
void launch(const Exec& exec, const Arguments<T>& args) {
  const bool vectors = args.cols % full_pack<T> == 0 && all_aligned_16(args.x, args.r, args.weight, args.h, args.y);
  dispatch_pack<T>(vectors, [&]<int N>() {
    const RowLaunch rows = row_launch(args.rows, args.cols / N, max_chunks<Add>);
    if (rows.chunks == 0) {
      rmsnorm_long_rows<T, N, Add><<<rows.grid, rows.block, 0, stream_of(exec)>>>(args);
    } else {
      dispatch_chunks<max_chunks<Add>>(rows.chunks, [&]<int Chunks>() {
        const bool full = rows.block.y == 1 && args.cols == std::int64_t{N} * Chunks * rows.block.x;
        auto* kernel = full ? rmsnorm_rows<T, N, Chunks, Add, true> : rmsnorm_rows<T, N, Chunks, Add, false>;
        kernel<<<rows.grid, rows.block, 0, stream_of(exec)>>>(args);
      });
    }
  });
  FUSEBENCH_LAUNCH_CHECK(rmsnorm);
}

}  // namespace

void rmsnorm(const Exec& exec, DType dtype, const void* x, const void* weight, float eps, void* y, std::int64_t rows,
             std::int64_t cols) {
  dispatch(dtype, [&]<typename T>() {
    launch<false>(exec, Arguments<T>{static_cast<const T*>(x), nullptr, static_cast<const T*>(weight), nullptr,
                                     static_cast<T*>(y), eps, rows, cols});
  });
}

void add_rmsnorm(const Exec& exec, DType dtype, const void* x, const void* r, const void* weight, float eps, void* h,
                 void* y, std::int64_t rows, std::int64_t cols) {
  dispatch(dtype, [&]<typename T>() {
    launch<true>(exec, Arguments<T>{static_cast<const T*>(x), static_cast<const T*>(r), static_cast<const T*>(weight),
                                    static_cast<T*>(h), static_cast<T*>(y), eps, rows, cols});
  });
}

}  // namespace fusebench::kernels::cuda
