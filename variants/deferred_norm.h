// How fused products take an RMSNorm in front of them: deferred, where their kernel can (kernels/deferred_norm.h), or
// as a step of its own.
#pragma once

#include "variants/pieces.h"

namespace fusebench {

/// What the product reads, and its kernel's argument.
struct NormedInput {
  TensorId rows;                      ///< x itself, or normalised
  std::optional<RowSquares> squares;  ///< of x, where the norm is deferred
  TensorId fold = 0;                  ///< then fold_norm's

  std::vector<Access> reads(const Planning& p) const;
  kernels::DeferredNorm bind(const Bindings& bound, float eps) const;
};

/// Appends what the product of x and the prepared `weights` [n, dim] needs before it: a preparation that folds the
/// norm's weight into `weights`, and the rows' squares unless `squares` has them; or, for a kernel that does not defer,
/// a norm.
NormedInput normed_input(const Planning& p, kernels::GemmKernel kernel, const std::string& name, TensorId x,
                         TensorId norm_weight, TensorId weights, std::optional<RowSquares> squares);

/// Where a product of fused_residual_product can store the squares of its rows: a tensor for them.
std::optional<RowSquares> squares_of_product(const Planning& p, const std::string& name, std::int64_t n,
                                             std::int64_t k);

}  // namespace fusebench
