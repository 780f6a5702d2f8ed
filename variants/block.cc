// x -> h = x + attn_out(attention(qkv(x))) -> h + mlp(h): a whole transformer block, made of the other ops' pieces
#include "variants/deferred_norm.h"
#include "variants/pieces.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

/// qkv and attention: from x to a [T, H·d].
using SelfAttention = void (*)(const Planning& p, const QkvTensors& in, TensorId a);

TensorId query(const Planning& p) { return p.workspace("q", p.c.dtype, p.c.tokens(), p.c.heads * p.c.head_dim()); }

/// A cache where there is a past; an intermediate without.
TensorId keys_or_values(const Planning& p, const std::string& name) {
  if (p.c.past > 0) return p.tensor(name);
  return p.workspace(name, p.c.dtype, p.c.tokens(), p.c.kv_heads * p.c.head_dim());
}

/// q, k and v, each in a tensor of its own.
template <auto qkv>
QkvResult dense_qkv(const Planning& p, const QkvTensors& in) {
  const QkvResult out{.q = query(p), .k = keys_or_values(p, "k"), .v = keys_or_values(p, "v")};
  qkv(p.within("qkv"), in, out);
  return out;
}

void naive_self_attention(const Planning& p, const QkvTensors& in, TensorId a) {
  const QkvResult made = dense_qkv<naive_qkv>(p, in);
  naive_attention(p.within("attention"), made.q, made.k, made.v.value(), a);
}

void fused_self_attention(const Planning& p, const QkvTensors& in, TensorId a) {
  const QkvResult made = dense_qkv<fused_qkv>(p, in);
  fused_attention(p.within("attention"), made.q, made.k, p.columns(made.v.value()), a);
}

// Without a cache to fill, attention reads v where the merged product left it.
template <auto attention>
void library_self_attention(const Planning& p, const QkvTensors& in, TensorId a) {
  QkvResult out{.q = query(p), .k = keys_or_values(p, "k")};
  if (p.c.past > 0) out.v = p.tensor("v");
  const Columns v = library_qkv(p.within("qkv"), in, out);
  attention(p.within("attention"), out.q, out.k, v, a);
}

std::optional<RowSquares> no_squares(const Planning& /*p*/) { return {}; }

/// For the MLP's norm, where attn_out's product has them at hand and the MLP's defers the norm.
std::optional<RowSquares> squares_of_h(const Planning& p) {
  if (fused_gate_up_kernel(p) != kernels::GemmKernel::hopper) return {};
  return squares_of_product(p.within("attn_out"), "h", p.c.dim, p.c.dim);
}

template <SelfAttention self_attention, auto attn_out, auto mlp, auto squares = no_squares>
void append(const Planning& p) {
  const TensorId x = p.tensor("x");
  const TensorId a = p.workspace("a", p.c.dtype, p.c.tokens(), p.c.dim);
  const TensorId h = p.workspace("h", p.c.dtype, p.c.tokens(), p.c.dim);
  self_attention(
      p,
      {x, p.tensor("norm1_weight"), p.tensor("wq"), p.tensor("wk"), p.tensor("wv"), {p.tensor("cos"), p.tensor("sin")}},
      a);
  const std::optional<RowSquares> h_squares = squares(p);
  attn_out(p.within("attn_out"), {a, p.tensor("wo"), x, h, h_squares});
  mlp(p.within("mlp"), {h, p.tensor("norm2_weight"), p.tensor("w_gate"), p.tensor("w_up"), p.tensor("w_down"),
                        p.tensor("out"), h_squares});
}

const Registration entry(standard_variants(
    {.op = Op::block,
     .has_product = true,
     .naive = append<naive_self_attention, naive_attn_out, naive_mlp>,
     .library = append<library_self_attention<library_attention>, library_attn_out, library_mlp>,
     .fused = append<fused_self_attention, fused_attn_out, fused_mlp, squares_of_h>,
     .library_flash = append<library_self_attention<fused_attention>, library_attn_out, library_mlp>}));

}  // namespace
}  // namespace fusebench
