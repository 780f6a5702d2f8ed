// `fusebench doctor`: will measuring work here, and what would make it better? It only looks: no setting is changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/ceilings.h"
#include "harness/device.h"
#include "harness/nvml.h"

namespace fusebench {

enum class Health : std::uint8_t {
  ok,
  warning,  ///< measuring works, but something is worse than it could be, or is not known
  missing,  ///< measuring does not work without it
};
std::string_view name_of(Health health);

struct Finding {
  std::string name;
  Health health = Health::ok;
  std::string text;
  std::string remedy;  ///< what to do; empty when there is nothing to do
};

struct DoctorOptions {
  std::string backend = "auto";
  int device = 0;
  bool json = false;
  bool noise = false;           ///< learn a noise table instead
  int restarts = 5;             ///< processes to learn it from
  std::filesystem::path sweep;  ///< what they run; empty: configs/noise.yaml, or noise_cpu.yaml on the CPU
};

/// Prints the findings, or learns a noise table. kPassed when measuring will work, otherwise kDidNotRun.
int doctor(const DoctorOptions& options);

/// kDidNotRun when something is missing.
int exit_code_of(const std::vector<Finding>& findings);

// Each finding from what it judges, so that each can be tested without a device.

/// `why` is why_no_cuda()'s, `has_card` whether the machine seems to have one. `wanted`: --backend cuda was given.
Finding cuda_is_missing(const std::string& why, bool has_card, bool wanted);
Finding device_finding(const DeviceFacts& facts);
Finding driver_finding(const DeviceFacts& facts, const Known<std::string>& release);
Finding libraries_finding(const DeviceFacts& facts);
/// `open` opens the counters and throws why it cannot. `driver_parameters`: the text of /proc/driver/nvidia/params.
Finding counters_finding(const std::function<void()>& open, std::string_view driver_parameters, bool is_root);

Finding ceilings_finding(const Ceilings& ceilings);

/// Other processes, MIG, ECC, persistence, clocks, power: what NVML knows.
std::vector<Finding> card_findings(const Nvml& nvml);
Finding device_memory_finding(std::int64_t free_bytes, std::int64_t total_bytes);
Finding host_memory_finding(std::int64_t available_bytes);
Finding attached_finding(const std::string& tool);  ///< attached_tool()'s
/// Whether `program` is in one of the folders of `path` (as PATH has them).
Finding program_finding(const std::string& program, std::string_view path, const std::string& gives);
Finding noise_finding(const DeviceFacts& facts);

}  // namespace fusebench
