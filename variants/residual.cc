#include "variants/residual.h"

#include "variants/naive_product.h"
#include "variants/product.h"

namespace fusebench {

void naive_residual_product(const Planning& p, const ResidualProduct& task) {
  const Case& c = p.c;
  const TensorId product = p.workspace(task.name, c.dtype, c.tokens(), c.dim);
  naive_product(p, {task.name, task.a, task.weight, product, c.tokens(), c.dim, task.k, p.same_rows()});
  naive_add(p, task.residual, product, task.out);
}

void library_residual_product(const Planning& p, const ResidualProduct& task) {
  ProductSpec spec =
      dense_product(task.name + " + residual", task.a, task.weight, task.out, p.c.tokens(), p.c.dim, task.k);
  spec.residual = task.residual;
  add_product(p, std::move(spec));
}

void fused_residual_product(const Planning& p, const ResidualProduct& task) {
  const std::int64_t m = p.c.tokens();
  const std::int64_t n = p.c.dim;
  const kernels::GemmKernel kernel = choose_gemm(p.target, p.choice, p.c.dtype, m, n, task.k);
  Step product{.name = task.name + " + residual",
               .kernel = std::string(name_of(kernel)) + "_residual",
               .reads = {p.all(task.a), p.all(task.weight), p.all(task.residual)},
               .writes = {p.all(task.out)},
               .flops = product_flops(m, n, task.k)};
  if (task.out_squares) product.writes.push_back(p.all(task.out_squares->tensor));
  const auto sums = part_sums(p, kernel, m, n, product);
  product.launch = [=, run = fused(p.target.backend).product_residual, dtype = p.c.dtype](const Exec& exec,
                                                                                          const Bindings& bound) {
    run(exec, bind(kernel, sums, bound), dtype, bound.at(task.a), bound.at(task.weight), bound.at(task.residual),
        bound.at(task.out), m, n, task.k, task.out_squares ? bound.at<float>(task.out_squares->tensor) : nullptr);
  };
  p.add(std::move(product));
}

}  // namespace fusebench
