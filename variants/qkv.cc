// x [T, D], norm weight, Wq, Wk, Wv, cos and sin -> rotated q [T, H, d]; rotated k and v [B, P+S, Hkv, d], new rows
#include "variants/deferred_norm.h"
#include "variants/naive_product.h"
#include "variants/pieces.h"
#include "variants/product.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

std::int64_t query_columns(const Case& c) { return c.heads * c.head_dim(); }
std::int64_t key_columns(const Case& c) { return c.kv_heads * c.head_dim(); }
std::int64_t qkv_columns(const Case& c) { return query_columns(c) + 2 * key_columns(c); }

kernels::QkvShape shape_of(const Case& c) {
  return {.rows = c.tokens(),
          .dim = c.dim,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .head_dim = c.head_dim(),
          .seq = c.seq,
          .kv_rows = c.kv_rows(),
          .pairing = c.rope};
}

/// out[:, :] = x's columns, at the new rows of a cache.
void copy_columns(const Planning& p, const std::string& name, Columns x, TensorId out, std::int64_t cols) {
  const std::int64_t rows = p.c.tokens();
  p.add({.name = name,
         .kernel = "vector_copy_rows",
         .reads = {p.part(x.tensor, rows, cols)},
         .writes = {p.part(out, rows, cols)},
         .launch = [=, run = elementwise(p.target.backend).copy_rows, dtype = p.c.dtype, out_rows = p.c.kv_rows()](
                       const Exec& exec, const Bindings& bound) {
           run(exec, dtype, x.at(bound, dtype), x.stride, bound.at(out), cols, rows, cols, out_rows);
         }});
}

}  // namespace

void naive_qkv(const Planning& p, const QkvTensors& in, const QkvResult& out) {
  const Case& c = p.c;
  const std::int64_t tokens = c.tokens();
  const TensorId normed = p.workspace("normed x", c.dtype, tokens, c.dim);
  const TensorId q = p.workspace("q before rope", c.dtype, tokens, query_columns(c));
  const TensorId k = p.workspace("k before rope", c.dtype, tokens, key_columns(c));
  naive_rmsnorm(p, in.x, in.norm_weight, normed);
  naive_product(p, {"product q", normed, in.wq, q, tokens, query_columns(c), c.dim, p.same_rows()});
  naive_product(p, {"product k", normed, in.wk, k, tokens, key_columns(c), c.dim, p.same_rows()});
  naive_product(p, {"product v", normed, in.wv, out.v.value(), tokens, key_columns(c), c.dim, c.kv_rows()});
  naive_rope(p, {"q", {q, 0, query_columns(c)}, c.heads, out.q, p.same_rows()}, in.phases);
  naive_rope(p, {"k", {k, 0, key_columns(c)}, c.kv_heads, out.k, c.kv_rows()}, in.phases);
}

Columns library_qkv(const Planning& p, const QkvTensors& in, const QkvResult& out) {
  const Case& c = p.c;
  const std::int64_t tokens = c.tokens();
  const TensorId normed = p.workspace("normed x", c.dtype, tokens, c.dim);
  const TensorId merged = p.workspace("q, k, v before rope", c.dtype, tokens, qkv_columns(c));
  const TensorId weights = stack_weights(p, "wq, wk, wv", {in.wq, in.wk, in.wv});
  library_rmsnorm(p, in.x, in.norm_weight, normed);
  add_product(p, dense_product("product qkv", normed, weights, merged, tokens, qkv_columns(c), c.dim));
  const Columns q{merged, 0, qkv_columns(c)};
  const Columns k{merged, query_columns(c), qkv_columns(c)};
  const Columns v{merged, query_columns(c) + key_columns(c), qkv_columns(c)};
  library_rope(p, {"q", q, c.heads, out.q, p.same_rows()}, in.phases);
  library_rope(p, {"k", k, c.kv_heads, out.k, c.kv_rows()}, in.phases);
  if (!out.v) return v;
  copy_columns(p, "copy v", v, *out.v, key_columns(c));
  return p.columns(*out.v);
}

void fused_qkv(const Planning& p, const QkvTensors& in, const QkvResult& out) {
  const Case& c = p.c;
  const auto& kernels = fused(p.target.backend);
  const kernels::QkvShape shape = shape_of(c);
  const kernels::GemmKernel kernel =
      choose_gemm(p.target, p.choice, c.dtype, shape.rows, shape.columns(), shape.dim, hopper_takes(shape));
  const TensorId weights = p.prepared("wq, wk, wv in pairs", shape.columns(), shape.dim);
  const TensorId v = out.v.value();

  p.add_prepare({.name = "prepare wq, wk, wv",
                 .kernel = "prepare_qkv",
                 .reads = {p.all(in.wq), p.all(in.wk), p.all(in.wv)},
                 .writes = {p.all(weights)},
                 .launch = [=, run = kernels.prepare_qkv, dtype = c.dtype](const Exec& exec, const Bindings& bound) {
                   run(exec, kernel, dtype, bound.at(in.wq), bound.at(in.wk), bound.at(in.wv), bound.at(weights),
                       shape);
                 }});
  const NormedInput x = normed_input(p, kernel, "x", in.x, in.norm_weight, weights, {});
  Step product{
      .name = "product qkv, rope",
      .kernel = std::string(name_of(kernel)) + "_rope",
      .reads = x.reads(p),
      .writes = {p.all(out.q), p.part(out.k, shape.rows, key_columns(c)), p.part(v, shape.rows, key_columns(c))},
      .flops = product_flops(shape.rows, shape.columns(), shape.dim)};
  for (const TensorId read : {weights, in.phases.cos, in.phases.sin}) product.reads.push_back(p.all(read));
  const auto sums = part_sums(p, kernel, shape.rows, shape.columns(), product);
  product.launch = [=, run = kernels.product_rope, dtype = c.dtype, eps = static_cast<float>(c.eps)](
                       const Exec& exec, const Bindings& bound) {
    run(exec, bind(kernel, sums, bound), dtype, bound.at(x.rows), bound.at(weights), bound.at<float>(in.phases.cos),
        bound.at<float>(in.phases.sin), bound.at(out.q), bound.at(out.k), bound.at(v), shape, x.bind(bound, eps));
  };
  p.add(std::move(product));
}

namespace {

template <auto piece>
void append(const Planning& p) {
  piece(p,
        {p.tensor("x"),
         p.tensor("norm_weight"),
         p.tensor("wq"),
         p.tensor("wk"),
         p.tensor("wv"),
         {p.tensor("cos"), p.tensor("sin")}},
        {p.tensor("q"), p.tensor("k"), p.tensor("v")});
}

const Registration entry(standard_variants({.op = Op::qkv,
                                            .has_product = true,
                                            .naive = append<naive_qkv>,
                                            .library = append<library_qkv>,
                                            .fused = append<fused_qkv>}));

}  // namespace
}  // namespace fusebench
