#include "harness/profile.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "harness/attached_tools.h"
#include "harness/binding.h"
#include "harness/case_run.h"
#include "harness/host_memory.h"
#include "harness/ranges.h"
#include "harness/shell.h"
#include "variants/registry.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;

// What our own counters count, so that the two can be compared.
constexpr const char* kMetrics = "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum";

void require_memory(const Case& c, const OpSpec& spec, const Plan& plan, const Device& device) {
  const std::int64_t needed = saturating_sum(CaseMemory::bytes_needed(spec),
                                             BoundPlan::workspace_bytes(plan) + BoundPlan::prepared_bytes(plan));
  if (needed > device.free_bytes()) {
    throw Unsupported(
        fmt::format("{} needs {} bytes of device memory, {} are available", case_id(c), needed, device.free_bytes()));
  }
}

// Marks what a profiler collects, also where the work between throws.
class Marks {
 public:
  Marks(Device& device, bool active) : device_(active ? &device : nullptr) {
    if (device_ != nullptr) device_->profiler_start();
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  ~Marks() { end_quietly(); }
  void end() {
    if (device_ != nullptr) std::exchange(device_, nullptr)->profiler_stop();
  }

 private:
  void end_quietly() noexcept {
    try {
      end();
    } catch (const std::exception&) {
      // What made the work throw is on its way already.
    }
  }
  Device* device_;
};

void print_commands(const std::string& program, const ProfileOptions& options) {
  for (const ProfilerCommand& command : profiler_commands(program, options)) {
    fmt::print("# {}\n{}\n\n", command.what, command.line);
  }
}

void print_rows(const std::vector<Task>& tasks, const ProfileOptions& options, Device& device) {
  fmt::print("# each launches, {}{}:\n", name_of(options.cache), options.graph ? ", as a graph" : "");
  int range = 0;
  for (const Task& task : tasks) {
    for (const std::string& variant : task.variants) {
      try {
        const Plan plan = plan_variant(registry(), task.c, variant, device.target());
        const int first = range + 1;
        range += options.launches;
        fmt::print("# range {}: {}/{}, {} kernels, {:.3f} MB modelled\n",
                   first == range ? std::to_string(first) : fmt::format("{} to {}", first, range), case_id(task.c),
                   variant, plan.launches(), static_cast<double>(plan.modelled_bytes()) / 1e6);
      } catch (const Unsupported& limit) {
        fmt::print("# unsupported: {}/{}: {}\n", case_id(task.c), variant, limit.what());
      }
    }
  }
}

int launch_all(const std::vector<Task>& tasks, const ProfileOptions& options, Device& device) {
  Launching launching{.device = device, .options = options, .say = [](const std::string& line) {
                        fmt::print("{}\n", line);
                        std::fflush(stdout);  // in order with what the profiler prints
                      }};
  bool all = true;
  Marks marks(device, options.one_range);
  for (const Task& task : tasks) {
    for (const std::string& variant : task.variants) {
      try {
        launch_row(task.c, variant, launching);
      } catch (const Unsupported& limit) {
        launching.say(fmt::format("unsupported: {}/{}: {}", case_id(task.c), variant, limit.what()));
      } catch (const std::exception& failure) {
        all = false;
        launching.say(fmt::format("error: {}/{}: {}", case_id(task.c), variant, failure.what()));
      }
    }
  }
  marks.end();
  return all && launching.ranges > 0 ? kPassed : kDidNotRun;
}

}  // namespace

void launch_row(const Case& c, const std::string& variant, Launching& launching) {
  Device& device = launching.device;
  const ProfileOptions& options = launching.options;
  const OpSpec spec = spec_of(c);
  Plan plan = plan_variant(registry(), c, variant, device.target());
  require_memory(c, spec, plan, device);
  CaseMemory memory(device, spec, read_inputs(spec, DrawnSource(c)));
  memory.reserve_workspace(BoundPlan::workspace_bytes(plan));
  BoundPlan bound(device, std::move(plan), memory);
  bound.prepare(options.cache);
  std::function<void()> launch = [&bound] { bound.launch(); };
  if (options.graph) launch = device.capture(launch);
  launch();  // what is done once, at the first launch, stays out of the range
  for (int i = 1; i <= options.launches; ++i) {
    if (options.cache == CacheMode::cold) {
      const Range flush("flush");
      device.flush_cache();
    }
    device.synchronize();
    launching.say(fmt::format("range {}: {}/{}, {}{}, launch {} of {}", ++launching.ranges, case_id(c), variant,
                              name_of(options.cache), options.graph ? ", graph" : "", i, options.launches));
    Marks marks(device, !options.one_range);
    {
      const Range row(fmt::format("{}/{}", case_id(c), variant));
      launch();
      device.synchronize();
    }
    marks.end();
  }
}

std::string launch_command(const std::string& program, const ProfileOptions& options) {
  std::string line =
      fmt::format("{} profile {} --launch", shell_quoted(program), shell_quoted(options.config.string()));
  if (options.backend != "auto") line += " --backend " + options.backend;
  if (options.device != 0) line += fmt::format(" --device {}", options.device);
  for (const std::string& filter : options.filters) line += " --filter " + shell_quoted(filter);
  if (options.launches != 1) line += fmt::format(" --launches {}", options.launches);
  if (options.cache != CacheMode::cold) line += fmt::format(" --cache {}", name_of(options.cache));
  if (options.graph) line += " --graph";
  return line;
}

std::vector<ProfilerCommand> profiler_commands(const std::string& program, const ProfileOptions& options) {
  const std::string launch = launch_command(program, options);
  // Between ncu's passes over one kernel its memory is put back, which leaves some of it in L2; only a flush of ncu's
  // own makes the passes alike.
  const char* flush = options.cache == CacheMode::cold ? "all" : "none";
  return {{"HBM and L2 bytes of each launch as a whole, as fusebench counts them",
           fmt::format("ncu --replay-mode app-range --clock-control none --cache-control none "
                       "--print-units base --metrics {} {}",
                       kMetrics, launch)},
          {"every kernel from inside, on its own; open fusebench.ncu-rep in ncu-ui",
           fmt::format("ncu --profile-from-start off --replay-mode kernel --clock-control none --cache-control {} "
                       "--set full -f -o fusebench {}",
                       flush, launch)},
          {"launches over time, with NVTX ranges; open fusebench.nsys-rep in nsys-ui",
           fmt::format("nsys profile --capture-range=cudaProfilerApi --capture-range-end=stop --trace=cuda,nvtx{} "
                       "--force-overwrite=true -o fusebench {} --one-range",
                       options.graph ? " --cuda-graph-trace=node" : "", launch)}};
}

int profile(const ProfileOptions& options) {
  if (options.launches < 1) throw UsageError("--launches: give a number of one or more");
  const Backend backend = backend_of(options.backend);
  const Config config = load_config(options.config, backend);
  const std::vector<Task> tasks = tasks_of(config, backend, options.filters);
  const std::string tool = attached_tool();
  const std::unique_ptr<Device> device = open_device(backend, options.device);
  if (options.launch || !tool.empty()) {
    if (!tool.empty()) fmt::print("{} is attached\n", tool);
    return launch_all(tasks, options, *device);
  }
  if (backend == Backend::cuda) {
    print_commands(fs::read_symlink("/proc/self/exe").string(), options);
  } else {
    fmt::print("# ncu and nsys see CUDA alone; for a profiler of the CPU:\n{}\n\n",
               launch_command(fs::read_symlink("/proc/self/exe").string(), options));
  }
  print_rows(tasks, options, *device);
  return kPassed;
}

}  // namespace fusebench
