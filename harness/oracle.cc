// Hands a case's inputs to the reference, and brings home what it computes.
#include "harness/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "reference/ops.h"

namespace fusebench {
namespace {

using reference::Index;
using reference::Rounding;
using reference::Source;
using reference::Stack;

// Rows computed at a time: bounds the memory of intermediates.
constexpr std::size_t kChunk = 256;

Rounding storage_of(DType dtype) {
  switch (dtype) {
    case DType::fp16:
      return Rounding::fp16;
    case DType::bf16:
      return Rounding::bf16;
    case DType::fp32:
      return Rounding::fp32;
  }
  throw std::logic_error("no such dtype");
}

/// `tensor` must outlive the source.
Source source_of(const HostTensor& tensor) {
  const auto read = [&tensor](Index first_row, Index rows, Index first_col, Index cols, double* out) {
    const std::int64_t element = bytes_of(tensor.dtype);
    for (Index r = 0; r < rows; ++r) {
      const std::int64_t start = (first_row + r) * tensor.cols + first_col;
      load(tensor.dtype, tensor.data.data() + start * element, cols, out + r * cols);
    }
  };
  return {.rows = tensor.rows, .cols = tensor.cols, .read = read};
}

/// One output of the op for a chunk of rows: lane 0 exact, lane 1 the replica.
struct NamedStack {
  std::string_view name;
  Stack stack;
};

/// A case's inputs as the reference wants them.
class Oracle {
 public:
  Oracle(const Case& c, const InputSet& inputs)
      : case_(c), inputs_(inputs), roundings_{Rounding::none, storage_of(c.dtype)} {}

  std::vector<NamedStack> compute(const std::vector<Index>& tokens) const {
    switch (case_.op) {
      case Op::rmsnorm:
        return {{"y", reference::rmsnorm(rows("x", tokens), vector("weight"), case_.eps)}};
      case Op::add_rmsnorm: {
        reference::SumAndNorm out = reference::add_rmsnorm(rows("x", tokens), rows("r", tokens), vector("weight"),
                                                           case_.eps, storage_of(case_.dtype));
        return {{"h", std::move(out.h)}, {"y", std::move(out.y)}};
      }
      case Op::rope:
        return {{"q_out", reference::rope(rows("q", tokens), phases(), positions(tokens))},
                {"k_out", reference::rope(rows("k", tokens), phases(), positions(tokens))}};
      case Op::attention: {
        const reference::AttentionShape shape = attention();
        return {
            {"out", reference::attention(rows("q", tokens), tokens, shape, reference::head_reader(source("k"), shape),
                                         reference::head_reader(source("v"), shape))}};
      }
      case Op::qkv: {
        reference::Qkv out = reference::qkv(rows("x", tokens), qkv_weights("norm_weight"), positions(tokens));
        return {{"q", std::move(out.q)}, {"k", std::move(out.k)}, {"v", std::move(out.v)}};
      }
      case Op::attn_out:
        return {{"out", reference::attn_out(rows("a", tokens), source("wo"), rows("x", tokens))}};
      case Op::swiglu:
        return {{"y", reference::swiglu(rows("g", tokens), rows("u", tokens))}};
      case Op::mlp:
        return {{"out", reference::mlp(rows("h", tokens), mlp_weights("norm_weight"))}};
      case Op::block:
        return block(tokens);
    }
    throw std::logic_error("no such op");
  }

 private:
  const HostTensor& tensor(std::string_view name) const {
    const auto found = inputs_.find(name);
    if (found == inputs_.end()) throw std::invalid_argument(fmt::format("the inputs lack '{}'", name));
    return found->second;
  }

  Source source(std::string_view name) const { return source_of(tensor(name)); }
  Stack rows(std::string_view name, const std::vector<Index>& tokens) const {
    return reference::spread(reference::gather(source(name), tokens), roundings_);
  }
  reference::Vector vector(std::string_view name) const { return source(name).all().reshaped(); }

  reference::Phases phases() const {
    return {.cos = source("cos").all(),
            .sin = source("sin").all(),
            .pairs = case_.rope == Pairing::half ? reference::Pairs::halves : reference::Pairs::neighbours};
  }
  std::vector<Index> positions(const std::vector<Index>& tokens) const {
    std::vector<Index> out(tokens.size());
    std::transform(tokens.begin(), tokens.end(), out.begin(), [&](Index token) { return token % case_.seq; });
    return out;
  }

  reference::AttentionShape attention() const {
    return {.seq = case_.seq,
            .keys = case_.keys(),
            .heads = case_.heads,
            .kv_heads = case_.kv_heads,
            .head_dim = case_.head_dim(),
            .causal = case_.causal};
  }
  reference::QkvWeights qkv_weights(std::string_view norm) const {
    return {.norm = vector(norm),
            .eps = case_.eps,
            .wq = source("wq"),
            .wk = source("wk"),
            .wv = source("wv"),
            .phases = phases()};
  }
  reference::MlpWeights mlp_weights(std::string_view norm) const {
    return {.norm = vector(norm),
            .eps = case_.eps,
            .w_gate = source("w_gate"),
            .w_up = source("w_up"),
            .w_down = source("w_down")};
  }

  std::vector<NamedStack> block(const std::vector<Index>& tokens) const {
    reference::BlockInputs in{.x = source("x"), .past_k = {}, .past_v = {}};
    if (case_.past > 0) {
      in.past_k = source("k");
      in.past_v = source("v");
    }
    const reference::BlockWeights weights{
        .qkv = qkv_weights("norm1_weight"), .wo = source("wo"), .mlp = mlp_weights("norm2_weight")};
    reference::Block out = reference::block(in, weights, attention(), tokens, roundings_);
    std::vector<NamedStack> stacks;
    stacks.push_back({"out", std::move(out.out)});
    if (case_.past > 0) {
      stacks.push_back({"k", std::move(out.k)});
      stacks.push_back({"v", std::move(out.v)});
    }
    return stacks;
  }

  const Case& case_;
  const InputSet& inputs_;
  std::vector<Rounding> roundings_;
};

void check_rows(const Case& c, const std::vector<std::int64_t>& rows) {
  for (const std::int64_t row : rows) {
    if (row >= 0 && row < c.tokens()) continue;
    throw std::out_of_range(fmt::format("row {} of {}, which has {}", row, case_id(c), c.tokens()));
  }
}

/// The op's outputs with room for the rows.
Expected empty_expected(const Case& c, const std::vector<std::int64_t>& rows) {
  Expected out{.rows = rows, .tensors = {}};
  for (const TensorSpec& spec : spec_of(c).tensors) {
    if (spec.role == Role::input) continue;
    const std::size_t size = rows.size() * static_cast<std::size_t>(spec.cols);
    out.tensors.push_back({.name = spec.name,
                           .cols = spec.cols,
                           .expected = std::vector<double>(size),
                           .replica = std::vector<double>(size)});
  }
  return out;
}

void copy_chunk(const std::vector<NamedStack>& stacks, std::size_t first_row, Expected& out) {
  for (ExpectedTensor& tensor : out.tensors) {
    const auto computed =
        std::find_if(stacks.begin(), stacks.end(), [&](const NamedStack& s) { return s.name == tensor.name; });
    if (computed == stacks.end()) throw std::logic_error("the reference lacks the output " + tensor.name);
    const Stack& stack = computed->stack;
    const Index elements = stack.rows() * stack.cols();
    const auto at = static_cast<std::ptrdiff_t>(first_row) * tensor.cols;
    std::copy_n(stack.values.data(), elements, tensor.expected.begin() + at);
    std::copy_n(stack.values.data() + elements, elements, tensor.replica.begin() + at);
  }
}

}  // namespace

Expected compute_expected(const Case& c, const InputSet& inputs, const std::vector<std::int64_t>& rows) {
  check_rows(c, rows);
  Expected out = empty_expected(c, rows);
  const Oracle oracle(c, inputs);
  // The block cuts its rows by itself, so that it projects keys and values once.
  const std::size_t chunk = c.op == Op::block ? std::max<std::size_t>(rows.size(), 1) : kChunk;
  for (std::size_t first = 0; first < rows.size(); first += chunk) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + chunk, rows.size()));
    copy_chunk(oracle.compute(std::vector<Index>(begin, end)), first, out);
  }
  return out;
}

}  // namespace fusebench
