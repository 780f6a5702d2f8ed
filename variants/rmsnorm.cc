// x[T, D], weight[D] -> y = x / sqrt(mean(x²) + eps) · weight
#include "variants/pieces.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

// One kernel from x to y; `kernel` has the signature that elementwise and fused share.
template <class Kernel>
void one_pass(const Planning& p, const std::string& name, Kernel kernel, TensorId x, TensorId weight, TensorId y) {
  p.add({.name = "rmsnorm",
         .kernel = name,
         .reads = {p.all(x), p.all(weight)},
         .writes = {p.all(y)},
         .launch = [=, dtype = p.c.dtype, eps = static_cast<float>(p.c.eps), rows = p.c.tokens(), cols = p.c.dim](
                       const Exec& exec, const Bindings& bound) {
           kernel(exec, dtype, bound.at(x), bound.at(weight), eps, bound.at(y), rows, cols);
         }});
}

}  // namespace

void naive_rmsnorm(const Planning& p, TensorId x, TensorId weight, TensorId y) {
  const auto& kernels = primitives(p.target.backend);
  const DType dtype = p.c.dtype;
  const std::int64_t rows = p.c.tokens();
  const std::int64_t cols = p.c.dim;
  const TensorId squares = p.workspace("squares", DType::fp32, rows, cols);
  const TensorId mean = p.workspace("mean", DType::fp32, rows, 1);
  const TensorId rstd = p.workspace("rstd", DType::fp32, rows, 1);
  const TensorId normed = p.workspace("normed", dtype, rows, cols);

  p.add({.name = "square",
         .kernel = "naive_square",
         .reads = {p.all(x)},
         .writes = {p.all(squares)},
         .launch = [=, run = kernels.square](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(x), bound.at<float>(squares), rows * cols);
         }});
  p.add({.name = "row mean",
         .kernel = "naive_row_mean",
         .reads = {p.all(squares)},
         .writes = {p.all(mean)},
         .launch = [=, run = kernels.row_mean](const Exec& exec, const Bindings& bound) {
           run(exec, bound.at<float>(squares), bound.at<float>(mean), rows, cols);
         }});
  p.add({.name = "rsqrt(mean + eps)",
         .kernel = "naive_rsqrt_eps",
         .reads = {p.all(mean)},
         .writes = {p.all(rstd)},
         .launch = [=, run = kernels.rsqrt_eps, eps = static_cast<float>(p.c.eps)](const Exec& exec,
                                                                                   const Bindings& bound) {
           run(exec, bound.at<float>(mean), eps, bound.at<float>(rstd), rows);
         }});
  p.add({.name = "x * rstd",
         .kernel = "naive_scale_rows",
         .reads = {p.all(x), p.all(rstd)},
         .writes = {p.all(normed)},
         .launch = [=, run = kernels.scale_rows](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(x), bound.at<float>(rstd), bound.at(normed), rows, cols);
         }});
  p.add({.name = "* weight",
         .kernel = "naive_scale_columns",
         .reads = {p.all(normed), p.all(weight)},
         .writes = {p.all(y)},
         .launch = [=, run = kernels.scale_columns](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(normed), bound.at(weight), bound.at(y), rows, cols);
         }});
}

void library_rmsnorm(const Planning& p, TensorId x, TensorId weight, TensorId y) {
  one_pass(p, "vector_rmsnorm", elementwise(p.target.backend).rmsnorm, x, weight, y);
}

void fused_rmsnorm(const Planning& p, TensorId x, TensorId weight, TensorId y) {
  one_pass(p, "fused_rmsnorm", fused(p.target.backend).rmsnorm, x, weight, y);
}

namespace {

template <auto piece>
void append(const Planning& p) {
  piece(p, p.tensor("x"), p.tensor("weight"), p.tensor("y"));
}

const Registration entry(standard_variants({.op = Op::rmsnorm,
                                            .has_product = false,
                                            .naive = append<naive_rmsnorm>,
                                            .library = append<library_rmsnorm>,
                                            .fused = append<fused_rmsnorm>}));

}  // namespace
}  // namespace fusebench
