// The CPU kernels of the `eigen` and `fused` variants, one file an op; tables.cc enters them. Contracts, shapes and
// layouts are those of kernels/elementwise.h and kernels/fused.h. What one row needs is computed by the same code in
// both variants, and in the epilogues of the fused products.
#pragma once

#include "kernels/fused.h"
#include "kernels/types.h"

namespace fusebench::kernels::cpu {

// elementwise.cc
void add(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);
void copy_rows(const Exec&, DType, const void* x, std::int64_t x_stride, void* out, std::int64_t out_stride,
               std::int64_t rows, std::int64_t cols, RowMap out_rows);

// rmsnorm.cc
void rmsnorm(const Exec&, DType, const void* x, const void* weight, float eps, void* y, std::int64_t rows,
             std::int64_t cols);
void add_rmsnorm(const Exec&, DType, const void* x, const void* r, const void* weight, float eps, void* h, void* y,
                 std::int64_t rows, std::int64_t cols);

// rope.cc
void rope_tensor(const Exec&, DType, Pairing, const void* x, std::int64_t x_stride, const float* cos, const float* sin,
                 void* out, std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t seq,
                 RowMap out_rows);
void rope(const Exec&, DType, Pairing, const void* q, const void* k, const float* cos, const float* sin, void* q_out,
          void* k_out, std::int64_t rows, std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
          std::int64_t seq);

// softmax.cc
void masked_softmax(const Exec&, DType, const float* scores, void* probabilities, AttentionShape);

// attention.cc
void attention(const Exec&, AttentionKernel, DType, const void* q, const void* k, const void* v, void* out,
               AttentionShape);

// swiglu.cc
void swiglu_rows(const Exec&, DType, const void* g, const void* u, std::int64_t in_stride, void* y, std::int64_t rows,
                 std::int64_t cols);
void swiglu(const Exec&, DType, const void* g, const void* u, void* y, std::int64_t n);

// gemm.cc
void product_residual(const Exec&, GemmKernel, DType, const void* a, const void* weight, const void* residual,
                      void* out, std::int64_t m, std::int64_t n, std::int64_t k);
void product_rope(const Exec&, GemmKernel, DType, const void* a, const void* prepared_weight, const float* cos,
                  const float* sin, void* q, void* k, void* v, QkvShape);
void product_swiglu(const Exec&, GemmKernel, DType, const void* a, const void* prepared_weight, void* y, std::int64_t m,
                    std::int64_t hidden, std::int64_t k);

// prepare.cc
void prepare_qkv(const Exec&, DType, const void* wq, const void* wk, const void* wv, void* prepared, QkvShape);
void prepare_gate_up(const Exec&, DType, const void* gate, const void* up, void* prepared, std::int64_t hidden,
                     std::int64_t k);

}  // namespace fusebench::kernels::cpu
