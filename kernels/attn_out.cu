// out[m, n] = a[m, k] · weight[n, k]ᵀ + residual[m, n]: the attention's output product and the MLP's down product. The
// residual is added in fp32, so that the result is rounded once; out may be the residual itself. Sums of squares of the
// result, for a norm that is deferred, come along.
#include "kernels/fused_cuda.h"
#include "kernels/product.cuh"

namespace fusebench::kernels::cuda {
namespace {

/// `vectors`: bases are aligned and n % 8 == 0.
template <typename T>
struct ResidualEpilogue {
  using Column = std::int64_t;
  using Row = std::int64_t;  ///< its first element
  using Operands = Pack<T, 8>;

  const T* residual;
  T* out;
  std::int64_t n;
  bool vectors;

  __device__ Column column(std::int64_t col) const { return col; }
  __device__ Row row(std::int64_t row) const { return row * n; }

  __device__ __forceinline__ Operands fetch(Row row, Column col) const {
    const T* source = residual + row + col;
    if (vectors) return load_pack<8>(source);
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
    store_elements(out + row + col, sums, vectors, n - col);
  }
};

/// The Hopper product's; vectors alone.
template <typename T>
struct ResidualTile {
  using Column = int;
  using Row = int;
  using Operands = Pack<T, 8>;
  enum { kFetchedChunks = 4, kFetchesEarly = true, kOutputs = 8 };

  CUtensorMap out;
  const T* residual;
  std::int64_t n;

  __device__ Column column(int col) const { return col; }
  __device__ Row row(int row) const { return row; }
  __device__ __forceinline__ void touch(int row, int first_col, int end_col) const {
    hopper::touch_by_quad(residual + row * n + first_col, end_col - first_col);
  }
  __device__ __forceinline__ Operands fetch(Row row, Column col) const {
    return load_pack<8>(residual + row * n + col);
  }
  template <typename Place>
  __device__ __forceinline__ void put(Row, Column, const Operands& operands, const float (&values)[8], int own,
                                      const Place& place) const {
    float sums[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = values[i] + operands[i];
    place(own, sums);
  }
  __device__ BoxTarget target(int row, int col) const { return {out, row, col}; }
};

/// The same with the sums of squares of what is stored, squares [m, parts].
template <typename T>
struct ResidualSquaresTile : ResidualTile<T> {
  using typename ResidualTile<T>::Column, typename ResidualTile<T>::Row, typename ResidualTile<T>::Operands;

  float* squares;
  int parts;  ///< ceil(n / kSquaresColumns)

  template <typename Place>
  __device__ __forceinline__ float put(Row row, Column col, const Operands& operands, const float (&values)[8], int own,
                                       const Place& place) const {
    float sum = 0.0f;
    ResidualTile<T>::put(row, col, operands, values, own, [&](int at, const float(&results)[8]) {
      place(at, results);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float stored = to_float(from_float<T>(results[i]));
        sum = fmaf(stored, stored, sum);
      }
    });
    return sum;
  }
  __device__ __forceinline__ void store_squares(Row row, int part, float sum) const {
    squares[std::int64_t{row} * parts + part] = sum;
  }
};

}  // namespace

void product_residual(const Exec& exec, ProductKernel product, DType dtype, const void* a, const void* weight,
                      const void* residual, void* out, std::int64_t m, std::int64_t n, std::int64_t k, float* squares) {
  if (squares != nullptr && product.kernel != GemmKernel::hopper) {
    throw std::invalid_argument("the Hopper product alone sums squares");
  }
  dispatch_half(dtype, [&]<typename T>() {
    const T* rows = static_cast<const T*>(a);
    const T* weights = static_cast<const T*>(weight);
    const T* added = static_cast<const T*>(residual);
    if (product.kernel != GemmKernel::hopper) {
      const bool vectors = n % 8 == 0 && is_aligned_16(residual) && is_aligned_16(out);
      return launch_product(exec, product.kernel, rows, weights, m, n, k,
                            ResidualEpilogue<T>{added, static_cast<T*>(out), n, vectors});
    }
    if (!is_aligned_16(residual)) throw std::invalid_argument("the Hopper product reads an aligned residual alone");
    const auto tile = [&](int box_rows) { return ResidualTile<T>{output_map(dtype, out, m, n, box_rows), added, n}; };
    if (squares == nullptr) return launch_hopper(exec, rows, weights, m, n, k, tile, product.part_sums);
    const auto parts = static_cast<int>(ceil_div(n, kSquaresColumns));
    const auto squares_tile = [&](int box_rows) { return ResidualSquaresTile<T>{tile(box_rows), squares, parts}; };
    launch_hopper(exec, rows, weights, m, n, k, squares_tile, product.part_sums);
  });
}

}  // namespace fusebench::kernels::cuda
