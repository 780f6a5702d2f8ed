#include "harness/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "harness/attached_tools.h"
#include "harness/host_memory.h"
#include "harness/noise.h"
#include "harness/noise_runs.h"
#include "harness/run.h"
#include "variants/registry.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

// Whole from 100 on, three digits below.
std::string short_number(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

Finding ok(std::string name, std::string text) {
  return {.name = std::move(name), .health = Health::ok, .text = std::move(text), .remedy = {}};
}
Finding warning(std::string name, std::string text, std::string remedy) {
  return {.name = std::move(name), .health = Health::warning, .text = std::move(text), .remedy = std::move(remedy)};
}

std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr const char* kAskNvidiaSmi = "`nvidia-smi -q` may tell";

Finding processes_finding(const Nvml& nvml) {
  const Known<std::vector<ComputeProcess>> others = nvml.other_processes();
  if (!others.value) return warning("processes", "not known: " + others.reason, kAskNvidiaSmi);
  if (others.value->empty()) return ok("processes", "no other process computes on the GPU");
  std::vector<std::string> each;
  for (const ComputeProcess& process : *others.value) {
    each.push_back(fmt::format("pid {}{}", process.pid,
                               process.memory_bytes.value
                                   ? fmt::format(" with {:.2f} GiB", gib(*process.memory_bytes.value))
                                   : std::string()));
  }
  return warning("processes", fmt::format("others compute on the GPU: {}", fmt::join(each, ", ")),
                 "end them, or wait: they disturb timings and counters. In a container a process may be this one, "
                 "under the host's number");
}

Finding mig_finding(const Nvml& nvml) {
  const Known<bool> mig = nvml.mig();
  if (!mig.value) return ok("mig", "not on this card: " + mig.reason);
  if (!*mig.value) return ok("mig", "off: the whole card");
  return warning("mig", "on: the device is a slice, its bandwidth and caches are a part of the card's",
                 "compare its rows with those of the same slice alone");
}

Finding ecc_finding(const Nvml& nvml) {
  const Known<bool> ecc = nvml.ecc();
  if (!ecc.value) return warning("ecc", "not known: " + ecc.reason, kAskNvidiaSmi);
  const Known<std::int64_t> errors = nvml.uncorrected_ecc_errors();
  if (errors.value.value_or(0) > 0) {
    return warning("ecc", fmt::format("{} errors were not corrected since the driver was loaded", *errors.value),
                   "results may be wrong: have the card reset or replaced");
  }
  if (!*ecc.value) return ok("ecc", "off: bandwidth may be higher than with it");
  return ok("ecc", errors.value ? "on, no uncorrected errors" : "on; errors not known: " + errors.reason);
}

Finding persistence_finding(const Nvml& nvml) {
  const Known<bool> mode = nvml.persistence();
  if (!mode.value) return warning("persistence", "not known: " + mode.reason, kAskNvidiaSmi);
  if (*mode.value) return ok("persistence", "on");
  return warning("persistence", "off: the driver lets the card go between runs, and the first work pays for it",
                 "nvidia-smi -pm 1, as root");
}

std::string mhz(const Known<double>& now, const Known<double>& most) {
  const auto figure = [](const Known<double>& clock) {
    return clock.value ? fmt::format("{:.0f}", *clock.value) : std::string("?");
  };
  return fmt::format("{} of {} MHz", figure(now), figure(most));
}

Finding clocks_finding(const Nvml& nvml) {
  std::string text = fmt::format("SM at {}, memory at {}", mhz(nvml.sm_mhz(), nvml.max_sm_mhz()),
                                 mhz(nvml.memory_mhz(), nvml.max_memory_mhz()));
  const Known<std::uint64_t> events = nvml.clock_events();
  if (!events.value) return warning("clocks", text + "; what holds them is not known: " + events.reason, kAskNvidiaSmi);
  text += fmt::format("; held by: {}", clock_event_words(*events.value));
  if ((*events.value & kThrottleEvents & ~std::uint64_t{kPowerCap}) != 0) {
    return warning("clocks", text,
                   "let the card cool, and look at its cooling and power: rows will be slower than they are");
  }
  if ((*events.value & kPowerCap) != 0) {
    return warning("clocks", text,
                   "at rest this means that something else works the card, or that its power limit is low");
  }
  if ((*events.value & kClockSetting) != 0) text += ". Compare with rows under the same setting alone";
  return ok("clocks", text);
}

Finding power_finding(const Nvml& nvml) {
  const Known<double> now = nvml.power_w();
  const Known<double> limit = nvml.power_limit_w();
  const Known<double> temperature = nvml.temperature_c();
  if (!now.value && !limit.value) return warning("power", "not known: " + now.reason, kAskNvidiaSmi);
  const auto figure = [](const Known<double>& value, const char* unit) {
    return value.value ? fmt::format("{:.0f} {}", *value.value, unit) : "not known (" + value.reason + ")";
  };
  return ok("power", fmt::format("{} now, limit {}, temperature {}", figure(now, "W"), figure(limit, "W"),
                                 figure(temperature, "C")));
}

// --- the whole ---

Finding probed(Device& device, const std::vector<DType>& dtypes) {
  try {
    return ceilings_finding(probe_ceilings(device, registry(), LoadMode::sustained, dtypes, [](const std::string&) {}));
  } catch (const std::exception& failure) {
    return warning("ceilings", failure.what(), "rows will have no floor");
  }
}

void examine_cuda(const DoctorOptions& options, std::vector<Finding>& findings) {
  std::unique_ptr<Device> device;
  try {
    device = open_cuda_device(options.device);
  } catch (const std::exception& failure) {
    findings.push_back({.name = "device",
                        .health = Health::missing,
                        .text = failure.what(),
                        .remedy = "`nvidia-smi` shows the devices; CUDA_VISIBLE_DEVICES hides some"});
    return;
  }
  const DeviceFacts& facts = device->facts();
  const Nvml nvml(facts.uuid);
  findings.push_back(device_finding(facts));
  findings.push_back(driver_finding(facts, nvml.driver()));
  findings.push_back(libraries_finding(facts));
  findings.push_back(counters_finding([&] { (void)device->open_counters(); }, read_text("/proc/driver/nvidia/params"),
                                      geteuid() == 0));
  findings.push_back(probed(*device, {DType::fp16, DType::bf16, DType::fp32}));
  for (Finding& finding : card_findings(nvml)) findings.push_back(std::move(finding));
  findings.push_back(device_memory_finding(device->free_bytes(), facts.memory_bytes));
  findings.push_back(noise_finding(facts));
}

std::vector<Finding> examine(const DoctorOptions& options) {
  std::vector<Finding> findings;
  const std::string no_cuda = why_no_cuda();
  const bool cuda = options.backend != "cpu" && no_cuda.empty();
  if (cuda) {
    examine_cuda(options, findings);
  } else {
    if (options.backend != "cpu") {
      const bool has_card = fs::exists("/proc/driver/nvidia/version") || fs::exists("/dev/nvidiactl");
      findings.push_back(cuda_is_missing(no_cuda, has_card, options.backend == "cuda"));
    }
    const std::unique_ptr<Device> device = open_cpu_device();
    findings.push_back(device_finding(device->facts()));
    findings.push_back(probed(*device, {DType::fp32}));
    findings.push_back(noise_finding(device->facts()));
  }
  findings.push_back(host_memory_finding(available_host_bytes()));
  findings.push_back(attached_finding(attached_tool()));
  if (cuda) {
    const char* path = std::getenv("PATH");
    const std::string_view folders = path != nullptr ? path : "";
    findings.push_back(program_finding("ncu", folders, "Nsight Compute shows a kernel from inside"));
    findings.push_back(program_finding("nsys", folders, "Nsight Systems shows launches over time"));
  }
  return findings;
}

void print(const std::vector<Finding>& findings) {
  std::vector<std::string> missing;
  for (const Finding& finding : findings) {
    fmt::print("{:<8} {:<14} {}\n", name_of(finding.health), finding.name, finding.text);
    if (!finding.remedy.empty()) fmt::print("{:23} -> {}\n", "", finding.remedy);
    if (finding.health == Health::missing) missing.push_back(finding.name);
  }
  fmt::print("{}\n", missing.empty() ? "measuring will work"
                                     : fmt::format("measuring will not work: {}", fmt::join(missing, ", ")));
}

void print_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back(
        {{"name", finding.name},
         {"health", name_of(finding.health)},
         {"text", finding.text},
         {"remedy", finding.remedy.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(finding.remedy)}});
  }
  const nlohmann::ordered_json all = {{"measuring_will_work", exit_code_of(findings) == kPassed}, {"findings", list}};
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_noise(const NoiseTable& table, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", to_json(table).dump(2));
    return;
  }
  fmt::print("{:>20} {:>6} {:>10}  {}\n", "median us", "pairs", "noise", "seen in");
  for (const NoiseClass& one : table.classes) {
    const std::string range =
        fmt::format("{:.0f} to {}", one.from_us, one.to_us ? fmt::format("{:.0f}", *one.to_us) : "");
    fmt::print("{:>20} {:>6} {:>10}  {}\n", range, one.pairs,
               one.relative ? fmt::format("{:.2f}%", 100 * *one.relative) : "not known", one.of);
  }
  fmt::print("{}\n", noise_file(table.device_uuid).string());
}

}  // namespace

std::string_view name_of(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warning:
      return "warning";
    case Health::missing:
      return "missing";
  }
  return "?";
}

int exit_code_of(const std::vector<Finding>& findings) {
  const bool lacks = std::any_of(findings.begin(), findings.end(),
                                 [](const Finding& finding) { return finding.health == Health::missing; });
  return lacks ? kDidNotRun : kPassed;
}

Finding cuda_is_missing(const std::string& why, bool has_card, bool wanted) {
  Finding finding{.name = "cuda", .health = wanted ? Health::missing : Health::warning, .text = why, .remedy = {}};
  if (!wanted) finding.text += "; rows run on the CPU, in fp32";
  if (why.find("build has no CUDA") != std::string::npos) {
    finding.remedy = has_card
                         ? "there is an NVIDIA driver here: install the CUDA toolkit 12.8 or later and build again "
                           "(docs/install.md)"
                         : "on a machine with an NVIDIA GPU, install the CUDA toolkit 12.8 or later and build again "
                           "(docs/install.md)";
  } else if (why.find("insufficient") != std::string::npos) {
    finding.remedy = has_card
                         ? "the driver is older than this build's CUDA: install a newer driver, or build with an "
                           "older toolkit (12.8 at least)"
                         : "no NVIDIA driver is loaded: install one, and in a container ask for the GPU (--gpus all)";
  } else {
    finding.remedy =
        "`nvidia-smi` shows what the driver sees; in a container ask for the GPU (--gpus all); "
        "CUDA_VISIBLE_DEVICES hides devices";
  }
  return finding;
}

Finding device_finding(const DeviceFacts& facts) {
  if (facts.backend == Backend::cpu) {
    return ok("cpu", fmt::format("{}, {} cores, {:.1f} MiB of last-level cache", facts.name, facts.multiprocessors,
                                 static_cast<double>(facts.l2_bytes) / (1 << 20)));
  }
  const std::string text = fmt::format(
      "{}, sm_{}, {} multiprocessors, {:.0f} MiB L2, {:.1f} GiB, {}", facts.name, facts.compute_capability,
      facts.multiprocessors, static_cast<double>(facts.l2_bytes) / (1 << 20), gib(facts.memory_bytes), facts.uuid);
  if (facts.compute_capability >= 80) return ok("device", text);
  return {.name = "device",
          .health = Health::missing,
          .text = text,
          .remedy = "compute capability 8.0 or later is needed; --device names another GPU, --backend cpu needs none"};
}

Finding driver_finding(const DeviceFacts& facts, const Known<std::string>& release) {
  const std::string cuda = fmt::format("CUDA {}, runtime {}", facts.driver, facts.runtime);
  if (release.value) return ok("driver", fmt::format("{}, {}", *release.value, cuda));
  return warning("driver", fmt::format("{}; its release is not known: {}", cuda, release.reason),
                 "clocks, power and temperature will be null in the records: install the driver's libnvidia-ml.so.1");
}

Finding libraries_finding(const DeviceFacts& facts) {
  std::vector<std::string> each;
  for (const auto& [library, version] : facts.libraries) each.push_back(fmt::format("{} {}", library, version));
  return ok("libraries", fmt::format("{}", fmt::join(each, ", ")));
}

Finding counters_finding(const std::function<void()>& open, std::string_view driver_parameters, bool is_root) {
  std::string refusal;
  try {
    open();
    return ok("counters", "HBM traffic can be measured");
  } catch (const std::exception& failure) {
    refusal = failure.what();
  }
  const bool admin_only = driver_parameters.find("RmProfilingAdminOnly: 1") != std::string_view::npos;
  std::string remedy = "traffic will be modelled, everything else works";
  if (admin_only && !is_root) {
    remedy +=
        "; the driver keeps counters for root: run as root, or have root put `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-counters.conf and reload the driver";
  } else if (admin_only) {
    remedy += "; the driver keeps counters for administrators: in a container add --cap-add SYS_ADMIN";
  }
  return warning("counters", refusal, remedy);
}

Finding ceilings_finding(const Ceilings& ceilings) {
  constexpr const char* kRemedy = "rows will have no floor where they need these";
  if (!ceilings.not_probed.empty()) return warning("ceilings", ceilings.not_probed, kRemedy);
  std::vector<std::string> reached;
  std::vector<std::string> unknown;
  const auto tell = [&](const std::string& name, const Known<double>& figure, const char* unit) {
    if (figure.value) reached.push_back(fmt::format("{} {} {}", name, short_number(*figure.value), unit));
    if (!figure.value) unknown.push_back(fmt::format("{} is not known: {}", name, figure.reason));
  };
  tell("copy", ceilings.copy_gbps, "GB/s");
  tell("read", ceilings.read_gbps, "GB/s");
  tell("write", ceilings.write_gbps, "GB/s");
  for (const auto& [dtype, rate] : ceilings.gemm_tflops) tell(std::string(name_of(dtype)), rate, "TFLOP/s");
  const std::string text = fmt::format("{}", fmt::join(reached, ", "));
  if (unknown.empty()) return ok("ceilings", text);
  return warning("ceilings", fmt::format("{}{}{}", text, text.empty() ? "" : "; ", fmt::join(unknown, "; ")), kRemedy);
}

std::vector<Finding> card_findings(const Nvml& nvml) {
  if (!nvml.missing().empty()) {
    return {warning("nvml", nvml.missing(),
                    "other processes, clocks and power are not known: install the driver's libnvidia-ml.so.1")};
  }
  return {processes_finding(nvml),   mig_finding(nvml),    ecc_finding(nvml),
          persistence_finding(nvml), clocks_finding(nvml), power_finding(nvml)};
}

Finding device_memory_finding(std::int64_t free_bytes, std::int64_t total_bytes) {
  std::string text = fmt::format("{:.1f} of {:.1f} GiB are free", gib(free_bytes), gib(total_bytes));
  if (free_bytes >= total_bytes / 2) return ok("memory", text);
  return warning("memory", text, "others hold the rest: cases that do not fit will be unsupported");
}

Finding host_memory_finding(std::int64_t available_bytes) {
  constexpr std::int64_t kLittle = std::int64_t{8} << 30;
  std::string text = fmt::format("{:.1f} GiB are available", gib(available_bytes));
  if (available_bytes >= kLittle) return ok("host memory", text);
  return warning("host memory", text,
                 "inputs and expected rows are made on the host: cases that do not fit will be unsupported");
}

Finding attached_finding(const std::string& tool) {
  if (tool.empty()) return ok("watched", "no profiler or sanitizer is attached");
  return warning("watched", tool + " is attached", "timings under it are not the kernels' own: run without it");
}

Finding program_finding(const std::string& program, std::string_view path, const std::string& gives) {
  while (!path.empty()) {
    const std::size_t end = path.find(':');
    const fs::path candidate = fs::path(path.substr(0, end)) / program;
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    std::error_code status;
    if (fs::is_regular_file(candidate, status) && access(candidate.c_str(), X_OK) == 0) {
      return ok(program, candidate.string());
    }
  }
  return warning(program, fmt::format("not on PATH; {}", gives),
                 "only `fusebench profile` uses it: it comes with the CUDA toolkit; add its folder to PATH");
}

Finding noise_finding(const DeviceFacts& facts) {
  const Known<NoiseTable> table = noise_of(facts);
  if (!table.value) return warning("noise", table.reason, "without it `fusebench compare` assumes a noise");
  double largest = 0;
  for (const NoiseClass& one : table.value->classes) largest = std::max(largest, one.relative.value_or(0));
  const std::string text = fmt::format("up to {:.1f}%, learned from {} processes at {}", 100 * largest,
                                       table.value->restarts, table.value->learned);
  constexpr double kMuch = 0.1;
  if (largest <= kMuch) return ok("noise", text);
  return warning(
      "noise", text,
      "smaller changes do not show: something else runs here, or the clocks move; learn again when it is quiet");
}

int doctor(const DoctorOptions& options) {
  if (options.noise) {
    print_noise(learn_noise_here(options), options.json);
    return kPassed;
  }
  const std::vector<Finding> findings = examine(options);
  if (options.json) {
    print_json(findings);
  } else {
    print(findings);
  }
  return exit_code_of(findings);
}

}  // namespace fusebench
