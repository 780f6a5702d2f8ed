// A projection back onto the residual stream, as attn_out and mlp end with.
#pragma once

#include "variants/pieces.h"

namespace fusebench {

/// out[T, D] = residual[T, D] + a[T, k] · weight[D, k]ᵀ
struct ResidualProduct {
  std::string name;
  TensorId a, weight, residual, out;
  std::int64_t k;
  std::optional<RowSquares> out_squares = {};  ///< for fused_residual_product: to be stored too
};

void naive_residual_product(const Planning& p, const ResidualProduct& task);    ///< product; add
void library_residual_product(const Planning& p, const ResidualProduct& task);  ///< one step
void fused_residual_product(const Planning& p, const ResidualProduct& task);    ///< one step

}  // namespace fusebench
