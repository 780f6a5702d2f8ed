// `fusebench compare`: two runs' records, read, compared and printed.
#pragma once

#include <filesystem>

namespace fusebench {

struct CompareCommand {
  std::filesystem::path base, current;  ///< a run's folder, or its results.jsonl
  double threshold_percent = 3;
  std::filesystem::path html;  ///< a page to write besides what is printed; empty: none
  bool json = false;
  bool markdown = false;
  bool force = false;  ///< compare runs of different devices
};

/// Returns the exit code: kRegressed, kDidNotRun where the runs have no row in common, or kPassed. Throws UsageError.
int compare_runs(const CompareCommand& command);

}  // namespace fusebench
