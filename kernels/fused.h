// The `fused` variant's kernels: as few passes over device memory as the mathematics allows. Tensors are dense and
// row-major in `dtype` unless typed float; accumulation and statistics are in fp32.
//
// Products read weights that a preparation step has reordered so that the two values an epilogue needs together lie
// in neighbouring columns of the product: gate and up of the same hidden unit, or the two elements of a RoPE pair.
//
// GemmKernel::hopper begins to read its weight while kernels before it in the stream still run. What writes the weight
// has to have ended: synchronise once after preparation.
#pragma once

#include "kernels/types.h"

namespace fusebench::kernels {

/// Which implementation a launch takes. Chosen in one place, `variants/choose.h`, by device and shape.
enum class GemmKernel : std::uint8_t {
  cpu,
  portable,            ///< mma.sync with a cp.async pipeline: sm_80 and later, 16-byte aligned rows (k % 8 == 0)
  portable_unaligned,  ///< the same arithmetic with element loads: any base, any k
  hopper,              ///< wgmma fed by TMA: sm_90a, 16-byte aligned rows, n % 32 == 0, extents up to kHopperExtent
};
enum class AttentionKernel : std::uint8_t {
  cpu,
  portable,            ///< mma.sync, online softmax, cp.async: 16-byte aligned rows of all tensors, head_dim <= 256
  portable_unaligned,  ///< the same with element loads: any base, any head_dim <= 256
  hopper,              ///< wgmma fed by TMA: sm_90a, 16-byte aligned rows, head_dim 64 or 128
};

/// A product's kernel, and what it may use besides operands.
struct ProductKernel {
  GemmKernel kernel;
  void* part_sums = nullptr;  ///< part_sums_bytes on the device, for GemmKernel::hopper: without, it does not split k

  ProductKernel(GemmKernel of, void* sums = nullptr) : kernel(of), part_sums(sums) {}  // NOLINT: a kernel needs no more
};

constexpr std::int64_t kPartRows = 128, kPartColumns = 256;  ///< of the sums that a block may leave there

/// Zero where GemmKernel::hopper has too many tiles to split k.
constexpr std::int64_t part_sums_bytes(std::int64_t multiprocessors, std::int64_t m, std::int64_t n) {
  const std::int64_t tiles = ceil_div(m, kPartRows) * ceil_div(n, kPartColumns);
  return 2 * tiles <= multiprocessors ? multiprocessors * kPartRows * kPartColumns * std::int64_t{sizeof(float)} : 0;
}

/// Coordinates run on to the end of the last tiles, and fit in 32 bits.
constexpr std::int64_t kHopperExtent = INT32_MAX - 512;

/// Where a QKV product's columns go: q [rows, heads, head_dim], k and v [.., kv_heads, head_dim] at kv_rows.
struct QkvShape {
  std::int64_t rows = 1;  ///< batch · seq
  std::int64_t dim = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t seq = 1;  ///< row r has position r % seq in cos and sin
  RowMap kv_rows;
  Pairing pairing = Pairing::interleaved;

#ifdef __CUDACC__
  __host__ __device__
#endif
      constexpr std::int64_t
      columns() const {
    return (heads + 2 * kv_heads) * head_dim;
  }
};

/// What GemmKernel::hopper's rotated heads need: it stores boxes of 32 columns, two to 64 columns of a head, and of up
/// to 64 rows.
constexpr bool hopper_takes(const QkvShape& shape) {
  const bool rows_are_neighbours = shape.rows == shape.seq || shape.seq % 64 == 0 ||
                                   (shape.kv_rows.capacity == shape.seq && shape.kv_rows.past == 0);
  const bool positions_fit = shape.seq * shape.head_dim <= INT32_MAX && shape.kv_rows(shape.rows) <= INT32_MAX;
  return (shape.head_dim == 64 || shape.head_dim == 128) && rows_are_neighbours && positions_fit;
}

constexpr std::int64_t kSquaresColumns = 64;  ///< of a row in one sum of product_residual; divides all tiles

/// An RMSNorm in front of a product that is applied behind it (kernels/deferred_norm.h), by GemmKernel::hopper alone. A
/// row's factor is 1 / (fold · sqrt(sum of the row's squares / dim + eps)).
struct DeferredNorm {
  const float* squares = nullptr;  ///< [rows, parts], to be added; null: rows keep what the product gives
  std::int64_t parts = 0;
  float eps = 0;
  const float* fold = nullptr;  ///< fold_norm's
};

struct Fused {
  // y = x / sqrt(mean(x²) + eps) · weight: one pass, the row stays on chip
  void (*rmsnorm)(const Exec&, DType, const void* x, const void* weight, float eps, void* y, std::int64_t rows,
                  std::int64_t cols);

  // h = x + r, rounded to dtype and stored; y = rmsnorm(the stored h)
  void (*add_rmsnorm)(const Exec&, DType, const void* x, const void* r, const void* weight, float eps, void* h, void* y,
                      std::int64_t rows, std::int64_t cols);

  // q and k rotated in one launch; q [rows, heads, head_dim], k [rows, kv_heads, head_dim]; cos, sin [seq, head_dim/2]
  void (*rope)(const Exec&, DType, Pairing, const void* q, const void* k, const float* cos, const float* sin,
               void* q_out, void* k_out, std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
               std::int64_t head_dim, std::int64_t seq);

  // y = silu(g) · u over n elements; silu(-inf) = 0
  void (*swiglu)(const Exec&, DType, const void* g, const void* u, void* y, std::int64_t n);

  // out = softmax(q·kᵀ / sqrt(head_dim) + mask)·v with online softmax; scores never leave the chip
  void (*attention)(const Exec&, AttentionKernel, DType, const void* q, const void* k, const void* v, void* out,
                    AttentionShape);

  // out[m, n] = a[m, k] · weight[n, k]ᵀ + residual[m, n]; with GemmKernel::hopper also, unless it is null,
  // squares[m, ceil(n / kSquaresColumns)]: sums of squares of out as it is stored, each over kSquaresColumns columns
  void (*product_residual)(const Exec&, ProductKernel, DType, const void* a, const void* weight, const void* residual,
                           void* out, std::int64_t m, std::int64_t n, std::int64_t k, float* squares);

  // q, k, v = split(a[rows, dim] · weight[columns, dim]ᵀ), q and k rotated, k and v stored at kv_rows; prepared_weight
  // is prepare_qkv's for the same GemmKernel, and with another's the result is wrong
  void (*product_rope)(const Exec&, ProductKernel, DType, const void* a, const void* prepared_weight, const float* cos,
                       const float* sin, void* q, void* k, void* v, QkvShape, DeferredNorm);

  // y[m, hidden] = silu(a · gateᵀ) · (a · upᵀ)
  void (*product_swiglu)(const Exec&, ProductKernel, DType, const void* a, const void* prepared_weight, void* y,
                         std::int64_t m, std::int64_t hidden, std::int64_t k, DeferredNorm);

  // [columns, dim]: rows of wq, wk, wv one after the other; with Pairing::half each q and k head's rows are reordered
  // to 0, d/2, 1, d/2 + 1, ... so that a pair is neighbours. For GemmKernel::hopper with head_dim 128 the first 64 rows
  // of every q and k head, so ordered, come before their second 64: neighbouring 64 columns then share cos and sin
  void (*prepare_qkv)(const Exec&, GemmKernel, DType, const void* wq, const void* wk, const void* wv, void* prepared,
                      QkvShape);

  // [2·hidden, k]: row 2i is gate's row i, row 2i + 1 is up's
  void (*prepare_gate_up)(const Exec&, DType, const void* gate, const void* up, void* prepared, std::int64_t hidden,
                          std::int64_t k);
};

const Fused& cuda_fused();  ///< fp16 and bf16; fp32 too in rmsnorm, add_rmsnorm, rope and swiglu
const Fused& cpu_fused();   ///< fp32 alone

}  // namespace fusebench::kernels
