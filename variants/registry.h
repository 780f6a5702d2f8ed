// Who can compute what. A variant enters itself with a Registration at the bottom of its file in variants/; variants
// found at run time (plug-ins, external commands) call Registry::add.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan.h"

namespace fusebench {

/// Plans a case, or throws Unsupported.
using Planner = std::function<Plan(const Case&, const Target&)>;

struct Variant {
  std::string name;
  Op op = Op::rmsnorm;
  Backend backend = Backend::cpu;
  std::vector<DType> dtypes;
  Planner plan;
};

class Registry {
 public:
  void add(Variant variant);  ///< throws std::invalid_argument when op, backend and name are taken
  const Variant* find(Op op, Backend backend, std::string_view name) const;
  /// In the order that reports use: naive, cublas or eigen, cublas_flash or eigen_flash, fused, then the rest by name.
  std::vector<const Variant*> all(Op op, Backend backend) const;
  std::vector<std::string> names(Backend backend) const;

 private:
  std::vector<Variant> variants_;
};

Registry& registry();

/// `const Registration entry(...);` at namespace scope enters variants before main; those of a backend that this build
/// lacks are left out.
struct Registration {
  explicit Registration(const std::vector<Variant>& variants);
};

}  // namespace fusebench
