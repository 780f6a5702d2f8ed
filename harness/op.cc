#include "harness/op.h"

#include <fmt/format.h>

#include <initializer_list>
#include <stdexcept>

namespace fusebench {
namespace {

[[noreturn]] void throw_overflow() {
  throw std::overflow_error("its tensors and the traffic over them pass 2^63 bytes");
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_overflow();
  return sum;
}

std::int64_t checked_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) throw_overflow();
  }
  return product;
}

/// Collects a case's tensors in the order of the signature.
class SpecBuilder {
 public:
  explicit SpecBuilder(const Case& c) : case_(c) {}

  /// One row a token: [B, S, ...inner].
  void tokens(std::string name, Role role, std::vector<std::int64_t> inner) {
    std::vector<std::int64_t> dims = {case_.batch, case_.seq};
    dims.insert(dims.end(), inner.begin(), inner.end());
    add(std::move(name), role, case_.dtype, std::move(dims), 2);
  }

  /// One row a key: [B, P+S, Hkv, d].
  void keys(std::string name, Role role, std::int64_t past_reads = 0) {
    TensorSpec& spec =
        add(std::move(name), role, case_.dtype, {case_.batch, case_.keys(), case_.kv_heads, case_.head_dim()}, 2);
    if (role == Role::input) return;
    const std::int64_t row_bytes = checked_product({case_.kv_heads, case_.head_dim(), bytes_of(case_.dtype)});
    spec.output_rows = case_.kv_rows();
    spec.read_bytes = checked_product({case_.batch, past_reads, row_bytes});
    spec.write_bytes = checked_product({case_.batch, case_.seq, row_bytes});
  }

  void weight(std::string name, std::int64_t out, std::int64_t in) {
    add(std::move(name), Role::input, case_.dtype, {out, in}, 1);
  }

  void norm_weight(std::string name) { add(std::move(name), Role::input, case_.dtype, {case_.dim}, 0); }

  void phases() {
    for (const char* name : {"cos", "sin"}) {
      add(name, Role::input, DType::fp32, {case_.seq, case_.head_dim() / 2}, 1);
    }
  }

  void flops(double count) { spec_.flops += count; }

  /// [m, k] · [n, k]ᵀ
  void product_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
    flops(2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  }

  /// An intermediate that some variant stores: its bytes must be countable too.
  void intermediate(std::initializer_list<std::int64_t> factors) {
    intermediate_bytes_ = checked_add(intermediate_bytes_, checked_product(factors));
  }

  OpSpec finish() {
    std::int64_t stored = intermediate_bytes_;
    for (const TensorSpec& tensor : spec_.tensors) {
      spec_.compulsory_bytes = checked_add(spec_.compulsory_bytes, checked_add(tensor.read_bytes, tensor.write_bytes));
      spec_.compulsory_write_bytes += tensor.write_bytes;
      stored = checked_add(stored, tensor.bytes());
    }
    // No plan touches a tensor more often than this, so that a ledger's sum cannot overflow either.
    constexpr std::int64_t kMostTouches = 32;
    checked_product({stored, kMostTouches});
    return std::move(spec_);
  }

 private:
  /// The first `row_dims` extents are rows, the others columns.
  TensorSpec& add(std::string name, Role role, DType dtype, std::vector<std::int64_t> dims, std::size_t row_dims) {
    TensorSpec spec;
    spec.name = std::move(name);
    spec.role = role;
    spec.dtype = dtype;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      std::int64_t& extent = i < row_dims ? spec.rows : spec.cols;
      extent = checked_product({extent, dims[i]});
    }
    const std::int64_t bytes = checked_product({spec.rows, spec.cols, bytes_of(dtype)});
    if (role == Role::input) spec.read_bytes = bytes;
    if (role == Role::output) spec.write_bytes = bytes;
    spec.output_rows = {.seq = case_.seq, .capacity = case_.seq, .past = 0};
    spec.dims = std::move(dims);
    return spec_.tensors.emplace_back(std::move(spec));
  }

  const Case& case_;
  OpSpec spec_;
  std::int64_t intermediate_bytes_ = 0;
};

/// So that Case's own sums and products, and those below, cannot overflow.
void check_extents(const Case& c) {
  for (const std::int64_t extent : {c.dim, c.hidden, c.batch, c.seq, c.past}) checked_product({extent, 32});
  checked_product({c.batch, checked_add(c.past, c.seq)});
}

/// Query and key pairs of one head of one sequence.
double visible_pairs(const Case& c) {
  const auto seq = static_cast<double>(c.seq);
  const auto past = static_cast<double>(c.past);
  return c.causal ? seq * past + seq * (seq + 1) / 2 : seq * (past + seq);
}

std::int64_t query_columns(const Case& c) { return c.heads * c.head_dim(); }
std::int64_t key_columns(const Case& c) { return c.kv_heads * c.head_dim(); }

void add_qkv_weights(SpecBuilder& build, const Case& c) {
  build.weight("wq", query_columns(c), c.dim);
  build.weight("wk", key_columns(c), c.dim);
  build.weight("wv", key_columns(c), c.dim);
  build.product_flops(c.tokens(), query_columns(c) + 2 * key_columns(c), c.dim);
}

void add_attn_out_weight(SpecBuilder& build, const Case& c) {
  build.weight("wo", c.dim, c.dim);
  build.product_flops(c.tokens(), c.dim, c.dim);
}

void add_mlp_weights(SpecBuilder& build, const Case& c) {
  build.weight("w_gate", c.hidden, c.dim);
  build.weight("w_up", c.hidden, c.dim);
  build.weight("w_down", c.dim, c.hidden);
  build.product_flops(c.tokens(), 3 * c.hidden, c.dim);
  build.intermediate({c.batch, c.seq, c.hidden, 16});  // four of [T, F], in fp32 at the widest
}

void add_attention_work(SpecBuilder& build, const Case& c) {
  // both products: q·kᵀ and probabilities·v
  build.flops(4 * static_cast<double>(c.batch) * static_cast<double>(c.heads) * visible_pairs(c) *
              static_cast<double>(c.head_dim()));
  build.intermediate({c.batch, c.heads, c.seq, c.keys(), 4});
}

}  // namespace

std::string_view name_of(Op op) {
  switch (op) {
    case Op::rmsnorm:
      return "rmsnorm";
    case Op::add_rmsnorm:
      return "add_rmsnorm";
    case Op::rope:
      return "rope";
    case Op::attention:
      return "attention";
    case Op::qkv:
      return "qkv";
    case Op::attn_out:
      return "attn_out";
    case Op::swiglu:
      return "swiglu";
    case Op::mlp:
      return "mlp";
    case Op::block:
      return "block";
  }
  throw std::logic_error("no such op");
}

OpUses uses_of(Op op) {
  switch (op) {
    case Op::rmsnorm:
    case Op::add_rmsnorm:
      return {.dim = true, .eps = true};
    case Op::rope:
      return {.dim = true, .heads = true, .past = true, .rope = true};
    case Op::attention:
      return {.dim = true, .heads = true, .past = true, .causal = true};
    case Op::qkv:
      return {.dim = true, .heads = true, .past = true, .rope = true, .eps = true};
    case Op::attn_out:
      return {.dim = true};
    case Op::swiglu:
      return {.hidden = true};
    case Op::mlp:
      return {.dim = true, .hidden = true, .eps = true};
    case Op::block:
      return {.dim = true, .hidden = true, .heads = true, .past = true, .causal = true, .rope = true, .eps = true};
  }
  throw std::logic_error("no such op");
}

Case canonical(Case c) {
  const OpUses uses = uses_of(c.op);
  const Case defaults;
  if (!uses.dim) c.dim = 0;
  if (!uses.hidden) c.hidden = 0;
  if (!uses.heads) c.heads = c.kv_heads = 0;
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (!uses.past) c.past = 0;
  if (!uses.causal) c.causal = false;
  if (!uses.rope) c.rope = defaults.rope;
  // the seed draws its cos/sin table: no angle is computed
  if (!uses.rope || c.inputs == Inputs::seed) c.rope_theta = defaults.rope_theta;
  if (!uses.eps) c.eps = defaults.eps;
  return c;
}

std::string case_id(const Case& c) {
  const OpUses uses = uses_of(c.op);
  const Case defaults;
  const auto join = [](std::string& text, std::string_view separator, const std::string& part) {
    if (!text.empty()) text += separator;
    text += part;
  };

  std::string sizes;
  if (uses.dim) join(sizes, "-", fmt::format("d{}", c.dim));
  if (uses.hidden) join(sizes, "-", fmt::format("f{}", c.hidden));
  if (uses.heads) join(sizes, "-", fmt::format("h{}-kv{}", c.heads, c.kv_heads));

  std::string extents = fmt::format("b{}-s{}", c.batch, c.seq);
  if (uses.past) join(extents, "-", fmt::format("p{}", c.past));

  std::string conventions;
  if (uses.causal) join(conventions, "-", c.causal ? "causal" : "full");
  if (uses.rope) join(conventions, "-", std::string(name_of(c.rope)));
  if (c.rope_theta != defaults.rope_theta) join(conventions, "-", fmt::format("theta{}", c.rope_theta));
  if (c.eps != defaults.eps) join(conventions, "-", fmt::format("eps{}", c.eps));

  std::string id = fmt::format("{}/{}", name_of(c.op), name_of(c.dtype));
  for (const std::string& segment : {sizes, extents, conventions}) {
    if (!segment.empty()) join(id, "/", segment);
  }
  return fmt::format("{}/{}-{}", id, name_of(c.inputs), c.seed);
}

const TensorSpec& OpSpec::tensor(std::string_view name) const {
  for (const TensorSpec& spec : tensors) {
    if (spec.name == name) return spec;
  }
  throw std::out_of_range(fmt::format("the op has no tensor '{}'", name));
}

OpSpec spec_of(const Case& c) {
  check_extents(c);
  SpecBuilder build(c);
  const Role cache = c.past > 0 ? Role::cache : Role::output;
  switch (c.op) {
    case Op::rmsnorm:
      build.tokens("x", Role::input, {c.dim});
      build.norm_weight("weight");
      build.tokens("y", Role::output, {c.dim});
      break;
    case Op::add_rmsnorm:
      build.tokens("x", Role::input, {c.dim});
      build.tokens("r", Role::input, {c.dim});
      build.norm_weight("weight");
      build.tokens("h", Role::output, {c.dim});
      build.tokens("y", Role::output, {c.dim});
      break;
    case Op::rope:
      build.tokens("q", Role::input, {c.heads, c.head_dim()});
      build.tokens("k", Role::input, {c.kv_heads, c.head_dim()});
      build.phases();
      build.tokens("q_out", Role::output, {c.heads, c.head_dim()});
      build.tokens("k_out", Role::output, {c.kv_heads, c.head_dim()});
      break;
    case Op::attention:
      build.tokens("q", Role::input, {c.heads, c.head_dim()});
      build.keys("k", Role::input);
      build.keys("v", Role::input);
      build.tokens("out", Role::output, {c.heads, c.head_dim()});
      add_attention_work(build, c);
      break;
    case Op::qkv:
      build.tokens("x", Role::input, {c.dim});
      build.norm_weight("norm_weight");
      add_qkv_weights(build, c);
      build.phases();
      build.tokens("q", Role::output, {c.heads, c.head_dim()});
      build.keys("k", cache);
      build.keys("v", cache);
      break;
    case Op::attn_out:
      build.tokens("a", Role::input, {c.dim});
      add_attn_out_weight(build, c);
      build.tokens("x", Role::input, {c.dim});
      build.tokens("out", Role::output, {c.dim});
      break;
    case Op::swiglu:
      build.tokens("g", Role::input, {c.hidden});
      build.tokens("u", Role::input, {c.hidden});
      build.tokens("y", Role::output, {c.hidden});
      break;
    case Op::mlp:
      build.tokens("h", Role::input, {c.dim});
      build.norm_weight("norm_weight");
      add_mlp_weights(build, c);
      build.tokens("out", Role::output, {c.dim});
      break;
    case Op::block:
      build.tokens("x", Role::input, {c.dim});
      build.norm_weight("norm1_weight");
      add_qkv_weights(build, c);
      build.phases();
      add_attn_out_weight(build, c);
      build.norm_weight("norm2_weight");
      add_mlp_weights(build, c);
      if (c.past > 0) {
        build.keys("k", Role::cache, c.past);
        build.keys("v", Role::cache, c.past);
      }
      build.tokens("out", Role::output, {c.dim});
      add_attention_work(build, c);
      break;
  }
  return build.finish();
}

}  // namespace fusebench
