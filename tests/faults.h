// Variants that are wrong on purpose: what a right plan computes, followed by one step that spoils it.
#pragma once

#include <functional>
#include <string>

#include "variants/registry.h"

namespace fusebench::faults {

/// Spoils a launch's result: gets the plan's tensors by name.
using Spoil = std::function<void(const Exec&, const std::function<std::byte*(const char*)>&)>;

inline Variant spoiled(const std::string& name, Op op, Backend backend, Spoil spoil) {
  return {
      .name = name,
      .op = op,
      .backend = backend,
      .dtypes = {DType::fp16, DType::bf16, DType::fp32},
      .plan = [=](const Case& c, const Target& target) {
        Plan plan = registry().find(op, backend, "naive")->plan(c, target);
        plan.add({.name = "spoil", .kernel = "fault", .launch = [plan, spoil](const Exec& exec, const Bindings& at) {
                    spoil(exec, [&](const char* tensor) { return at.at<std::byte>(plan.op_tensor(tensor)); });
                  }});
        return plan;
      }};
}

}  // namespace fusebench::faults
