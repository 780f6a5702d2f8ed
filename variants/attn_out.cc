// a [T, D], Wo [D, D], x [T, D] -> x + a·Woᵀ
#include "variants/pieces.h"
#include "variants/residual.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

ResidualProduct task(const Planning& p, const AttnOutTensors& t) {
  return {.name = "product o",
          .a = t.a,
          .weight = t.wo,
          .residual = t.x,
          .out = t.out,
          .k = p.c.dim,
          .out_squares = t.out_squares};
}

}  // namespace

void naive_attn_out(const Planning& p, const AttnOutTensors& t) { naive_residual_product(p, task(p, t)); }
void library_attn_out(const Planning& p, const AttnOutTensors& t) { library_residual_product(p, task(p, t)); }
void fused_attn_out(const Planning& p, const AttnOutTensors& t) { fused_residual_product(p, task(p, t)); }

namespace {

template <auto piece>
void append(const Planning& p) {
  piece(p, {p.tensor("a"), p.tensor("wo"), p.tensor("x"), p.tensor("out")});
}

const Registration entry(standard_variants({.op = Op::attn_out,
                                            .has_product = true,
                                            .naive = append<naive_attn_out>,
                                            .library = append<library_attn_out>,
                                            .fused = append<fused_attn_out>}));

}  // namespace
}  // namespace fusebench
