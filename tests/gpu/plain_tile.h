// The simplest epilogue of the Hopper product: its results, rounded.
#pragma once

#include "kernels/gemm_hopper.cuh"

namespace fusebench::testing {

// Not in a namespace without a name: compilers for other devices than sm_90a see no use of it.
struct PlainTile {
  using Column = int;
  using Row = int;
  struct Operands {};
  enum { kFetchedChunks = 1, kFetchesEarly = false, kOutputs = 8 };

  CUtensorMap c;

  __device__ Column column(int col) const { return col; }
  __device__ Row row(int row) const { return row; }
  __device__ Operands fetch(Row, Column) const { return {}; }
  template <typename Place>
  __device__ void put(Row, Column, Operands, const float (&values)[8], int own, const Place& place) const {
    place(own, values);
  }
  __device__ kernels::cuda::BoxTarget target(int row, int col) const { return {c, row, col}; }
};

/// What launch_hopper takes of it.
inline auto plain_tile_of(DType dtype, void* c, std::int64_t m, std::int64_t n) {
  return [=](int box_rows) { return PlainTile{kernels::cuda::output_map(dtype, c, m, n, box_rows)}; };
}

}  // namespace fusebench::testing
