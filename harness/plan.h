// A plan is what a variant makes of a case: an ordered list of steps over tensors in one arena. Building it allocates
// nothing, so that bytes, launches and memory are known before anything runs.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/op.h"

namespace fusebench {

/// What a variant may ask about the device it plans for.
struct Target {
  Backend backend = Backend::cpu;
  int compute_capability = 0;  ///< 90 for sm_90; 0 on the CPU
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t alignment_bytes = 256;  ///< every tensor's base is a multiple of this
};

/// Thrown by a variant that cannot take a case; `what()` names the limit and becomes the record's reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using TensorId = int;

/// Gives a launch the addresses of the plan's tensors.
class Bindings {
 public:
  explicit Bindings(std::vector<void*> addresses) : addresses_(std::move(addresses)) {}
  Bindings() = default;

  template <class T = void>
  T* at(TensorId id) const {
    return static_cast<T*>(addresses_.at(static_cast<std::size_t>(id)));
  }

 private:
  std::vector<void*> addresses_;
};

using Launch = std::function<void(const Exec&, const Bindings&)>;

/// Bytes of a tensor that a step reads or writes; each counted once, however often the kernel touches them.
struct Access {
  TensorId tensor = 0;
  std::int64_t bytes = 0;
};

/// One launch, seldom a few that a library makes of it.
struct Step {
  std::string name;    ///< what it computes, in the op's words
  std::string kernel;  ///< which kernel does it; tune may refine it (a heuristic's id)
  std::vector<Access> reads;
  std::vector<Access> writes;
  double flops = 0;  ///< of matrix products
  Launch launch;
  int launches = 1;  ///< of kernels; tune may choose to take more
  /// Optional: times candidates on the bound tensors once, before anything is checked, keeps the best for `launch`, and
  /// enters it into the step, which is the one it belongs to: its kernel's name, and its launches, reads and writes
  /// where candidates differ in them. It may overwrite only what the step writes. `before_each` queues what brings the
  /// caches into the state that the candidates are to be timed in.
  std::function<void(Step&, const Exec&, const Bindings&, const std::function<void()>& before_each)> tune;

  std::int64_t bytes_read() const;
  std::int64_t bytes_written() const;
};

enum class Storage : std::uint8_t {
  op,         ///< one of the op's own tensors
  prepared,   ///< made once from weights by a preparation step; lives as long as the plan
  workspace,  ///< an intermediate: memory is shared between tensors whose lives do not overlap
};
std::string_view name_of(Storage storage);

struct PlanTensor {
  std::string name;  ///< one of its own in the plan
  Storage storage = Storage::workspace;
  DType dtype = DType::fp32;
  std::int64_t rows = 1;
  std::int64_t cols = 1;

  std::int64_t bytes() const { return rows * cols * bytes_of(dtype); }
};

class Plan {
 public:
  /// Starts with the op's tensors, in the spec's order.
  explicit Plan(const OpSpec& spec);

  TensorId op_tensor(std::string_view name) const;
  /// Both throw Unsupported where the tensor passes 2^56 bytes.
  TensorId workspace(std::string name, DType dtype, std::int64_t rows, std::int64_t cols);
  TensorId prepared(std::string name, DType dtype, std::int64_t rows, std::int64_t cols);

  /// The whole tensor, or `bytes` of it.
  Access all(TensorId id) const { return {id, tensor(id).bytes()}; }
  static Access part(TensorId id, std::int64_t bytes) { return {id, bytes}; }

  Step& add(Step step);          ///< runs at every launch of the plan
  Step& add_prepare(Step step);  ///< runs once, after binding

  const PlanTensor& tensor(TensorId id) const { return tensors_.at(static_cast<std::size_t>(id)); }
  const std::vector<PlanTensor>& tensors() const { return tensors_; }
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step>& preparation() { return preparation_; }
  const std::vector<Step>& preparation() const { return preparation_; }

  std::int64_t modelled_bytes() const;  ///< the ledger's sum
  std::int64_t prepared_bytes() const;
  double flops() const;
  int launches() const;
  /// Distinct kernel names, in order: "rmsnorm_row + gemm_portable".
  std::string kernel() const;

 private:
  std::vector<PlanTensor> tensors_;
  std::vector<Step> steps_;
  std::vector<Step> preparation_;
};

/// Where each workspace tensor lies in the arena: first fit over the steps' lifetimes.
struct Layout {
  std::vector<std::int64_t> offsets;  ///< by TensorId; -1 for tensors that are not workspace
  std::int64_t bytes = 0;             ///< the arena's size: peak memory of intermediates
};
Layout lay_out_workspace(const Plan& plan, std::int64_t alignment_bytes);

}  // namespace fusebench
