// q [B, S, H, d], k and v [B, P+S, Hkv, d] -> softmax(q·kᵀ / sqrt(d) + mask)·v
#include <cmath>

#include "variants/pieces.h"
#include "variants/product.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

/// Of both products, the pairs that the mask leaves.
double attention_flops(const Case& c) {
  Case attention = c;
  attention.op = Op::attention;
  return spec_of(canonical(attention)).flops;
}

/// Pairs of a query and a key that it sees, over all heads: each takes a multiply and an add per element, twice.
std::int64_t visible_scores(const Case& c) {
  return static_cast<std::int64_t>(attention_flops(c) / (4 * static_cast<double>(c.head_dim())));
}

/// A tensor of scores' shape, [B·H·S, P+S].
TensorId pairs(const Planning& p, const std::string& name, DType dtype) {
  return p.workspace(name, dtype, p.c.batch * p.c.heads * p.c.seq, p.c.keys());
}

/// The two batched products of attention by a library. With one query a head, the heads of a group are the rows of one
/// matrix, so that each key is read once for all of them.
class LibraryProducts {
 public:
  explicit LibraryProducts(const Case& c)
      : c_(c), fold_(c.seq == 1), group_(c.heads / c.kv_heads), heads_(fold_ ? c.kv_heads : c.heads) {}

  ProductSpec scores(TensorId q, TensorId k, TensorId scores) const {
    ProductSpec spec = product("scores");
    spec.a = query_side(q);
    spec.b = key_side({.tensor = k, .offset = 0, .stride = c_.kv_heads * c_.head_dim()});
    spec.c = pair_side(scores);
    spec.n = c_.keys();
    spec.k = c_.head_dim();
    spec.alpha = static_cast<float>(1 / std::sqrt(static_cast<double>(c_.head_dim())));
    return spec;
  }

  ProductSpec values(TensorId probabilities, Columns v, TensorId out) const {
    ProductSpec spec = product("weighted values");
    spec.a = pair_side(probabilities);
    spec.b = key_side(v);
    spec.c = query_side(out);
    spec.rhs = Rhs::k_by_n;
    spec.n = c_.head_dim();
    spec.k = c_.keys();
    return spec;
  }

 private:
  ProductSpec product(std::string name) const {
    return {.name = std::move(name),
            .m = fold_ ? group_ : c_.seq,
            .batches = c_.batch,
            .heads = heads_,
            .flops = attention_flops(c_) / 2};
  }

  Operand query_side(TensorId id) const {
    const std::int64_t d = c_.head_dim();
    return {.tensor = id,
            .stride = fold_ ? d : c_.heads * d,
            .batch_stride = c_.seq * c_.heads * d,
            .head_stride = fold_ ? group_ * d : d};
  }
  Operand key_side(Columns columns) const {
    return {.tensor = columns.tensor,
            .offset = columns.offset,
            .stride = columns.stride,
            .batch_stride = c_.keys() * columns.stride,
            .head_stride = c_.head_dim(),
            .group = fold_ ? 1 : group_};
  }
  Operand pair_side(TensorId id) const {
    return {.tensor = id,
            .stride = c_.keys(),
            .batch_stride = c_.heads * c_.seq * c_.keys(),
            .head_stride = (fold_ ? group_ : c_.seq) * c_.keys()};
  }

  const Case& c_;
  bool fold_;
  std::int64_t group_;
  std::int64_t heads_;
};

}  // namespace

void naive_attention(const Planning& p, TensorId q, TensorId k, TensorId v, TensorId out) {
  const auto& kernels = primitives(p.target.backend);
  const DType dtype = p.c.dtype;
  const AttentionShape shape = p.c.attention();
  const std::int64_t rows = shape.batch * shape.heads * shape.seq;
  const TensorId scores = pairs(p, "scores", DType::fp32);
  const TensorId max = p.workspace("max", DType::fp32, rows, 1);
  const TensorId exponentials = pairs(p, "exponentials", dtype);
  const TensorId sum = p.workspace("sum", DType::fp32, rows, 1);
  const TensorId probabilities = pairs(p, "probabilities", dtype);
  const double flops = attention_flops(p.c) / 2;

  p.add({.name = "scores",
         .kernel = "naive_scores",
         .reads = {p.all(q), p.all(k)},
         .writes = {p.all(scores)},
         .flops = flops,
         .launch = [=, run = kernels.scores](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(q), bound.at(k), bound.at<float>(scores), shape);
         }});
  p.add({.name = "row max",
         .kernel = "naive_row_max",
         .reads = {p.all(scores)},
         .writes = {p.all(max)},
         .launch = [=, run = kernels.row_max](const Exec& exec, const Bindings& bound) {
           run(exec, bound.at<float>(scores), bound.at<float>(max), rows, shape.keys);
         }});
  p.add({.name = "exp(scores - max)",
         .kernel = "naive_exp_minus_max",
         .reads = {p.all(scores), p.all(max)},
         .writes = {p.all(exponentials)},
         .launch = [=, run = kernels.exp_minus_max](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at<float>(scores), bound.at<float>(max), bound.at(exponentials), rows, shape.keys);
         }});
  p.add({.name = "row sum",
         .kernel = "naive_row_sum",
         .reads = {p.all(exponentials)},
         .writes = {p.all(sum)},
         .launch = [=, run = kernels.row_sum](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(exponentials), bound.at<float>(sum), rows, shape.keys);
         }});
  p.add({.name = "divide",
         .kernel = "naive_divide_rows",
         .reads = {p.all(exponentials), p.all(sum)},
         .writes = {p.all(probabilities)},
         .launch = [=, run = kernels.divide_rows](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(exponentials), bound.at<float>(sum), bound.at(probabilities), rows, shape.keys);
         }});
  p.add({.name = "weighted values",
         .kernel = "naive_weighted_values",
         .reads = {p.all(probabilities), p.all(v)},
         .writes = {p.all(out)},
         .flops = flops,
         .launch = [=, run = kernels.weighted_values](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at(probabilities), bound.at(v), bound.at(out), shape);
         }});
}

void library_attention(const Planning& p, TensorId q, TensorId k, Columns v, TensorId out) {
  const TensorId scores = pairs(p, "scores", DType::fp32);
  const TensorId probabilities = pairs(p, "probabilities", p.c.dtype);
  const LibraryProducts products(p.c);
  add_product(p, products.scores(q, k, scores));
  p.add({.name = "masked softmax",
         .kernel = "vector_masked_softmax",
         .reads = {Plan::part(scores, visible_scores(p.c) * bytes_of(DType::fp32))},
         .writes = {p.all(probabilities)},
         .launch = [=, run = elementwise(p.target.backend).masked_softmax, dtype = p.c.dtype, shape = p.c.attention()](
                       const Exec& exec, const Bindings& bound) {
           run(exec, dtype, bound.at<float>(scores), bound.at(probabilities), shape);
         }});
  add_product(p, products.values(probabilities, v, out));
}

void fused_attention(const Planning& p, TensorId q, TensorId k, Columns v, TensorId out) {
  AttentionShape shape = p.c.attention();
  shape.value_stride = v.stride;
  const kernels::AttentionKernel kernel = choose_attention(p.target, p.choice, p.c.dtype, shape, v.offset);
  p.add({.name = "attention",
         .kernel = std::string(name_of(kernel)),
         .reads = {p.all(q), p.all(k), p.part(v.tensor, p.c.batch * shape.keys, shape.key_stride())},
         .writes = {p.all(out)},
         .flops = attention_flops(p.c),
         .launch = [=, run = fused(p.target.backend).attention, dtype = p.c.dtype](const Exec& exec,
                                                                                   const Bindings& bound) {
           run(exec, kernel, dtype, bound.at(q), bound.at(k), v.at(bound, dtype), bound.at(out), shape);
         }});
}

namespace {

void append_naive(const Planning& p) {
  naive_attention(p, p.tensor("q"), p.tensor("k"), p.tensor("v"), p.tensor("out"));
}

template <auto piece>
void append(const Planning& p) {
  piece(p, p.tensor("q"), p.tensor("k"), p.columns(p.tensor("v")), p.tensor("out"));
}

const Registration entry(standard_variants({.op = Op::attention,
                                            .has_product = true,
                                            .naive = append_naive,
                                            .library = append<library_attention>,
                                            .fused = append<fused_attention>}));

}  // namespace
}  // namespace fusebench
