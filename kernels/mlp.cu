// y[m, hidden] = silu(a · gateᵀ) · (a · upᵀ) in one product: gate's and up's rows alternate in the prepared weight, so
// that both values of a hidden unit are neighbours in a row of the product.
#include "kernels/deferred_norm.cuh"
#include "kernels/fused_cuda.h"
#include "kernels/product.cuh"
#include "kernels/silu.cuh"

namespace fusebench::kernels::cuda {
namespace {

/// Four hidden units of four pairs, each value times `factor`.
template <typename T>
__device__ __forceinline__ void gate(const float (&pairs)[8], float factor, float (&gated)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) gated[i] = silu<T>(pairs[2 * i] * factor) * (pairs[2 * i + 1] * factor);
}

/// `vectors`: y is aligned and hidden % 4 == 0.
template <typename T>
struct SwigluEpilogue {
  using Column = std::int64_t;  ///< hidden unit of the first pair
  using Row = std::int64_t;     ///< its first element
  struct Operands {};

  T* y;
  std::int64_t hidden;
  bool vectors;

  __device__ Column column(std::int64_t col) const { return col / 2; }
  __device__ Row row(std::int64_t row) const { return row * hidden; }
  __device__ Operands fetch(Row, Column) const { return {}; }

  __device__ __forceinline__ void store(Row row, Column unit, Operands, const float (&values)[8]) const {
    float gated[4];
    gate<T>(values, 1.0f, gated);
    store_elements(y + row + unit, gated, vectors, hidden - unit);
  }
};

/// The Hopper product's; vectors alone.
template <typename T>
struct SwigluTile {
  using Column = int;
  using Row = float;  ///< its factor
  struct Operands {};
  enum { kFetchedChunks = 1, kFetchesEarly = false, kOutputs = 4 };

  CUtensorMap y;
  DeferredNorm norm;
  int dim;
  bool streams;  ///< y is larger than L2

  __device__ Column column(int col) const { return col; }
  __device__ Row row(int row) const { return row_factor(norm, row, dim); }
  __device__ void touch(int row, int, int) const { touch_row_factor(norm, row); }
  __device__ Operands fetch(Row, Column) const { return {}; }
  template <typename Place>
  __device__ __forceinline__ void put(Row row, Column, Operands, const float (&values)[8], int own,
                                      const Place& place) const {
    float gated[4];
    gate<T>(values, row, gated);
    place(own, gated);
  }
  __device__ BoxTarget target(int row, int col) const { return {y, row, col / 2}; }
};

/// Row 2i of prepared [2 · hidden, k] is gate's row i, row 2i + 1 is up's.
template <typename T>
__global__ void interleave_rows(const T* gate, const T* up, T* prepared, std::int64_t hidden, std::int64_t k) {
  for (std::int64_t i = grid_thread(); i < 2 * hidden * k; i += grid_threads()) {
    const std::int64_t row = i / k, col = i % k;
    prepared[i] = (row % 2 == 0 ? gate : up)[row / 2 * k + col];
  }
}

}  // namespace

void product_swiglu(const Exec& exec, ProductKernel product, DType dtype, const void* a, const void* prepared_weight,
                    void* y, std::int64_t m, std::int64_t hidden, std::int64_t k, DeferredNorm norm) {
  dispatch_half(dtype, [&]<typename T>() {
    const T* rows = static_cast<const T*>(a);
    const T* weights = static_cast<const T*>(prepared_weight);
    if (product.kernel == GemmKernel::hopper) {
      const bool streams = m * hidden * bytes_of(dtype) > hopper_device().l2_bytes;
      const auto tile = [&](int box_rows) {
        return SwigluTile<T>{output_map(dtype, y, m, hidden, box_rows), norm, static_cast<int>(k), streams};
      };
      return launch_hopper(exec, rows, weights, m, 2 * hidden, k, tile, product.part_sums);
    }
    require_no(norm);
    const bool vectors = hidden % 4 == 0 && is_aligned_16(y);
    launch_product(exec, product.kernel, rows, weights, m, 2 * hidden, k,
                   SwigluEpilogue<T>{static_cast<T*>(y), hidden, vectors});
  });
}

void prepare_gate_up(const Exec& exec, DType dtype, const void* gate, const void* up, void* prepared,
                     std::int64_t hidden, std::int64_t k) {
  dispatch_half(dtype, [&]<typename T>() {
    interleave_rows<<<grid_for(2 * hidden * k, 256), 256, 0, stream_of(exec)>>>(
        static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<T*>(prepared), hidden, k);
    FUSEBENCH_LAUNCH_CHECK(interleave_rows);
  });
}

}  // namespace fusebench::kernels::cuda
