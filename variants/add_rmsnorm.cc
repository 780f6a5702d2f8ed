// x, r [T, D], weight[D] -> h = x + r, y = rmsnorm(the stored h)
#include "variants/pieces.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

template <class Kernel>
void add_step(const Planning& p, const std::string& name, Kernel kernel, TensorId a, TensorId b, TensorId out) {
  p.add({.name = "add",
         .kernel = name,
         .reads = {p.all(a), p.all(b)},
         .writes = {p.all(out)},
         .launch = [=, dtype = p.c.dtype, n = p.c.tokens() * p.c.dim](const Exec& exec, const Bindings& bound) {
           kernel(exec, dtype, bound.at(a), bound.at(b), bound.at(out), n);
         }});
}

}  // namespace

void naive_add(const Planning& p, TensorId a, TensorId b, TensorId out) {
  add_step(p, "naive_add", primitives(p.target.backend).add, a, b, out);
}

void library_add(const Planning& p, TensorId a, TensorId b, TensorId out) {
  add_step(p, "vector_add", elementwise(p.target.backend).add, a, b, out);
}

namespace {

template <auto add, auto rmsnorm>
void append_two(const Planning& p) {
  add(p, p.tensor("x"), p.tensor("r"), p.tensor("h"));
  rmsnorm(p, p.tensor("h"), p.tensor("weight"), p.tensor("y"));
}

void append_fused(const Planning& p) {
  const TensorId x = p.tensor("x");
  const TensorId r = p.tensor("r");
  const TensorId weight = p.tensor("weight");
  const TensorId h = p.tensor("h");
  const TensorId y = p.tensor("y");
  p.add({.name = "add_rmsnorm",
         .kernel = "fused_add_rmsnorm",
         .reads = {p.all(x), p.all(r), p.all(weight)},
         .writes = {p.all(h), p.all(y)},
         .launch = [=, run = fused(p.target.backend).add_rmsnorm, dtype = p.c.dtype, eps = static_cast<float>(p.c.eps),
                    rows = p.c.tokens(), cols = p.c.dim](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(x), bound.at(r), bound.at(weight), eps, bound.at(h), bound.at(y), rows, cols);
         }});
}

const Registration entry(standard_variants({.op = Op::add_rmsnorm,
                                            .has_product = false,
                                            .naive = append_two<naive_add, naive_rmsnorm>,
                                            .library = append_two<library_add, library_rmsnorm>,
                                            .fused = append_fused}));

}  // namespace
}  // namespace fusebench
