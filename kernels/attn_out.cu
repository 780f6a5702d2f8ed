// out[m, n] = a[m, k] · weight[n, k]ᵀ + residual[m, n]: the attention's output product and the MLP's down product. The
// residual is added in fp32, so that the result is rounded once; out may be the residual itself.
#include "kernels/fused_cuda.h"
#include "kernels/product.cuh"

namespace fusebench::kernels::cuda {
namespace {

/// `Vectors` promises aligned bases and n % 8 == 0; otherwise `vectors` says it.
template <typename T, bool Vectors>
struct ResidualEpilogue {
  using Column = std::int64_t;
  using Row = std::int64_t;  ///< its first element
  using Operands = Pack<T, 8>;

  using ChunksAhead = std::integral_constant<int, 8>;

  const T* residual;
  T* out;
  std::int64_t n;
  bool vectors;

  __device__ Column column(std::int64_t col) const { return col; }
  __device__ Row row(std::int64_t row) const { return row * n; }

  __device__ __forceinline__ Operands fetch(Row row, Column col) const {
    const T* source = residual + row + col;
    if (Vectors || vectors) return load_pack<8>(source);
    Operands operands{};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (col + i < n) operands.values[i] = source[i];
    }
    return operands;
  }

  __device__ __forceinline__ void store(Row row, Column col, const Operands& operands, const float (&values)[8]) const {
    float sums[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = values[i] + operands[i];
    store_elements(out + row + col, sums, Vectors || vectors, n - col);
  }
};

}  // namespace

void product_residual(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* weight,
                      const void* residual, void* out, std::int64_t m, std::int64_t n, std::int64_t k) {
  dispatch_half(dtype, [&]<typename T>() {
    const bool vectors = n % 8 == 0 && is_aligned_16(residual) && is_aligned_16(out);
    launch_product(
        exec, kernel, static_cast<const T*>(a), static_cast<const T*>(weight), m, n, k, vectors, [&]<bool Vectors>() {
          return ResidualEpilogue<T, Vectors>{static_cast<const T*>(residual), static_cast<T*>(out), n, vectors};
        });
  });
}

}  // namespace fusebench::kernels::cuda
