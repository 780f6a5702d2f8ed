// Hands a case's inputs to the reference, and brings home what it computes.
#include "harness/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "reference/ops.h"

namespace fusebench {
namespace {

using reference::Deviation;
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

/// One output of the op for a chunk of rows: lane 0 exact, lane 1, if there is one, the replica.
struct NamedStack {
  std::string_view name;
  Stack stack;
};

using Stacks = std::vector<NamedStack>;

HostTensor constant(const HostTensor& like, double value) {
  HostTensor out(like.dtype, like.rows, like.cols);
  store(out.dtype, std::vector<double>(static_cast<std::size_t>(out.size()), value), out.data.data());
  return out;
}

/// A case's inputs as the reference wants them.
class Oracle {
 public:
  Oracle(const Case& c, const InputSet& inputs, std::vector<Rounding> roundings)
      : case_(c), inputs_(inputs), roundings_(std::move(roundings)) {}

  /// With what a mistake makes of the case and its inputs. Its deviation is for compute.
  Oracle(const Case& c, const InputSet& inputs, std::vector<Rounding> roundings, const Mistake& mistake)
      : Oracle(c, inputs, std::move(roundings)) {
    if (mistake.other_pairing) case_.rope = c.rope == Pairing::half ? Pairing::interleaved : Pairing::half;
    if (!mistake.input.empty()) replaced_.emplace(mistake.input, constant(tensor(mistake.input), mistake.value));
  }

  /// The outputs with each of the deviations.
  std::vector<Stacks> compute(const std::vector<Index>& tokens, const std::vector<Deviation>& deviations) const {
    if (case_.op == Op::block) return block(tokens, deviations);
    std::vector<Stacks> all;
    for (const Deviation deviation : deviations) all.push_back(compute_one(tokens, deviation));
    return all;
  }

 private:
  Stacks compute_one(const std::vector<Index>& tokens, Deviation deviation) const {
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
        reference::AttentionShape shape = attention();
        shape.deviation = deviation;
        return {
            {"out", reference::attention(rows("q", tokens), tokens, shape, reference::head_reader(source("k"), shape),
                                         reference::head_reader(source("v"), shape))}};
      }
      case Op::qkv: {
        reference::Qkv out = reference::qkv(rows("x", tokens), qkv_weights("norm_weight"), positions(tokens));
        return {{"q", std::move(out.q)}, {"k", std::move(out.k)}, {"v", std::move(out.v)}};
      }
      case Op::attn_out:
        return {{"out", reference::attn_out(rows("a", tokens), source("wo"), rows("x", tokens), deviation)}};
      case Op::swiglu:
        return {{"y", reference::swiglu(rows("g", tokens), rows("u", tokens))}};
      case Op::mlp:
        return {{"out", reference::mlp(rows("h", tokens), mlp_weights("norm_weight"), deviation)}};
      case Op::block:
        break;  // computes its deviations together
    }
    throw std::logic_error("no such op");
  }

  const HostTensor& tensor(std::string_view name) const {
    if (const auto replaced = replaced_.find(name); replaced != replaced_.end()) return replaced->second;
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

  std::vector<Stacks> block(const std::vector<Index>& tokens, const std::vector<Deviation>& deviations) const {
    reference::BlockInputs in{.x = source("x"), .past_k = {}, .past_v = {}};
    if (case_.past > 0) {
      in.past_k = source("k");
      in.past_v = source("v");
    }
    const reference::BlockWeights weights{
        .qkv = qkv_weights("norm1_weight"), .wo = source("wo"), .mlp = mlp_weights("norm2_weight")};
    std::vector<Stacks> all;
    for (reference::Block& out : reference::block(in, weights, attention(), tokens, roundings_, deviations)) {
      Stacks& stacks = all.emplace_back();
      stacks.push_back({"out", std::move(out.out)});
      if (case_.past == 0) continue;
      stacks.push_back({"k", std::move(out.k)});
      stacks.push_back({"v", std::move(out.v)});
    }
    return all;
  }

  Case case_;
  const InputSet& inputs_;
  InputSet replaced_;
  std::vector<Rounding> roundings_;
};

void check_rows(const Case& c, const std::vector<std::int64_t>& rows) {
  for (const std::int64_t row : rows) {
    if (row >= 0 && row < c.tokens()) continue;
    throw std::out_of_range(fmt::format("row {} of {}, which has {}", row, case_id(c), c.tokens()));
  }
}

/// The op's outputs with room for the rows.
Expected empty_expected(const Case& c, const std::vector<std::int64_t>& rows, bool has_replica) {
  Expected out{.rows = rows, .tensors = {}};
  for (const TensorSpec& spec : spec_of(c).tensors) {
    if (spec.role == Role::input) continue;
    const std::size_t size = rows.size() * static_cast<std::size_t>(spec.cols);
    out.tensors.push_back({.name = spec.name,
                           .cols = spec.cols,
                           .expected = std::vector<double>(size),
                           .replica = std::vector<double>(has_replica ? size : 0)});
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
    if (stack.lanes() == 1) continue;
    std::copy_n(stack.values.data() + elements, elements, tensor.replica.begin() + at);
  }
}

/// The rows with each of the deviations.
std::vector<Expected> compute_rows(const Oracle& oracle, const Case& c, const std::vector<std::int64_t>& rows,
                                   const std::vector<Deviation>& deviations, bool has_replica) {
  check_rows(c, rows);
  std::vector<Expected> out(deviations.size(), empty_expected(c, rows, has_replica));
  // The block cuts its rows by itself, so that it projects keys and values once.
  const std::size_t chunk = c.op == Op::block ? std::max<std::size_t>(rows.size(), 1) : kChunk;
  for (std::size_t first = 0; first < rows.size(); first += chunk) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + chunk, rows.size()));
    const std::vector<Stacks> computed = oracle.compute(std::vector<Index>(begin, end), deviations);
    for (std::size_t d = 0; d < deviations.size(); ++d) copy_chunk(computed[d], first, out[d]);
  }
  return out;
}

bool is_deviation_alone(const Mistake& mistake) { return !mistake.other_pairing && mistake.input.empty(); }

}  // namespace

Expected compute_expected(const Case& c, const InputSet& inputs, const std::vector<std::int64_t>& rows) {
  const Oracle oracle(c, inputs, {Rounding::none, storage_of(c.dtype)});
  return std::move(compute_rows(oracle, c, rows, {Deviation::none}, true).front());
}

std::vector<Expected> compute_mistaken(const Case& c, const InputSet& inputs, const std::vector<std::int64_t>& rows,
                                       const std::vector<Mistake>& mistakes) {
  const std::vector<Rounding> exact = {Rounding::none};
  std::vector<Expected> out(mistakes.size());
  std::vector<std::size_t> together;  // those that differ in their deviation alone
  std::vector<Deviation> deviations;
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    if (is_deviation_alone(mistakes[i])) {
      together.push_back(i);
      deviations.push_back(mistakes[i].deviation);
    } else {
      const Oracle oracle(c, inputs, exact, mistakes[i]);
      out[i] = std::move(compute_rows(oracle, c, rows, {mistakes[i].deviation}, false).front());
    }
  }
  if (together.empty()) return out;
  std::vector<Expected> computed = compute_rows(Oracle(c, inputs, exact), c, rows, deviations, false);
  for (std::size_t i = 0; i < together.size(); ++i) out[together[i]] = std::move(computed[i]);
  return out;
}

}  // namespace fusebench
