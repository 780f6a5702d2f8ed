// What the `cublas` (on the CPU, `eigen`) variant does between its library's products: one well-written vectorised
// kernel an op. 16-byte accesses where pointers, strides and extents allow, and a right answer where they do not.
// Strides are in elements. Statistics and arithmetic are in fp32, results in `dtype`.
#pragma once

#include "kernels/types.h"

namespace fusebench::kernels {

struct Elementwise {
  // out = a + b over n elements; out may be a or b
  void (*add)(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);

  // y = x / sqrt(mean(x²) + eps) · weight, row by row
  void (*rmsnorm)(const Exec&, DType, const void* x, const void* weight, float eps, void* y, std::int64_t rows,
                  std::int64_t cols);

  // out[out_rows(r), heads, head_dim] = x[r, :] rotated by position r % seq; x's rows are x_stride apart, out is dense;
  // cos and sin [seq, head_dim / 2] in fp32
  void (*rope)(const Exec&, DType, Pairing, const void* x, std::int64_t x_stride, const float* cos, const float* sin,
               void* out, std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t seq,
               RowMap out_rows);

  // out[out_rows(r), :] = x[r, :], cols of them; x's rows are x_stride apart, out's out_stride
  void (*copy_rows)(const Exec&, DType, const void* x, std::int64_t x_stride, void* out, std::int64_t out_stride,
                    std::int64_t rows, std::int64_t cols, RowMap out_rows);

  // probabilities [batch, heads, seq, keys] in dtype = softmax(scores), scores of the same shape in fp32, already
  // scaled; the causal mask is applied here; masked and rowless places are 0
  void (*masked_softmax)(const Exec&, DType, const float* scores, void* probabilities, AttentionShape);

  // y[rows, cols] = silu(g) · u; g's and u's rows are in_stride apart, y is dense; silu(-inf) = 0
  void (*swiglu)(const Exec&, DType, const void* g, const void* u, std::int64_t in_stride, void* y, std::int64_t rows,
                 std::int64_t cols);
};

const Elementwise& cuda_elementwise();  ///< every dtype
const Elementwise& cpu_elementwise();   ///< fp32 alone

}  // namespace fusebench::kernels
