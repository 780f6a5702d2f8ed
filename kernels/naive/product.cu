// c[c_rows(i), :] = a[m, k] · b[n, k]ᵀ: one block a 64 x 64 tile, fp32 FMA (see tile.cuh).
#include "kernels/naive/steps.h"
#include "kernels/naive/tile.cuh"

namespace fusebench::kernels::naive {
namespace {

template <class T>
__global__ void __launch_bounds__(tile_threads)
    product_kernel(const T* a, const T* b, T* c, Tiles tiles, std::int64_t k, RowMap c_rows) {
  const std::int64_t n = tiles.cols;
  for (std::int64_t tile = blockIdx.x; tile < tiles.total(); tile += gridDim.x) {
    multiply_tile<Contiguous::depth, ZeroOfA::multiplies>(
        tiles.row0(tile), tiles.col0(tile), tiles.rows, n, k,
        [=](std::int64_t row, std::int64_t d) { return load(a, row * k + d); },
        [=](std::int64_t col, std::int64_t d) { return load(b, col * k + d); },
        [=](std::int64_t row, std::int64_t col, float sum) { store(c, c_rows(row) * n + col, sum); });
  }
}

}  // namespace

void product(const Exec& exec, DType dtype, const void* a, const void* b, void* c, std::int64_t m, std::int64_t n,
             std::int64_t k, RowMap c_rows) {
  const Tiles tiles{.count = 1, .rows = m, .cols = n};
  dispatch(dtype, [&]<class T>() {
    product_kernel<<<grid_for(tiles.total(), 1), tile_threads, 0, stream_of(exec)>>>(
        static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), tiles, k, c_rows);
    FUSEBENCH_LAUNCH_CHECK(product_kernel);
  });
}

}  // namespace fusebench::kernels::naive
