// What the pieces of a plan share: the plan under construction, the case, and helpers that keep a step's ledger short.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "harness/plan.h"
#include "variants/choose.h"

namespace fusebench {

/// Columns of a tensor's rows, from element `offset` on; one row is `stride` elements from the next.
struct Columns {
  TensorId tensor = 0;
  std::int64_t offset = 0;
  std::int64_t stride = 0;

  void* at(const Bindings& bound, DType dtype) const { return bound.at<std::byte>(tensor) + offset * bytes_of(dtype); }
};

/// Passed to the functions of variants/pieces.h, which append steps to `plan`. Launches outlive it: they capture
/// values.
struct Planning {
  Plan& plan;
  const Case& c;
  const Target& target;
  KernelChoice choice = KernelChoice::best;
  std::string scope = {};  ///< goes before the names of steps and tensors: "mlp."

  Planning within(const std::string& name) const { return {plan, c, target, choice, scope + name + "."}; }

  Step& add(Step step) const {
    step.name = scope + step.name;
    return plan.add(std::move(step));
  }
  Step& add_prepare(Step step) const {
    step.name = scope + step.name;
    return plan.add_prepare(std::move(step));
  }

  TensorId tensor(std::string_view name) const { return plan.op_tensor(name); }
  TensorId workspace(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols) const {
    return plan.workspace(scope + name, dtype, rows, cols);
  }
  TensorId prepared(const std::string& name, std::int64_t rows, std::int64_t cols) const {
    return plan.prepared(scope + name, c.dtype, rows, cols);
  }

  /// Token row t to row t.
  RowMap same_rows() const { return {.seq = c.seq, .capacity = c.seq, .past = 0}; }

  /// All of a tensor's columns.
  Columns columns(TensorId id) const { return {.tensor = id, .offset = 0, .stride = plan.tensor(id).cols}; }

  Access all(TensorId id) const { return plan.all(id); }
  /// `rows` times `cols` of a tensor's elements.
  Access part(TensorId id, std::int64_t rows, std::int64_t cols) const {
    return Plan::part(id, rows * cols * bytes_of(plan.tensor(id).dtype));
  }
};

/// Adds to a product's step what it may split k in, where it has few tiles; what moves through it is not modelled.
inline std::optional<TensorId> part_sums(const Planning& p, kernels::GemmKernel kernel, std::int64_t m, std::int64_t n,
                                         Step& step) {
  const std::int64_t bytes = kernels::part_sums_bytes(p.target.multiprocessors, m, n);
  if (kernel != kernels::GemmKernel::hopper || bytes == 0) return {};
  const TensorId sums = p.workspace(step.name + " sums of parts", DType::fp32, 1, bytes / bytes_of(DType::fp32));
  step.writes.push_back(Plan::part(sums, 0));  // lives in this step
  return sums;
}

/// The kernel with part_sums' memory.
inline kernels::ProductKernel bind(kernels::GemmKernel kernel, std::optional<TensorId> part_sums,
                                   const Bindings& bound) {
  return {kernel, part_sums ? bound.at(*part_sums) : nullptr};
}

inline double product_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

}  // namespace fusebench
