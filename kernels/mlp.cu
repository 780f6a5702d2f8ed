// y[m, hidden] = silu(a · gateᵀ) · (a · upᵀ) in one product: gate's and up's rows alternate in the prepared weight, so
// that both values of a hidden unit are neighbours in a row of the product.
#include "kernels/deferred_norm.cuh"
#include "kernels/fused_cuda.h"
#include "kernels/product.cuh"
#include "kernels/silu.cuh"

namespace fusebench::kernels::cuda {
namespace {

/// `Vectors` promises an aligned y and hidden % 4 == 0; otherwise `vectors` says it.
template <typename T, bool Vectors>
struct SwigluEpilogue {
  using Column = std::int64_t;  ///< hidden unit of the first pair
  struct Row {
    int row;
    float factor;
  };
  struct Operands {};

  using ChunksAhead = std::integral_constant<int, 1>;

  T* y;
  std::int64_t hidden;
  bool vectors;
  DeferredNorm norm = {};  ///< with Vectors alone
  int dim = 1;

  __device__ Column column(std::int64_t col) const { return col / 2; }
  __device__ Row row(std::int64_t row) const {
    const auto small = static_cast<int>(row);
    return {small, Vectors ? row_factor(norm, small, dim) : 1.0f};
  }
  __device__ Operands fetch(const Row&, Column) const { return {}; }

  __device__ __forceinline__ void store(const Row& row, Column unit, Operands, const float (&values)[8]) const {
    float gated[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float gate = Vectors ? values[2 * i] * row.factor : values[2 * i];
      const float up = Vectors ? values[2 * i + 1] * row.factor : values[2 * i + 1];
      gated[i] = silu<T>(gate) * up;
    }
    store_elements(y + row.row * hidden + unit, gated, Vectors || vectors, hidden - unit);
  }
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

void product_swiglu(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* prepared_weight,
                    DeferredNorm norm, void* y, std::int64_t m, std::int64_t hidden, std::int64_t k) {
  require_hopper_for(norm, kernel);
  require_32_bits({m, k});
  dispatch_half(dtype, [&]<typename T>() {
    const bool vectors = hidden % 4 == 0 && is_aligned_16(y);
    launch_product(exec, kernel, static_cast<const T*>(a), static_cast<const T*>(prepared_weight), m, 2 * hidden, k,
                   vectors, [&]<bool Vectors>() {
                     return SwigluEpilogue<T, Vectors>{static_cast<T*>(y), hidden, vectors, norm, static_cast<int>(k)};
                   });
  });
}

void product_swiglu(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* prepared_weight,
                    void* y, std::int64_t m, std::int64_t hidden, std::int64_t k) {
  product_swiglu(exec, kernel, dtype, a, prepared_weight, DeferredNorm{}, y, m, hidden, k);
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
