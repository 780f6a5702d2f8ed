// The CUDA functions behind the tables of kernels/fused.h and kernels/elementwise.h, which say what each one computes.
// Where both tables have a member of one name, the two are overloads; `rmsnorm` is one kernel that serves both.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/fused.h"

namespace fusebench::kernels::cuda {

// Both tables
void rmsnorm(const Exec& exec, DType dtype, const void* x, const void* weight, float eps, void* y, std::int64_t rows,
             std::int64_t cols);

// kernels/fused.h
void add_rmsnorm(const Exec& exec, DType dtype, const void* x, const void* r, const void* weight, float eps, void* h,
                 void* y, std::int64_t rows, std::int64_t cols);
void rope(const Exec& exec, DType dtype, Pairing pairing, const void* q, const void* k, const float* cos,
          const float* sin, void* q_out, void* k_out, std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
          std::int64_t head_dim, std::int64_t seq);
void swiglu(const Exec& exec, DType dtype, const void* g, const void* u, void* y, std::int64_t n);
void attention(const Exec& exec, AttentionKernel kernel, DType dtype, const void* q, const void* k, const void* v,
               void* out, AttentionShape shape);
void product_residual(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* weight,
                      const void* residual, void* out, std::int64_t m, std::int64_t n, std::int64_t k);
void product_rope(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* prepared_weight,
                  const float* cos, const float* sin, void* q, void* k, void* v, QkvShape shape);
void product_swiglu(const Exec& exec, GemmKernel kernel, DType dtype, const void* a, const void* prepared_weight,
                    void* y, std::int64_t m, std::int64_t hidden, std::int64_t k);
void prepare_qkv(const Exec& exec, DType dtype, const void* wq, const void* wk, const void* wv, void* prepared,
                 QkvShape shape);
void prepare_gate_up(const Exec& exec, DType dtype, const void* gate, const void* up, void* prepared,
                     std::int64_t hidden, std::int64_t k);

// kernels/elementwise.h
void add(const Exec& exec, DType dtype, const void* a, const void* b, void* out, std::int64_t n);
void rope(const Exec& exec, DType dtype, Pairing pairing, const void* x, std::int64_t x_stride, const float* cos,
          const float* sin, void* out, std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t seq,
          RowMap out_rows);
void copy_rows(const Exec& exec, DType dtype, const void* x, std::int64_t x_stride, void* out, std::int64_t out_stride,
               std::int64_t rows, std::int64_t cols, RowMap out_rows);
void masked_softmax(const Exec& exec, DType dtype, const float* scores, void* probabilities, AttentionShape shape);
void swiglu(const Exec& exec, DType dtype, const void* g, const void* u, std::int64_t in_stride, void* y,
            std::int64_t rows, std::int64_t cols);

}  // namespace fusebench::kernels::cuda
