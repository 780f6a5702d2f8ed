#include "harness/compare.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "harness/progress.h"
#include "harness/run.h"
#include "reports/compare_text.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;

reports::Records records_at(const fs::path& run) {
  const fs::path file = fs::is_directory(run) ? run / "results.jsonl" : run;
  if (!fs::exists(file)) {
    throw UsageError(fmt::format("{}: {}; name the folder that `fusebench run` wrote", run.string(),
                                 fs::exists(run) ? "holds no results.jsonl" : "is not there"));
  }
  reports::Records records = reports::read_records(file);
  if (records.header.is_null() && records.rows.empty()) {
    throw UsageError(fmt::format("{}: holds no record; name the folder that `fusebench run` wrote", file.string()));
  }
  return records;
}

std::string rendered(const reports::Comparison& comparison, const CompareCommand& command) {
  if (command.json) return reports::comparison_json(comparison);
  if (command.markdown) return reports::comparison_markdown(comparison);
  return reports::comparison_table(comparison,
                                   {.colour = wants_colour(STDOUT_FILENO), .width = terminal_width(STDOUT_FILENO)});
}

}  // namespace

int compare_runs(const CompareCommand& command) {
  if (!std::isfinite(command.threshold_percent) || command.threshold_percent < 0) {
    throw UsageError(fmt::format("--threshold {}: is a percentage of 0 or more", command.threshold_percent));
  }
  const reports::Comparison comparison = reports::compare(records_at(command.base), records_at(command.current),
                                                          {.threshold = command.threshold_percent / 100,
                                                           .base_path = command.base.string(),
                                                           .new_path = command.current.string()});
  if (!comparison.refusal.empty() && !command.force) {
    throw UsageError(comparison.refusal + "; --force compares them all the same");
  }
  std::fputs(rendered(comparison, command).c_str(), stdout);
  if (reports::joined(comparison) == 0) {
    std::fputs("fusebench: the runs have no row in common\n", stderr);
    return kDidNotRun;
  }
  return reports::regressions(comparison) > 0 ? kRegressed : kPassed;
}

}  // namespace fusebench
