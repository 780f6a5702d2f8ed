// `fusebench profile`: the chosen rows' launches alone, each between profiler marks, for the user's own ncu and nsys.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/config.h"
#include "harness/run.h"

namespace fusebench {

struct ProfileOptions {
  std::filesystem::path config;
  std::string backend = "auto";
  int device = 0;
  std::vector<std::string> filters;
  int launches = 1;  ///< of each row
  CacheMode cache = CacheMode::cold;
  bool graph = false;
  bool launch = false;     ///< also where no profiler is seen; what is printed asks for it
  bool one_range = false;  ///< one pair of profiler marks around everything, not one around each launch
};

/// Launches where a profiler is attached or `launch` is set, otherwise prints the commands to use and what they launch.
/// kPassed, or kDidNotRun where a row could not be launched.
int profile(const ProfileOptions& options);

/// The command that launches what `options` choose, as a shell takes it.
std::string launch_command(const std::string& program, const ProfileOptions& options);

struct ProfilerCommand {
  std::string what;  ///< what it shows, in a line
  std::string line;
};
std::vector<ProfilerCommand> profiler_commands(const std::string& program, const ProfileOptions& options);

/// Where rows are launched, and how far they are.
struct Launching {
  Device& device;
  const ProfileOptions& options;
  std::function<void(const std::string&)> say;  ///< one line for each launch
  int ranges = 0;                               ///< launches that a profiler was shown
};
/// Plans, binds, prepares and launches once unseen; then each launch from the state of the cache that is asked for,
/// which is made outside of the marks. Throws Unsupported where the row cannot be launched here, and what a launch
/// throws.
void launch_row(const Case& c, const std::string& variant, Launching& launching);

}  // namespace fusebench
