// `fusebench run`: a sweep into an output folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/config.h"
#include "harness/device.h"

namespace fusebench {

/// The user asked for something that cannot be done: one clear line, exit code 2, nothing written.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum ExitCode : int { kPassed = 0, kCheckFailed = 1, kBadUsage = 2, kDidNotRun = 3, kRegressed = 4 };

struct RunOptions {
  std::filesystem::path config;
  std::filesystem::path output;  ///< empty: out/NAME-TIMESTAMP
  bool overwrite = false;
  std::string backend = "auto";
  int device = 0;
  std::vector<std::string> filters;  ///< globs; a row stays when one matches its case id, variant or "case id/variant"
  std::filesystem::path dump;
  std::filesystem::path oracle_cache;
  bool dry_run = false;
  bool prove = false;  ///< try the check on mutants
  bool quiet = false;
  std::vector<std::string> benchmark_flags;  ///< handed to Google Benchmark after the run; empty: not used
  std::string command;                       ///< the command line, for the record
};

/// A case and which of its variants run.
struct Task {
  Case c;
  std::vector<std::string> variants;
};

int run(const RunOptions& options);  ///< returns the exit code
int precompute_oracle(const RunOptions& options);

/// The sweep's rows that a filter keeps. Throws UsageError when nothing is left.
std::vector<Task> tasks_of(const Config& config, Backend backend, const std::vector<std::string>& filters);

/// `auto` is CUDA where there is a device. Throws UsageError for what is not there.
Backend backend_of(const std::string& name);
std::unique_ptr<Device> open_device(Backend backend, int index);  ///< throws UsageError

/// Several verdicts, one code: 3 before 1.
ExitCode exit_code(const std::vector<std::string>& verdicts);

}  // namespace fusebench
