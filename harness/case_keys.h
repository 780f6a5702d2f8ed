// The keys that make a case: how each is read, where it may stand and which ops use it.
#pragma once

#include <string_view>
#include <vector>

#include "harness/yaml.h"

namespace fusebench {

/// What a key's value is read with. Models are loaded when the first is named.
class CaseContext {
 public:
  CaseContext(const YamlReader& reader, Backend backend) : yaml(reader), automatic_dtype(dtype_of(backend)) {}

  const YamlReader& yaml;
  const DType automatic_dtype;

  const Model& model(const YamlNode& node);

 private:
  static DType dtype_of(Backend backend) { return backend == Backend::cuda ? DType::fp16 : DType::fp32; }

  std::vector<Model> models_;
};

struct CaseKey {
  std::string_view name;
  bool in_defaults;       ///< or in an entry alone
  bool in_model;          ///< a model gives it
  bool OpUses::*used_by;  ///< null: every op uses it
  void (*set)(CaseContext&, std::string_view key, const YamlNode& value, Case&);

  bool is_used_by(Op op) const { return used_by == nullptr || uses_of(op).*used_by; }
};

/// Of an entry, but for `variants`, which is a list and no axis of the sweep.
const std::vector<CaseKey>& case_keys();
const CaseKey& case_key(std::string_view name);

}  // namespace fusebench
