// The CPU steps of the `naive` variant, one file an op (naive_*.cc); naive_table.cc enters them into the table.
// Contracts, shapes and layouts are those of kernels/primitives.h. Plain loops over rows; no code shared with the
// other variants.
#pragma once

#include "kernels/types.h"

namespace fusebench::kernels::cpu_naive {

void add(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);
void subtract(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);
void multiply(const Exec&, DType, const void* a, const void* b, void* out, std::int64_t n);

void square(const Exec&, DType, const void* x, float* out, std::int64_t n);
void row_mean(const Exec&, const float* x, float* mean, std::int64_t rows, std::int64_t cols);
void rsqrt_eps(const Exec&, const float* mean, float eps, float* rstd, std::int64_t rows);
void scale_rows(const Exec&, DType, const void* x, const float* scale, void* out, std::int64_t rows, std::int64_t cols);
void scale_columns(const Exec&, DType, const void* x, const void* weight, void* out, std::int64_t rows,
                   std::int64_t cols);

void product(const Exec&, DType, const void* a, const void* b, void* c, std::int64_t m, std::int64_t n, std::int64_t k,
             RowMap c_rows);

void split_pairs(const Exec&, DType, Pairing, const void* x, void* first, void* second, std::int64_t rows,
                 std::int64_t heads, std::int64_t half_dim);
void multiply_by_phase(const Exec&, DType, const void* x, const float* table, void* out, std::int64_t rows,
                       std::int64_t heads, std::int64_t half_dim, std::int64_t seq);
void merge_pairs(const Exec&, DType, Pairing, const void* first, const void* second, void* x, std::int64_t rows,
                 std::int64_t heads, std::int64_t half_dim, RowMap x_rows);

void scores(const Exec&, DType, const void* q, const void* k, float* scores, AttentionShape);
void row_max(const Exec&, const float* x, float* max, std::int64_t rows, std::int64_t cols);
void exp_minus_max(const Exec&, DType, const float* scores, const float* max, void* out, std::int64_t rows,
                   std::int64_t cols);
void row_sum(const Exec&, DType, const void* x, float* sum, std::int64_t rows, std::int64_t cols);
void divide_rows(const Exec&, DType, const void* x, const float* sum, void* out, std::int64_t rows, std::int64_t cols);
void weighted_values(const Exec&, DType, const void* probabilities, const void* v, void* out, AttentionShape);

void sigmoid(const Exec&, DType, const void* g, void* out, std::int64_t n);
void gate(const Exec&, DType, const void* g, const void* sigmoid, void* out, std::int64_t n);

}  // namespace fusebench::kernels::cpu_naive
