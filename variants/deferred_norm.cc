#include "variants/deferred_norm.h"

namespace fusebench {

std::vector<Access> NormedInput::reads(const Planning& p) const {
  if (!squares) return {p.all(rows)};
  return {p.all(rows), p.all(squares->tensor), p.all(fold)};
}

kernels::DeferredNorm NormedInput::bind(const Bindings& bound, float eps) const {
  if (!squares) return {};
  return {
      .squares = bound.at<float>(squares->tensor), .parts = squares->parts, .eps = eps, .fold = bound.at<float>(fold)};
}

NormedInput normed_input(const Planning& p, kernels::GemmKernel kernel, const std::string& name, TensorId x,
                         TensorId norm_weight, TensorId weights, std::optional<RowSquares> squares) {
  const Case& c = p.c;
  const std::int64_t tokens = c.tokens();
  if (kernel != kernels::GemmKernel::hopper) {
    const TensorId normed = p.workspace("normed " + name, c.dtype, tokens, c.dim);
    fused_rmsnorm(p, x, norm_weight, normed);
    return {.rows = normed, .squares = {}};
  }
  const kernels::DeferredNormKernels& kernels = deferred_norm(p.target.backend);
  const TensorId fold = p.plan.prepared(p.scope + "fold", DType::fp32, 1, 1);
  p.add_prepare({.name = "fold the norm",
                 .kernel = "fold_norm",
                 .reads = {p.all(weights), p.all(norm_weight)},
                 .writes = {p.all(weights), p.all(fold)},
                 .launch =
                     [=, run = kernels.fold_norm, dtype = c.dtype, n = p.plan.tensor(weights).rows, dim = c.dim](
                         const Exec& exec, const Bindings& bound) {
                       run(exec, dtype, bound.at(norm_weight), bound.at(weights), bound.at<float>(fold), n, dim);
                     },
                 .launches = 2});
  if (!squares) {
    squares = RowSquares{p.workspace("squares of " + name, DType::fp32, tokens, 1), 1};
    p.add({.name = "squares of " + name,
           .kernel = "row_squares",
           .reads = {p.all(x)},
           .writes = {p.all(squares->tensor)},
           .launch = [=, run = kernels.row_squares, dtype = c.dtype, dim = c.dim, out = squares->tensor](
                         const Exec& exec, const Bindings& bound) {
             run(exec, dtype, bound.at(x), bound.at<float>(out), tokens, dim);
           }});
  }
  return {.rows = x, .squares = squares, .fold = fold};
}

std::optional<RowSquares> squares_of_product(const Planning& p, const std::string& name, std::int64_t n,
                                             std::int64_t k) {
  const std::int64_t tokens = p.c.tokens();
  const kernels::GemmKernel kernel = choose_gemm(p.target, p.choice, p.c.dtype, tokens, n, k);
  if (kernel != kernels::GemmKernel::hopper) return {};
  const std::int64_t parts = kernels::ceil_div(n, kernels::kSquaresColumns);
  return RowSquares{p.workspace("squares of " + name, DType::fp32, tokens, parts), parts};
}

}  // namespace fusebench
