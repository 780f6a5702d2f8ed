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

/// The same where the operands change places: c's box of 64 columns and the tile's staged tokens.
struct PlainTokens {
  struct Operands {};
  CUtensorMap c;
};

template <typename Tile>
PlainTokens plain_tokens(DType dtype, void* c, std::int64_t tokens, std::int64_t cols) {
  using kernels::cuda::TensorDimension;
  return {kernels::cuda::tensor_map(
      dtype, c, std::array{TensorDimension{cols, 1, 64}, TensorDimension{tokens, cols, Tile::staged_tokens}})};
}

}  // namespace fusebench::testing
