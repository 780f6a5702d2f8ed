// The steps of the `naive` variant: one plain kernel for each primitive step of the seed's formulas. They share no
// code with the other variants. Tensors are dense and row-major in `dtype` unless typed float. Statistics accumulate
// in fp32. No alignment beyond the element's is assumed, and every extent may be any positive 64-bit value.
#pragma once

#include "kernels/types.h"

namespace fusebench::kernels {

struct Primitives {
  // out = a op b over n elements
  void (*add)(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);
  void (*subtract)(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);
  void (*multiply)(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);

  // rmsnorm
  void (*square)(const Exec&, DType, const void* x, float* out, std::int64_t n);
  void (*row_mean)(const Exec&, const float* x, float* mean, std::int64_t rows, std::int64_t cols);
  void (*rsqrt_eps)(const Exec&, const float* mean, float eps, float* rstd, std::int64_t rows);
  void (*scale_rows)(const Exec&, DType, const void* x, const float* scale, void* out, std::int64_t rows,
                     std::int64_t cols);
  void (*scale_columns)(const Exec&, DType, const void* x, const void* weight, void* out, std::int64_t rows,
                        std::int64_t cols);

  // c[c_rows(i), :] = a[m, k] · b[n, k]ᵀ, by a simple tiled kernel without tensor cores
  void (*product)(const Exec&, DType, const void* a, const void* b, void* c, std::int64_t m, std::int64_t n,
                  std::int64_t k, RowMap c_rows);

  // rope: x [rows, heads, 2·half_dim]; first and second [rows, heads, half_dim]; table [seq, half_dim] in fp32, and
  // row r has position r % seq
  void (*split_pairs)(const Exec&, DType, Pairing, const void* x, void* first, void* second, std::int64_t rows,
                      std::int64_t heads, std::int64_t half_dim);
  void (*multiply_by_phase)(const Exec&, DType, const void* x, const float* table, void* out, std::int64_t rows,
                            std::int64_t heads, std::int64_t half_dim, std::int64_t seq);
  void (*merge_pairs)(const Exec&, DType, Pairing, const void* first, const void* second, void* x, std::int64_t rows,
                      std::int64_t heads, std::int64_t half_dim, RowMap x_rows);

  // attention: scores, max and sum are [batch, heads, seq, keys] and [batch, heads, seq] in fp32, probabilities in
  // dtype. scores = q·kᵀ / sqrt(head_dim), -inf where masked. A row without a visible key ends as zeros.
  // weighted_values takes dense values alone.
  void (*scores)(const Exec&, DType, const void* q, const void* k, float* scores, AttentionShape);
  void (*row_max)(const Exec&, const float* x, float* max, std::int64_t rows, std::int64_t cols);
  void (*exp_minus_max)(const Exec&, DType, const float* scores, const float* max, void* out, std::int64_t rows,
                        std::int64_t cols);
  void (*row_sum)(const Exec&, DType, const void* x, float* sum, std::int64_t rows, std::int64_t cols);
  void (*divide_rows)(const Exec&, DType, const void* x, const float* sum, void* out, std::int64_t rows,
                      std::int64_t cols);
  void (*weighted_values)(const Exec&, DType, const void* probabilities, const void* v, void* out, AttentionShape);

  // swiglu: gate = g · sigmoid, and 0 where sigmoid is 0, the limit for g = -inf
  void (*sigmoid)(const Exec&, DType, const void* g, void* out, std::int64_t n);
  void (*gate)(const Exec&, DType, const void* g, const void* sigmoid, void* out, std::int64_t n);
};

const Primitives& cuda_primitives();  ///< every dtype
const Primitives& cpu_primitives();   ///< fp32 alone

}  // namespace fusebench::kernels
