// q [T, H, d], k [T, Hkv, d], cos and sin [S, d/2] -> both rotated
#include "variants/pieces.h"
#include "variants/standard.h"

namespace fusebench {
namespace {

using Binary = decltype(kernels::Primitives::add);

/// The steps of the seed's rotation of one tensor, on halves of its heads.
class NaiveRotation {
 public:
  NaiveRotation(const Planning& p, const RopeTask& task, Phases phases)
      : p_(p.within(task.name)),
        kernels_(primitives(p.target.backend)),
        task_(task),
        phases_(phases),
        rows_(p.c.tokens()),
        half_dim_(p.c.head_dim() / 2) {}

  void append() {
    const TensorId first = half("first");
    const TensorId second = half("second");
    split(first, second);
    const TensorId first_cos = by_phase("first * cos", first, phases_.cos);
    const TensorId second_sin = by_phase("second * sin", second, phases_.sin);
    const TensorId first_sin = by_phase("first * sin", first, phases_.sin);
    const TensorId second_cos = by_phase("second * cos", second, phases_.cos);
    const TensorId new_first = binary("difference", "naive_subtract", kernels_.subtract, first_cos, second_sin);
    const TensorId new_second = binary("sum", "naive_add", kernels_.add, first_sin, second_cos);
    merge(new_first, new_second);
  }

 private:
  TensorId half(const std::string& name) { return p_.workspace(name, p_.c.dtype, rows_, task_.heads * half_dim_); }
  Access elements(TensorId id) const { return p_.part(id, rows_, task_.heads * 2 * half_dim_); }

  void split(TensorId first, TensorId second) {
    p_.add(
        {.name = "split",
         .kernel = "naive_split_pairs",
         .reads = {elements(task_.x.tensor)},
         .writes = {p_.all(first), p_.all(second)},
         .launch = [=, run = kernels_.split_pairs, dtype = p_.c.dtype, pairing = p_.c.rope, x = task_.x, rows = rows_,
                    heads = task_.heads, half_dim = half_dim_](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, pairing, x.at(bound, dtype), bound.at(first), bound.at(second), rows, heads, half_dim);
         }});
  }

  TensorId by_phase(const std::string& name, TensorId x, TensorId table) {
    const TensorId out = half(name);
    p_.add({.name = name,
            .kernel = "naive_multiply_by_phase",
            .reads = {p_.all(x), p_.all(table)},
            .writes = {p_.all(out)},
            .launch = [=, run = kernels_.multiply_by_phase, dtype = p_.c.dtype, rows = rows_, heads = task_.heads,
                       half_dim = half_dim_, seq = p_.c.seq](const Exec& exec, const Bindings& bound) {
              run(exec, dtype, bound.at(x), bound.at<float>(table), bound.at(out), rows, heads, half_dim, seq);
            }});
    return out;
  }

  TensorId binary(const std::string& name, std::string kernel, Binary run, TensorId a, TensorId b) {
    const TensorId out = half(name);
    p_.add({.name = name,
            .kernel = std::move(kernel),
            .reads = {p_.all(a), p_.all(b)},
            .writes = {p_.all(out)},
            .launch = [=, dtype = p_.c.dtype, n = rows_ * task_.heads * half_dim_](const Exec& exec,
                                                                                   const Bindings& bound) {
              run(exec, dtype, bound.at(a), bound.at(b), bound.at(out), n);
            }});
    return out;
  }

  void merge(TensorId first, TensorId second) {
    p_.add({.name = "interleave",
            .kernel = "naive_merge_pairs",
            .reads = {p_.all(first), p_.all(second)},
            .writes = {elements(task_.out)},
            .launch = [=, run = kernels_.merge_pairs, dtype = p_.c.dtype, pairing = p_.c.rope, out = task_.out,
                       rows = rows_, heads = task_.heads, half_dim = half_dim_,
                       out_rows = task_.out_rows](const Exec& exec, const Bindings& bound) {
              run(exec, dtype, pairing, bound.at(first), bound.at(second), bound.at(out), rows, heads, half_dim,
                  out_rows);
            }});
  }

  Planning p_;
  const kernels::Primitives& kernels_;
  RopeTask task_;
  Phases phases_;
  std::int64_t rows_;
  std::int64_t half_dim_;
};

}  // namespace

void naive_rope(const Planning& p, const RopeTask& task, Phases phases) { NaiveRotation(p, task, phases).append(); }

void library_rope(const Planning& p, const RopeTask& task, Phases phases) {
  const std::int64_t rows = p.c.tokens();
  const std::int64_t head_dim = p.c.head_dim();
  p.add({.name = "rope " + task.name,
         .kernel = "vector_rope",
         .reads = {p.part(task.x.tensor, rows, task.heads * head_dim), p.all(phases.cos), p.all(phases.sin)},
         .writes = {p.part(task.out, rows, task.heads * head_dim)},
         .launch = [=, run = elementwise(p.target.backend).rope, dtype = p.c.dtype, pairing = p.c.rope, seq = p.c.seq,
                    x = task.x, heads = task.heads, out = task.out,
                    out_rows = task.out_rows](const Exec& exec, const Bindings& bound) {
           run(exec, dtype, pairing, x.at(bound, dtype), x.stride, bound.at<float>(phases.cos),
               bound.at<float>(phases.sin), bound.at(out), rows, heads, head_dim, seq, out_rows);
         }});
}

namespace {

template <auto rope>
void append_each(const Planning& p) {
  const Case& c = p.c;
  const Phases phases{p.tensor("cos"), p.tensor("sin")};
  const auto dense = [&](const char* name, std::int64_t heads) {
    return Columns{.tensor = p.tensor(name), .offset = 0, .stride = heads * c.head_dim()};
  };
  rope(p,
       {.name = "q", .x = dense("q", c.heads), .heads = c.heads, .out = p.tensor("q_out"), .out_rows = p.same_rows()},
       phases);
  rope(p,
       {.name = "k",
        .x = dense("k", c.kv_heads),
        .heads = c.kv_heads,
        .out = p.tensor("k_out"),
        .out_rows = p.same_rows()},
       phases);
}

void append_fused(const Planning& p) {
  const TensorId q = p.tensor("q");
  const TensorId k = p.tensor("k");
  const TensorId cos = p.tensor("cos");
  const TensorId sin = p.tensor("sin");
  const TensorId q_out = p.tensor("q_out");
  const TensorId k_out = p.tensor("k_out");
  p.add({.name = "rope q and k",
         .kernel = "fused_rope",
         .reads = {p.all(q), p.all(k), p.all(cos), p.all(sin)},
         .writes = {p.all(q_out), p.all(k_out)},
         .launch = [=, run = fused(p.target.backend).rope, c = p.c](const Exec& exec, const Bindings& bound) {
           run(exec, c.dtype, c.rope, bound.at(q), bound.at(k), bound.at<float>(cos), bound.at<float>(sin),
               bound.at(q_out), bound.at(k_out), c.tokens(), c.heads, c.kv_heads, c.head_dim(), c.seq);
         }});
}

const Registration entry(standard_variants({.op = Op::rope,
                                            .has_product = false,
                                            .naive = append_each<naive_rope>,
                                            .library = append_each<library_rope>,
                                            .fused = append_fused}));

}  // namespace
}  // namespace fusebench
