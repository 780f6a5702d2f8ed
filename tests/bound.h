// A plan of a test's own steps, bound to memory: for what runs a plan and does not ask what it computes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/binding.h"

namespace fusebench::testing {

class BoundSteps {
 public:
  using Named = std::pair<std::string, std::function<void()>>;

  BoundSteps(Device& device, const std::vector<Named>& steps) {
    const Case c = canonical({.op = Op::rmsnorm, .dtype = DType::fp32, .dim = 64, .seq = 2});
    const OpSpec spec = spec_of(c);
    Plan plan(spec);
    for (const auto& [name, work] : steps) {
      plan.add({.name = name, .kernel = name, .launch = [work = work](const Exec&, const Bindings&) { work(); }});
    }
    memory_.emplace(device, spec, read_inputs(spec, DrawnSource(c)));
    memory_->reserve_workspace(0);
    bound_.emplace(device, std::move(plan), *memory_);
  }

  const BoundPlan& plan() const { return *bound_; }

 private:
  std::optional<CaseMemory> memory_;
  std::optional<BoundPlan> bound_;
};

}  // namespace fusebench::testing
