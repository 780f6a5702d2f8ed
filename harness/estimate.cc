#include "harness/estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/binding.h"
#include "harness/case_run.h"
#include "harness/host_memory.h"
#include "harness/sampler.h"
#include "reports/format.h"

namespace fusebench {
namespace {

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value < 1e9 ? fmt::format("{:.1f} MB", value / 1e6) : fmt::format("{:.1f} GB", value / 1e9);
}

std::string duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

// As a run admits a case: its tensors, what each plan prepares, and the largest workspace, which they share.
std::int64_t device_bytes_of(const Case& c, const std::vector<Plan>& plans) {
  std::int64_t bytes = CaseMemory::bytes_needed(spec_of(c));
  std::int64_t workspace = 0;
  for (const Plan& plan : plans) {
    bytes = saturating_sum(bytes, BoundPlan::prepared_bytes(plan));
    workspace = std::max(workspace, BoundPlan::workspace_bytes(plan));
  }
  return saturating_sum(bytes, workspace);
}

// The CPU replays no graphs: those rows are unsupported, and take no time.
std::size_t timed_modes(const Measure& measure, Backend backend) {
  const auto graphs = backend == Backend::cpu ? std::count(measure.graph.begin(), measure.graph.end(), false)
                                              : static_cast<std::ptrdiff_t>(measure.graph.size());
  return measure.cache.size() * static_cast<std::size_t>(graphs);
}

}  // namespace

void Estimate::add(const Entry& entry) {
  const std::int64_t host = host_bytes_needed(entry.c, spec_of(entry.c), measure_.verify, prove_);
  const bool shared = backend_ == Backend::cpu;
  const std::int64_t device = saturating_sum(device_bytes_of(entry.c, entry.plans), shared ? host : 0);
  needs_.push_back({case_id(entry.c), device, host});
  if (!entry.has_expected_rows) ++without_expected_;
  if (!entry.floor_us.value) has_floors_ = false;
  const std::size_t modes = timed_modes(measure_, backend_);
  add_time(entry.rows * modes, entry.has_control ? modes : 0, entry.floor_us.value.value_or(0) / 1e6);
}

void Estimate::add_time(std::size_t rows, std::size_t controls, double floor_s) {
  rows_ += rows;
  const auto sampled = static_cast<double>(rows + controls);
  const double steps_s = static_cast<double>(rows) * kStepTimesShare * measure_.max_seconds;
  least_s_ += sampled * std::min(floor_s * (measure_.warmup + measure_.samples), measure_.max_seconds);
  most_s_ += sampled * std::max(measure_.max_seconds, (1 + kMinSamples) * floor_s) + steps_s;
}

std::string Estimate::memory_text(std::int64_t free_on_device, std::int64_t free_on_host) const {
  const CaseNeed& most = *std::ranges::max_element(needs_, {}, &CaseNeed::device);
  const CaseNeed& most_on_host = *std::ranges::max_element(needs_, {}, &CaseNeed::host);
  std::string text =
      backend_ == Backend::cpu
          ? fmt::format("memory: up to {}, for tensors and what checks them ({}); {} are free\n",
                        bytes_text(most.device), most.case_id, bytes_text(free_on_device))
          : fmt::format("memory: up to {} on the device ({}; {} are free), and {} on the host ({}; {} are free)\n",
                        bytes_text(most.device), most.case_id, bytes_text(free_on_device),
                        bytes_text(most_on_host.host), most_on_host.case_id, bytes_text(free_on_host));
  for (const CaseNeed& need : needs_) {
    if (need.device <= free_on_device && need.host <= free_on_host) continue;
    text += fmt::format("does not fit, and will have unsupported rows: {}; a smaller batch or seq needs less\n",
                        need.case_id);
  }
  return text;
}

std::string Estimate::time_text() const {
  const std::string least =
      has_floors_ ? fmt::format("from {} (every launch at its floor) to ", duration(least_s_)) : "up to ";
  const std::string expected = without_expected_ == 0
                                   ? "all expected rows are in the oracle cache"
                                   : fmt::format("the expected rows of {}, which `fusebench oracle` computes ahead",
                                                 reports::plural(without_expected_, "case"));
  return fmt::format(
      "time: {}{} of measuring (max_seconds, {:g} s, for each row and A/A control, and a fifth for a row's steps); "
      "more where a warm-up and {} samples take longer or the machine is busy\n"
      "Checks come on top: {}.\n",
      least, duration(most_s_), measure_.max_seconds, kMinSamples, expected);
}

std::string Estimate::text(std::int64_t free_on_device, std::int64_t free_on_host) const {
  std::string text =
      fmt::format("{} of {}{}\n", reports::plural(rows_, "row"), reports::plural(needs_.size(), "case"),
                  unsupported_ > 0 ? fmt::format("; {} unsupported", reports::plural(unsupported_, "row")) : "");
  if (rows_ == 0) return text + "Nothing would run here: `fusebench list` tells what this machine supports.\n";
  return text + memory_text(free_on_device, free_on_host) + time_text();
}

}  // namespace fusebench
