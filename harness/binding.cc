#include "harness/binding.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "harness/ranges.h"

namespace fusebench {
namespace {

constexpr std::int64_t kAlignmentBytes = 256;
constexpr std::int64_t kGuardBytes = 256;
constexpr std::uint8_t kGuardByte = 0xa5;
constexpr std::uint8_t kPoisonByte = 0xff;  // all ones is a NaN in fp16, bf16 and fp32

std::int64_t align(std::int64_t bytes) { return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes; }

// A tensor between its guards, and the offset by which its base may be shifted.
std::int64_t footprint(const TensorSpec& spec) {
  return kGuardBytes + align(spec.bytes() + kGuardBytes + kAlignmentBytes);
}

struct Hit {
  std::int64_t first, last;  // bytes that are not the guard's
};

std::optional<Hit> hit_in(Device& device, const std::byte* guard, std::int64_t bytes) {
  std::vector<std::uint8_t> found(static_cast<std::size_t>(bytes));
  device.copy_out(found.data(), guard, bytes);
  const auto written = [](std::uint8_t byte) { return byte != kGuardByte; };
  const auto first = std::find_if(found.begin(), found.end(), written);
  if (first == found.end()) return std::nullopt;
  const auto last = std::find_if(found.rbegin(), found.rend(), written);
  return Hit{first - found.begin(), found.rend() - last - 1};
}

}  // namespace

CaseMemory::CaseMemory(Device& device, const OpSpec& spec, const InputSet& inputs, std::int64_t base_offset_elements)
    : device_(device), arena_(device, bytes_needed(spec)) {
  std::int64_t end = 0;
  for (const TensorSpec& tensor : spec.tensors) {
    places_.push_back({.offset = end + kGuardBytes + base_offset_elements * bytes_of(tensor.dtype), .spec = tensor});
    end += footprint(tensor);
  }
  restore(inputs);
  poison_outputs();
  device_.synchronize();
}

void CaseMemory::restore(const InputSet& inputs) {
  device_.fill(arena_.data(), kGuardByte, arena_.bytes());
  for (const Place& place : places_) {
    if (place.spec.role == Role::output) continue;
    const HostTensor& input = inputs.find(place.spec.name)->second;
    device_.copy_in(arena_.data() + place.offset, input.data.data(), place.spec.bytes());
  }
}

std::int64_t CaseMemory::bytes_needed(const OpSpec& spec) {
  std::int64_t bytes = 0;
  for (const TensorSpec& tensor : spec.tensors) bytes += footprint(tensor);
  return bytes;
}

void CaseMemory::reserve_workspace(std::int64_t bytes) {
  workspace_ = DeviceMemory();  // before the next: both at once may not fit
  workspace_ = DeviceMemory(device_, bytes + kGuardBytes);
}

std::byte* CaseMemory::address(std::string_view name) const {
  for (const Place& place : places_) {
    if (place.spec.name == name) return arena_.data() + place.offset;
  }
  throw std::out_of_range(fmt::format("the op has no tensor '{}'", name));
}

// Contiguous blocks of what a launch may write (outputs) or must leave alone.
template <class Visit>
void CaseMemory::for_each_block(const Place& place, bool outputs, Visit visit) const {
  std::byte* base = arena_.data() + place.offset;
  if (place.spec.role != Role::cache) {
    if ((place.spec.role == Role::output) == outputs) visit(base, place.spec.bytes());
    return;
  }
  const RowMap map = place.spec.output_rows;
  const std::int64_t row_bytes = place.spec.cols * bytes_of(place.spec.dtype);
  for (std::int64_t first = 0; first < place.spec.rows; first += map.capacity) {
    if (outputs) {
      visit(base + (first + map.past) * row_bytes, map.seq * row_bytes);
    } else {
      visit(base + first * row_bytes, map.past * row_bytes);
    }
  }
}

void CaseMemory::poison_outputs() {
  for (const Place& place : places_) {
    for_each_block(place, true, [&](std::byte* data, std::int64_t bytes) { device_.fill(data, kPoisonByte, bytes); });
  }
}

void CaseMemory::poison_some_outputs(std::uint64_t seed) {
  for (const Place& place : places_) {
    for_each_block(place, true,
                   [&](std::byte* data, std::int64_t bytes) { device_.fill_some(data, kPoisonByte, bytes, seed); });
  }
}

std::uint64_t CaseMemory::input_checksum() const {
  std::uint64_t sum = 0;
  for (const Place& place : places_) {
    for_each_block(place, false,
                   [&](std::byte* data, std::int64_t bytes) { sum = 31 * sum + device_.checksum(data, bytes); });
  }
  return sum;
}

std::uint64_t CaseMemory::output_checksum() const {
  std::uint64_t sum = 0;
  for (const Place& place : places_) {
    for_each_block(place, true,
                   [&](std::byte* data, std::int64_t bytes) { sum = 31 * sum + device_.checksum(data, bytes); });
  }
  return sum;
}

HostTensor CaseMemory::read_output(const TensorSpec& spec) const {
  const auto place =
      std::find_if(places_.begin(), places_.end(), [&](const Place& p) { return p.spec.name == spec.name; });
  std::int64_t bytes = 0;
  for_each_block(*place, true, [&](std::byte*, std::int64_t block) { bytes += block; });
  HostTensor tensor(spec.dtype, bytes / (spec.cols * bytes_of(spec.dtype)), spec.cols);
  std::int64_t at = 0;
  for_each_block(*place, true, [&](std::byte* data, std::int64_t block) {
    device_.copy_out(tensor.data.data() + at, data, block);
    at += block;
  });
  return tensor;
}

std::string CaseMemory::damage() const {
  std::int64_t end = 0;  // of the tensor before the gap
  for (std::size_t next = 0; next <= places_.size(); ++next) {
    const bool is_last = next == places_.size();
    const std::int64_t gap = (is_last ? arena_.bytes() : places_[next].offset) - end;
    if (const std::optional<Hit> hit = hit_in(device_, arena_.data() + end, gap)) {
      const bool after = is_last || (next > 0 && hit->first < gap - 1 - hit->last);
      return after ? fmt::format("wrote {} bytes past the end of {}", hit->first + 1, places_[next - 1].spec.name)
                   : fmt::format("wrote {} bytes before the start of {}", gap - hit->last, places_[next].spec.name);
    }
    if (!is_last) end = places_[next].offset + places_[next].spec.bytes();
  }
  return {};
}

BoundPlan::BoundPlan(Device& device, Plan plan, const CaseMemory& memory)
    : device_(device),
      plan_(std::move(plan)),
      workspace_(memory.workspace().data()),
      prepared_(device, prepared_bytes(plan_) + kGuardBytes) {
  const Layout layout = lay_out_workspace(plan_, kAlignmentBytes);
  workspace_bytes_ = layout.bytes;
  if (layout.bytes + kGuardBytes > memory.workspace().bytes()) {
    throw std::logic_error("the workspace is smaller than the plan needs");
  }
  device_.fill(prepared_.data(), kGuardByte, prepared_.bytes());
  std::vector<void*> addresses;
  std::int64_t prepared = 0;
  for (std::size_t i = 0; i < plan_.tensors().size(); ++i) {
    const PlanTensor& tensor = plan_.tensors()[i];
    if (tensor.storage == Storage::op) {
      addresses.push_back(memory.address(tensor.name));
    } else if (tensor.storage == Storage::workspace) {
      if (layout.offsets[i] < 0) throw std::logic_error(tensor.name + ": no step declares that it writes or reads it");
      addresses.push_back(workspace_ + layout.offsets[i]);
    } else {
      addresses.push_back(prepared_.data() + prepared);
      prepared += align(tensor.bytes());
    }
  }
  bindings_ = Bindings(std::move(addresses));
}

std::int64_t BoundPlan::workspace_bytes(const Plan& plan) { return lay_out_workspace(plan, kAlignmentBytes).bytes; }

std::int64_t BoundPlan::prepared_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const PlanTensor& tensor : plan.tensors()) {
    if (tensor.storage == Storage::prepared) bytes += align(tensor.bytes());
  }
  return bytes;
}

void BoundPlan::prepare(CacheMode cache) {
  const Exec exec = device_.exec();
  if (!plan_.preparation().empty()) {
    const auto all = [&] {
      for (const Step& step : plan_.preparation()) step.launch(exec, bindings_);
    };
    prepare_us_ = device_.time({all}, false).us.front();
  }
  prepared_checksum_ = device_.checksum(prepared_.data(), prepared_bytes(plan_));
  const auto before_each = [&] {
    if (cache == CacheMode::cold) device_.flush_cache();
  };
  for (Step& step : plan_.steps()) {
    // What a step reads must hold real data while its candidates are timed, so the steps before it run first.
    if (step.tune) step.tune(step, exec, bindings_, before_each);
    step.launch(exec, bindings_);
  }
  device_.synchronize();
}

void BoundPlan::poison_workspace() const {
  device_.fill(workspace_, kPoisonByte, workspace_bytes_);
  device_.fill(workspace_ + workspace_bytes_, kGuardByte, kGuardBytes);
}

void BoundPlan::poison_some_workspace(std::uint64_t seed) const {
  device_.fill_some(workspace_, kPoisonByte, workspace_bytes_, seed);
  device_.fill(workspace_ + workspace_bytes_, kGuardByte, kGuardBytes);
}

std::string BoundPlan::damage() const {
  if (const auto hit = hit_in(device_, workspace_ + workspace_bytes_, kGuardBytes)) {
    return fmt::format("wrote {} bytes past the end of its workspace", hit->first + 1);
  }
  const std::int64_t prepared = prepared_.bytes() - kGuardBytes;
  if (const auto hit = hit_in(device_, prepared_.data() + prepared, kGuardBytes)) {
    return fmt::format("wrote {} bytes past the end of its prepared tensors", hit->first + 1);
  }
  return {};
}

bool BoundPlan::prepared_is_unchanged() const {
  return device_.checksum(prepared_.data(), prepared_bytes(plan_)) == prepared_checksum_;
}

void BoundPlan::launch() const {
  for (std::size_t i = 0; i < plan_.steps().size(); ++i) launch_step(i);
}

void BoundPlan::launch_step(std::size_t index) const {
  const Step& step = plan_.steps()[index];
  const Range range(step.name, step.bytes_read() + step.bytes_written());
  step.launch(device_.exec(), bindings_);
}

}  // namespace fusebench
