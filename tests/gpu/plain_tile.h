// The simplest epilogue of the Hopper product: its results, rounded.
#pragma once

#include "kernels/gemm_hopper.cuh"

namespace fusebench::testing {

// Not in a namespace without a name: compilers for other devices than sm_90a see no use of it.
struct PlainTile {
  using Column = int;
  struct Row {
    int row;
  };
  struct Operands {};
  enum { kChunks = 1, kEarly = 0, kOutputs = 8 };

  CUtensorMap c;

  __device__ Column column(int col) const { return col; }
  __device__ Row row(int row) const { return {row}; }
  __device__ Operands fetch(Row, Column) const { return {}; }
  template <typename Stage>
  __device__ void put(Row, Column, Operands, const float (&values)[8], int own, const Stage& stage) const {
    stage(own, values);
  }
  __device__ kernels::cuda::BoxTarget target(int row, int col) const { return {c, row, col}; }
};

}  // namespace fusebench::testing
