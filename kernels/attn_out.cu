// out[m, n] = a[m, k] · weight[n, k]ᵀ + residual[m, n]: the attention's output product and the MLP's down product. The
// residual is added in fp32, so that the result is rounded once; out may be the residual itself. Sums of squares of the
// result, for a norm that is deferred, come along.
#include "kernels/fused_cuda.h"
#include "kernels/product.cuh"

namespace fusebench::kernels::cuda {
namespace {

/// `Vectors` promises aligned bases and n % 8 == 0; otherwise `vectors` says it.
template <typename T, bool Vectors, bool Squares>
struct ResidualEpilogue {
  using Column = std::int64_t;
  struct Row {
    int row;
  };
  using Operands = Pack<T, 8>;

  using ChunksAhead = std::integral_constant<int, 8>;

  const T* residual;
  T* out;
  std::int64_t n;
  bool vectors;
  float* squares;  ///< with Squares alone: of the stored values, [m, ceil(n / kSquaresColumns)]

  __device__ Column column(std::int64_t col) const { return col; }
  __device__ Row row(std::int64_t row) const { return {static_cast<int>(row)}; }

  __device__ __forceinline__ Operands fetch(Row row, Column col) const {
    const T* source = residual + row.row * n + col;
    if (Vectors || vectors) return load_pack<8>(source);
    Operands operands{};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (col + i < n) operands.values[i] = source[i];
    }
    return operands;
  }

  __device__ __forceinline__ float store(Row row, Column col, const Operands& operands,
                                         const float (&values)[8]) const {
    float sums[8], squared = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sums[i] = values[i] + operands[i];
      if constexpr (Squares) {
        const float stored = to_float(from_float<T>(sums[i]));
        squared = fmaf(stored, stored, squared);
      }
    }
    store_elements(out + row.row * n + col, sums, Vectors || vectors, n - col);
    return squared;
  }

  __device__ __forceinline__ void store_squares(Row row, int part, float sum) const requires Squares {
    squares[row.row * ceil_div<std::int64_t>(n, kSquaresColumns) + part] = sum;
  }
};

template <bool Squares>
void launch(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* weight, const void* residual,
            void* out, float* squares, std::int64_t m, std::int64_t n, std::int64_t k) {
  require_32_bits({m, n});
  dispatch_half(dtype, [&]<typename T>() {
    const bool vectors = n % 8 == 0 && is_aligned_16(residual) && is_aligned_16(out);
    launch_product(
        exec, kernel, static_cast<const T*>(a), static_cast<const T*>(weight), m, n, k, vectors, [&]<bool Vectors>() {
          return ResidualEpilogue < T, Vectors,
                 Squares && Vectors > {static_cast<const T*>(residual), static_cast<T*>(out), n, vectors, squares};
        });
  });
}

}  // namespace

void product_residual(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* weight,
                      const void* residual, void* out, std::int64_t m, std::int64_t n, std::int64_t k) {
  launch<false>(exec, kernel, dtype, a, weight, residual, out, nullptr, m, n, k);
}

void product_residual(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* weight,
                      const void* residual, void* out, float* squares, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (kernel != GemmKernel::hopper) throw std::invalid_argument("the Hopper product alone sums squares");
  launch<true>(exec, kernel, dtype, a, weight, residual, out, squares, m, n, k);
}

}  // namespace fusebench::kernels::cuda
