// g, u [T, F] -> y = silu(g) · u
#include "variants/pieces.h"
#include "variants/standard.h"

namespace fusebench {

void naive_swiglu(const Planning& p, TensorId g, TensorId u, TensorId y) {
  const auto& kernels = primitives(p.target.backend);
  const DType dtype = p.c.dtype;
  const std::int64_t n = p.c.tokens() * p.c.hidden;
  const TensorId sigmoid = p.workspace("sigmoid", dtype, p.c.tokens(), p.c.hidden);
  const TensorId silu = p.workspace("silu", dtype, p.c.tokens(), p.c.hidden);
  p.add({.name = "sigmoid",
         .kernel = "naive_sigmoid",
         .reads = {p.all(g)},
         .writes = {p.all(sigmoid)},
         .launch = [=, run = kernels.sigmoid](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(g), bound.at(sigmoid), n);
         }});
  p.add({.name = "g * sigmoid",
         .kernel = "naive_gate",
         .reads = {p.all(g), p.all(sigmoid)},
         .writes = {p.all(silu)},
         .launch = [=, run = kernels.gate](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(g), bound.at(sigmoid), bound.at(silu), n);
         }});
  p.add({.name = "* u",
         .kernel = "naive_multiply",
         .reads = {p.all(silu), p.all(u)},
         .writes = {p.all(y)},
         .launch = [=, run = kernels.multiply](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(silu), bound.at(u), bound.at(y), n);
         }});
}

void library_swiglu(const Planning& p, Columns g, Columns u, TensorId y) {
  const std::int64_t rows = p.c.tokens();
  const std::int64_t cols = p.c.hidden;
  p.add({.name = "swiglu",
         .kernel = "vector_swiglu",
         .reads = {p.part(g.tensor, rows, cols), p.part(u.tensor, rows, cols)},
         .writes = {p.all(y)},
         .launch = [=, run = elementwise(p.target.backend).swiglu, dtype = p.c.dtype](const Exec& exec,
                                                                                      const Bindings& bound) {
           run(exec, dtype, g.at(bound, dtype), u.at(bound, dtype), g.stride, bound.at(y), rows, cols);
         }});
}

namespace {

void append_naive(const Planning& p) { naive_swiglu(p, p.tensor("g"), p.tensor("u"), p.tensor("y")); }

void append_library(const Planning& p) {
  library_swiglu(p, {p.tensor("g"), 0, p.c.hidden}, {p.tensor("u"), 0, p.c.hidden}, p.tensor("y"));
}

void append_fused(const Planning& p) {
  const TensorId g = p.tensor("g");
  const TensorId u = p.tensor("u");
  const TensorId y = p.tensor("y");
  p.add({.name = "swiglu",
         .kernel = "fused_swiglu",
         .reads = {p.all(g), p.all(u)},
         .writes = {p.all(y)},
         .launch = [=, run = fused(p.target.backend).swiglu, dtype = p.c.dtype, n = p.c.tokens() * p.c.hidden](
                       const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(g), bound.at(u), bound.at(y), n);
         }});
}

const Registration entry(standard_variants(
    {.op = Op::swiglu, .has_product = false, .naive = append_naive, .library = append_library, .fused = append_fused}));

}  // namespace
}  // namespace fusebench
