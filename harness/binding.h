// A case's tensors on a device, and a plan bound to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/config.h"
#include "harness/device.h"
#include "harness/plan.h"
#include "harness/tensor.h"

namespace fusebench {

/// The op's tensors, shared by every variant of the case, between guard bands; and one workspace arena, shared too,
/// since an intermediate lives only while its plan runs.
class CaseMemory {
 public:
  /// Inputs are copied in; outputs and a cache's new rows start as NaN. Every op tensor's base is a multiple of 256
  /// plus `base_offset_elements`.
  CaseMemory(Device& device, const OpSpec& spec, const InputSet& inputs, std::int64_t base_offset_elements = 0);

  static std::int64_t bytes_needed(const OpSpec& spec);  ///< without workspace

  /// With room for a guard. Before any plan is bound: addresses change.
  void reserve_workspace(std::int64_t bytes);
  const DeviceMemory& workspace() const { return workspace_; }
  std::byte* address(std::string_view name) const;

  void poison_outputs();  ///< with NaN, a cache's new rows too
  /// A few of their elements alone, drawn by `seed`: for a launch that must find the cache as another left it.
  void poison_some_outputs(std::uint64_t seed);
  std::uint64_t input_checksum() const;   ///< of inputs and of a cache's past rows
  std::uint64_t output_checksum() const;  ///< of outputs and of a cache's new rows
  /// The output tensor as [tokens, cols]: a cache's new rows alone.
  HostTensor read_output(const TensorSpec& spec) const;
  /// Names the tensor beside which something was written, and where; empty when all guard bands are whole.
  std::string damage() const;
  void restore(const InputSet& inputs);  ///< inputs and guard bands, after a launch that wrote where it must not

 private:
  struct Place {
    std::int64_t offset = 0;  ///< of the tensor; its guards lie before and behind it
    TensorSpec spec;
  };
  template <class Visit>
  void for_each_block(const Place& place, bool outputs, Visit visit) const;

  Device& device_;
  DeviceMemory arena_;
  DeviceMemory workspace_;
  std::vector<Place> places_;
};

/// A plan with addresses: ready to run on its device.
class BoundPlan {
 public:
  /// The memory's workspace must hold workspace_bytes(plan).
  BoundPlan(Device& device, Plan plan, const CaseMemory& memory);

  static std::int64_t workspace_bytes(const Plan& plan);
  static std::int64_t prepared_bytes(const Plan& plan);

  /// Runs the preparation steps, then tunes for launches from that state of the cache.
  void prepare(CacheMode cache = CacheMode::cold);
  double prepare_us() const { return prepare_us_; }
  /// Fills the plan's intermediates with NaN, so that those of an earlier launch cannot stand in for one that is not
  /// written; no other plan's, so that what is hot stays so. Behind them stands a guard.
  void poison_workspace() const;
  void poison_some_workspace(std::uint64_t seed) const;  ///< see CaseMemory::poison_some_outputs
  void launch() const;
  void launch_step(std::size_t index) const;
  /// What a launch since poison_workspace wrote past the plan's own memory; empty when the guards are whole.
  std::string damage() const;
  bool prepared_is_unchanged() const;  ///< since the preparation steps were done
  const Plan& plan() const { return plan_; }

 private:
  Device& device_;
  Plan plan_;
  std::int64_t workspace_bytes_ = 0;
  std::byte* workspace_ = nullptr;  // the case's
  DeviceMemory prepared_;
  Bindings bindings_;
  std::uint64_t prepared_checksum_ = 0;
  double prepare_us_ = 0;
};

}  // namespace fusebench
