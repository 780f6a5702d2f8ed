// Runs a CPU plan on plain host buffers, bound by hand: every op tensor is a buffer of its own, and the workspace is
// one arena laid out as a device's would be, full of NaN before each launch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "harness/plan.h"
#include "harness/tensor.h"
#include "variants/registry.h"

namespace fusebench::testing {

using Buffers = std::map<std::string, std::vector<float>>;

inline std::vector<float> nan_filled(std::int64_t bytes) {
  return std::vector<float>(static_cast<std::size_t>((bytes + 3) / 4), std::numeric_limits<float>::quiet_NaN());
}

/// An op's tensors: inputs drawn, outputs and a cache's new rows NaN.
inline Buffers op_buffers(const Case& c) {
  const OpSpec spec = spec_of(c);
  const InputSet inputs = read_inputs(spec, DrawnSource(c));
  Buffers buffers;
  for (const TensorSpec& tensor : spec.tensors) {
    std::vector<float>& buffer = buffers[tensor.name] = nan_filled(tensor.bytes());
    if (tensor.role == Role::output) continue;
    const auto* drawn = reinterpret_cast<const float*>(inputs.find(tensor.name)->second.data.data());
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      const RowMap map = tensor.output_rows;
      if (tensor.role == Role::cache && row % map.capacity >= map.past) continue;
      std::copy_n(drawn + row * tensor.cols, tensor.cols, buffer.begin() + row * tensor.cols);
    }
  }
  return buffers;
}

/// Runs preparation and two launches, so that a step which reads what an earlier launch left shows.
inline void run_plan(const Plan& plan, Buffers& buffers) {
  const Layout layout = lay_out_workspace(plan, 64);
  std::vector<float> arena;
  std::vector<std::vector<float>> prepared;
  std::vector<void*> addresses;
  arena = nan_filled(layout.bytes);
  for (std::size_t i = 0; i < plan.tensors().size(); ++i) {
    const PlanTensor& tensor = plan.tensors()[i];
    if (tensor.storage == Storage::op) {
      addresses.push_back(buffers.at(tensor.name).data());
    } else if (tensor.storage == Storage::prepared) {
      addresses.push_back(prepared.emplace_back(nan_filled(tensor.bytes())).data());
    } else {
      addresses.push_back(reinterpret_cast<std::byte*>(arena.data()) + layout.offsets[i]);
    }
  }
  const Bindings bound(addresses);
  for (const Step& step : plan.preparation()) step.launch({}, bound);
  for (int launch = 0; launch < 2; ++launch) {
    std::fill(arena.begin(), arena.end(), std::numeric_limits<float>::quiet_NaN());
    for (const Step& step : plan.steps()) step.launch({}, bound);
  }
}

inline Plan plan_of(const Case& c, const std::string& variant, const Target& target = {}) {
  return registry().find(c.op, target.backend, variant)->plan(c, target);
}

/// The variants that take the case, with their plans; those that name a limit are left out.
inline std::map<std::string, Plan> plans_of(const Case& c, const Target& target = {}) {
  std::map<std::string, Plan> plans;
  for (const Variant* variant : registry().all(c.op, target.backend)) {
    try {
      plans.emplace(variant->name, variant->plan(c, target));
    } catch (const Unsupported&) {
      continue;
    }
  }
  return plans;
}

/// An op's tensors after a variant has run on them.
inline Buffers run_on_host(const Case& c, const Plan& plan) {
  Buffers buffers = op_buffers(c);
  run_plan(plan, buffers);
  return buffers;
}
inline Buffers run_variant(const Case& c, const std::string& variant) { return run_on_host(c, plan_of(c, variant)); }

/// |a - b| over |b|, both as vectors; infinite where either holds a NaN.
inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::isfinite(error) ? std::sqrt(error / norm) : std::numeric_limits<double>::infinity();
}

}  // namespace fusebench::testing
