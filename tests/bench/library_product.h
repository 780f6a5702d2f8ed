// What the Hopper product is measured beside: the kernel that the `cublas` variant takes, the best of cuBLASLt's
// heuristics.
#pragma once

#include <functional>
#include <memory>

#include "harness/device.h"
#include "variants/product.h"

namespace fusebench::testing {

/// Launches c[m, n] = a[m, k] · weight[n, k]ᵀ.
inline std::function<void()> best_of_library(Device& device, DType dtype, void* a, void* weight, void* c,
                                             std::int64_t m, std::int64_t n, std::int64_t k) {
  Plan plan{OpSpec{}};
  const TensorId rows = plan.workspace("a", dtype, m, k), weights = plan.workspace("weight", dtype, n, k),
                 out = plan.workspace("c", dtype, m, n);
  Step step;
  implement_cublas_product(plan, dense_product("product", rows, weights, out, m, n, k), step);
  const auto workspace = std::make_shared<DeviceMemory>(device, plan.tensors().back().bytes());
  const Bindings bound({a, weight, c, workspace->data()});
  const Exec exec{Backend::cuda, nullptr};
  step.tune(step, exec, bound, [] {});
  return [launch = step.launch, exec, bound, workspace] { launch(exec, bound); };
}

}  // namespace fusebench::testing
