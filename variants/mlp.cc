// h [T, D], norm weight, Wgate, Wup [F, D], Wdown [D, F] -> h + (silu(n·Wgateᵀ) · (n·Wupᵀ))·Wdownᵀ, n = rmsnorm(h)
#include "variants/deferred_norm.h"
#include "variants/naive_product.h"
#include "variants/pieces.h"
#include "variants/product.h"
#include "variants/residual.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

ResidualProduct down(const Planning& p, const MlpTensors& t, TensorId activation) {
  return {.name = "product down", .a = activation, .weight = t.w_down, .residual = t.h, .out = t.out, .k = p.c.hidden};
}

}  // namespace

void naive_mlp(const Planning& p, const MlpTensors& t) {
  const Case& c = p.c;
  const std::int64_t tokens = c.tokens();
  const TensorId normed = p.workspace("normed h", c.dtype, tokens, c.dim);
  const TensorId gate = p.workspace("gate", c.dtype, tokens, c.hidden);
  const TensorId up = p.workspace("up", c.dtype, tokens, c.hidden);
  const TensorId activation = p.workspace("activation", c.dtype, tokens, c.hidden);
  naive_rmsnorm(p, t.h, t.norm_weight, normed);
  naive_product(p, {"product gate", normed, t.w_gate, gate, tokens, c.hidden, c.dim, p.same_rows()});
  naive_product(p, {"product up", normed, t.w_up, up, tokens, c.hidden, c.dim, p.same_rows()});
  naive_swiglu(p, gate, up, activation);
  naive_residual_product(p, down(p, t, activation));
}

void library_mlp(const Planning& p, const MlpTensors& t) {
  const Case& c = p.c;
  const std::int64_t tokens = c.tokens();
  const TensorId weights = stack_weights(p, "w_gate, w_up", {t.w_gate, t.w_up});
  const TensorId normed = p.workspace("normed h", c.dtype, tokens, c.dim);
  const TensorId gate_up = p.workspace("gate, up", c.dtype, tokens, 2 * c.hidden);
  const TensorId activation = p.workspace("activation", c.dtype, tokens, c.hidden);
  library_rmsnorm(p, t.h, t.norm_weight, normed);
  add_product(p, dense_product("product gate, up", normed, weights, gate_up, tokens, 2 * c.hidden, c.dim));
  library_swiglu(p, {gate_up, 0, 2 * c.hidden}, {gate_up, c.hidden, 2 * c.hidden}, activation);
  library_residual_product(p, down(p, t, activation));
}

kernels::GemmKernel fused_gate_up_kernel(const Planning& p) {
  return choose_gemm(p.target, p.choice, p.c.dtype, p.c.tokens(), 2 * p.c.hidden, p.c.dim);
}

void fused_mlp(const Planning& p, const MlpTensors& t) {
  const Case& c = p.c;
  const auto& kernels = fused(p.target.backend);
  const std::int64_t m = c.tokens();
  const kernels::GemmKernel kernel = fused_gate_up_kernel(p);
  const TensorId weights = p.prepared("w_gate, w_up in pairs", 2 * c.hidden, c.dim);
  const TensorId activation = p.workspace("activation", c.dtype, m, c.hidden);

  p.add_prepare({.name = "prepare w_gate, w_up",
                 .kernel = "prepare_gate_up",
                 .reads = {p.all(t.w_gate), p.all(t.w_up)},
                 .writes = {p.all(weights)},
                 .launch = [=, run = kernels.prepare_gate_up, dtype = c.dtype, hidden = c.hidden, dim = c.dim](
                               const Exec& exec, const Bindings& bound) {
                   run(exec, dtype, bound.at(t.w_gate), bound.at(t.w_up), bound.at(weights), hidden, dim);
                 }});
  const NormedInput h = normed_input(p, kernel, "h", t.h, t.norm_weight, weights, t.h_squares);
  Step product{.name = "product gate, up, swiglu",
               .kernel = std::string(name_of(kernel)) + "_swiglu",
               .reads = h.reads(p),
               .writes = {p.all(activation)},
               .flops = product_flops(m, 2 * c.hidden, c.dim)};
  product.reads.push_back(p.all(weights));
  const auto sums = part_sums(p, kernel, m, 2 * c.hidden, product);
  product.launch = [=, run = kernels.product_swiglu, dtype = c.dtype, hidden = c.hidden, dim = c.dim,
                    eps = static_cast<float>(c.eps)](const Exec& exec, const Bindings& bound) {
    run(exec, bind(kernel, sums, bound), dtype, bound.at(h.rows), bound.at(weights), bound.at(activation), m, hidden,
        dim, h.bind(bound, eps));
  };
  p.add(std::move(product));
  fused_residual_product(p, down(p, t, activation));
}

namespace {

template <auto piece>
void append(const Planning& p) {
  piece(p, {p.tensor("h"), p.tensor("norm_weight"), p.tensor("w_gate"), p.tensor("w_up"), p.tensor("w_down"),
            p.tensor("out")});
}

const Registration entry(standard_variants({.op = Op::mlp,
                                            .has_product = true,
                                            .naive = append<naive_mlp>,
                                            .library = append<library_mlp>,
                                            .fused = append<fused_mlp>}));

}  // namespace
}  // namespace fusebench
