#include "harness/compare.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "harness/progress.h"
#include "harness/run.h"
#include "reports/compare_text.h"
#include "reports/write.h"

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

// Said before anything is read.
void check_page(const fs::path& page) {
  const fs::path folder = page.has_parent_path() ? page.parent_path() : fs::path(".");
  if (fs::is_directory(page)) {
    throw UsageError(fmt::format("--html {}: is a folder; name a file in it, such as {}", page.string(),
                                 (page / "compare.html").string()));
  }
  if (!fs::is_directory(folder) || access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UsageError(fmt::format("--html {}: {} {}; name a file in a folder that can be written", page.string(),
                                 folder.string(), fs::is_directory(folder) ? "is not writable" : "is not a folder"));
  }
}

// stdout is for a program where JSON or markdown was asked for.
void write_page(const reports::Comparison& comparison, const CompareCommand& command) {
  reports::write_atomically(command.html, reports::comparison_page(comparison));
  if (!command.json && !command.markdown) fmt::print("page: {}\n", command.html.string());
}

}  // namespace

int compare_runs(const CompareCommand& command) {
  if (!std::isfinite(command.threshold_percent) || command.threshold_percent < 0) {
    throw UsageError(
        fmt::format("--threshold {}: give a percentage of 0 or more, such as 3", command.threshold_percent));
  }
  if (!command.html.empty()) check_page(command.html);
  const reports::Comparison comparison = reports::compare(records_at(command.base), records_at(command.current),
                                                          {.threshold = command.threshold_percent / 100,
                                                           .base_path = command.base.string(),
                                                           .new_path = command.current.string()});
  if (!comparison.refusal.empty() && !command.force) {
    throw UsageError(comparison.refusal + "; --force compares them all the same");
  }
  std::fputs(rendered(comparison, command).c_str(), stdout);
  if (!command.html.empty()) write_page(comparison, command);
  if (reports::joined(comparison) == 0) {
    std::fputs("fusebench: the runs have no row in common; compare runs of the same sweep and backend\n", stderr);
    return kDidNotRun;
  }
  return reports::regressions(comparison) > 0 ? kRegressed : kPassed;
}

}  // namespace fusebench
