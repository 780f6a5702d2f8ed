#include "harness/case_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fusebench {
namespace {

template <std::int64_t Case::*kField, std::int64_t kLeast>
void set_size(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.*kField = context.yaml.integer(value, key, kLeast);
}

void set_op(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  std::vector<std::pair<std::string_view, Op>> ops;
  for (const Op op : kOps) ops.emplace_back(name_of(op), op);
  c.op = context.yaml.one_of(value, key, ops);
}

void set_model(CaseContext& context, std::string_view, const YamlNode& value, Case& c) {
  const Model& model = context.model(value);
  c.dim = model.dim;
  c.hidden = model.hidden;
  c.heads = model.heads;
  c.kv_heads = model.kv_heads;
  c.rope_theta = model.rope_theta;
  c.rope = model.rope;
  c.eps = model.eps;
  c.causal = model.causal;
}

void set_causal(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.causal = context.yaml.boolean(value, key);
}

void set_rope(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.rope = context.yaml.one_of<Pairing>(value, key, {{"interleaved", Pairing::interleaved}, {"half", Pairing::half}});
}

void set_rope_theta(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.rope_theta = context.yaml.number(value, key);
  if (c.rope_theta < 1) {
    throw context.yaml.error(value, key, fmt::format("{} is too small; give a number of at least 1", value.text));
  }
}

void set_eps(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.eps = context.yaml.number(value, key);
  // kernels take it in fp32, where it must be neither 0 nor infinite
  using Fp32 = std::numeric_limits<float>;
  if (c.eps < Fp32::min() || c.eps > Fp32::max()) {
    throw context.yaml.error(value, key, fmt::format("{} does not fit fp32; give 1.2e-38 to 3.4e38", value.text));
  }
}

void set_dtype(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.dtype = context.yaml.one_of<DType>(
      value, key,
      {{"fp16", DType::fp16}, {"bf16", DType::bf16}, {"fp32", DType::fp32}, {"auto", context.automatic_dtype}});
}

void set_inputs(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.inputs = context.yaml.one_of<Inputs>(value, key, {{"balanced", Inputs::balanced}, {"seed", Inputs::seed}});
}

void set_seed(CaseContext& context, std::string_view key, const YamlNode& value, Case& c) {
  c.seed = context.yaml.unsigned_integer(value, key);
}

}  // namespace

const Model& CaseContext::model(const YamlNode& node) {
  const std::string name = yaml.text(node, "model");
  if (models_.empty()) models_ = load_models();
  std::vector<std::string_view> known;
  for (const Model& model : models_) {
    if (model.name == name) return model;
    known.push_back(model.name);
  }
  throw yaml.unknown_value(node, "model", known);
}

const std::vector<CaseKey>& case_keys() {
  static const std::vector<CaseKey> keys = {
      // name, in defaults, in model, used by
      {"op", false, false, nullptr, set_op},
      {"model", false, false, nullptr, set_model},
      {"dim", true, true, &OpUses::dim, set_size<&Case::dim, 1>},
      {"hidden", true, true, &OpUses::hidden, set_size<&Case::hidden, 1>},
      {"heads", true, true, &OpUses::heads, set_size<&Case::heads, 1>},
      {"kv_heads", true, true, &OpUses::heads, set_size<&Case::kv_heads, 1>},
      {"batch", true, false, nullptr, set_size<&Case::batch, 1>},
      {"seq", true, false, nullptr, set_size<&Case::seq, 1>},
      {"past", true, false, &OpUses::past, set_size<&Case::past, 0>},
      {"causal", true, true, &OpUses::causal, set_causal},
      {"rope", true, true, &OpUses::rope, set_rope},
      {"rope_theta", true, true, &OpUses::rope, set_rope_theta},
      {"eps", true, true, &OpUses::eps, set_eps},
      {"dtype", true, false, nullptr, set_dtype},
      {"inputs", true, false, nullptr, set_inputs},
      {"seed", true, false, nullptr, set_seed},
  };
  return keys;
}

const CaseKey& case_key(std::string_view name) {
  const auto& keys = case_keys();
  return *std::find_if(keys.begin(), keys.end(), [&](const CaseKey& key) { return key.name == name; });
}

}  // namespace fusebench
