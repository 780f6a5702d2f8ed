#include "reports/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "reports/format.h"
#include "reports/markdown_text.h"

namespace fusebench::reports {

namespace {

constexpr std::size_t kOpenRows = 24;      // more are folded by op
constexpr std::size_t kFailures = 20'000;  // letters of rows that failed
constexpr std::size_t kWarnings = 10;

std::string counts_of(const Records& records) {
  std::string text = plural(records.rows.size(), "row");
  std::string separator = ": ";
  for (const VerdictCount& count : count_verdicts(records)) {
    text += fmt::format("{}{} {}", separator, count.rows, count.verdict);
    separator = ", ";
  }
  return text;
}

std::string name_of(const Json& row) {
  return fmt::format("{}/{} ({})", text_of(row, "case_id"), text_of(row, "variant"), mode_of(row));
}

std::string verdict_of(const Json& row) {
  const std::string verdict = text_of(row, "verdict");
  return verdict.empty() ? "none" : verdict;
}

bool did_fail(const Json& row) {
  const std::string verdict = verdict_of(row);
  return verdict != "pass" && verdict != "unsupported";
}

// --- what ran where ---

std::string device_of(const Json& header) {
  std::string text = text_of(value_of(header, "device"), "name");
  if (text.empty()) return "not known";
  const std::string driver = text_of(header, "driver");
  return driver.empty() ? text : text + ", driver " + driver;
}

std::string version_of(const Json& header) { return text_of(value_of(header, "build"), "version"); }

std::string title_of(const Records& records) {
  const std::string name = text_of(records.header, "name");
  return fmt::format("### fusebench{}: {}\n\n", name.empty() ? "" : " " + inert(name), inert(counts_of(records)));
}

std::string facts_of(const Records& records) {
  std::string text = fmt::format("- device: {}\n", code(device_of(records.header)));
  const auto add = [&](std::string_view fact, const std::string& value) {
    if (!value.empty()) text += fmt::format("- {}: {}\n", fact, code(value));
  };
  add("command", text_of(records.header, "command"));
  add("started", text_of(records.header, "started"));
  add("fusebench", version_of(records.header));
  const std::vector<std::string> warnings = warnings_of(records);
  const std::size_t told = std::min(warnings.size(), kWarnings);
  for (std::size_t i = 0; i < told; ++i) text += fmt::format("- **warning**: {}\n", code(warnings[i]));
  if (told < warnings.size()) text += fmt::format("- {} more warnings\n", warnings.size() - told);
  return text;
}

// --- failures ---

std::string failures_of(const Records& records) {
  std::vector<const Json*> failed;
  for (const Json& row : records.rows) {
    if (did_fail(row)) failed.push_back(&row);
  }
  if (failed.empty()) return {};
  std::string text =
      fmt::format("\n**{} did not pass**\n\n| verdict | row | reason | repeat it |\n| --- | --- | --- | --- |\n",
                  plural(failed.size(), "row"));
  std::size_t told = 0;
  for (; told < failed.size() && text.size() < kFailures; ++told) {
    const Json& row = *failed[told];
    text += fmt::format("| {} | {} | {} | {} |\n", inert(verdict_of(row)), code(name_of(row)),
                        code(text_of(row, "reason")), code(text_of(row, "repro")));
  }
  if (told < failed.size())
    text += fmt::format("\n{} more are not listed; results.csv has all.\n", failed.size() - told);
  return text;
}

// --- rows ---

// What the counters saw; where they were not read, what the plan's steps declare.
std::string bytes_of(const Json& row) {
  const auto read = number_of(row, "dram_read_bytes");
  const auto written = number_of(row, "dram_write_bytes");
  if (read && written) return format_mb(*read + *written);
  const auto modelled = number_of(row, "bytes_modelled");
  return modelled ? format_mb(*modelled) + " modelled" : "-";
}

std::string heads_of(const Records& records) {
  return fmt::format(
      "| case | variant | verdict | median us | speed-up over naive | speed-up over {} | HBM MB | share of floor | "
      "error/budget |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
      baseline_name(records));
}

std::string line_of(const CaseGroup& group, const Json& row) {
  const std::string verdict = inert(verdict_of(row));
  const std::string name =
      &row == group.rows.front() ? code(fmt::format("{} ({})", group.case_id, group.mode)) : std::string();
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name, code(text_of(row, "variant")),
      did_fail(row) ? "**" + verdict + "**" : verdict, figure_cell(number_of(row, "median_us"), format_us),
      speedup_cell(row, "naive"), speedup_cell(row, "cublas"), bytes_of(row),
      figure_cell(number_of(row, "floor_share"), format_percent), figure_cell(error_over_budget(row), format_percent));
}

std::string lines_of(const CaseGroup& group) {
  std::string text;
  for (const Json* row : group.rows) text += line_of(group, *row);
  return text;
}

std::size_t rows_of(std::span<const CaseGroup> groups) {
  std::size_t n = 0;
  for (const CaseGroup& group : groups) n += group.rows.size();
  return n;
}

// "fused 0.78x to 1.20x over cublas"; the baseline itself and naive say nothing new.
std::string speedups_of(std::span<const CaseGroup> groups, const std::string& baseline) {
  std::map<std::string, std::pair<double, double>> ranges;
  for (const CaseGroup& group : groups) {
    for (const Json* row : group.rows) {
      const auto value = number_of(*row, "speedup_vs_cublas");
      const std::string variant = text_of(*row, "variant");
      if (!value || variant == baseline || variant == "naive") continue;
      auto& [lowest, highest] = ranges.try_emplace(variant, *value, *value).first->second;
      lowest = std::min(lowest, *value);
      highest = std::max(highest, *value);
    }
  }
  std::string text;
  for (const auto& [variant, range] : ranges) {
    const auto& [lowest, highest] = range;
    text += lowest == highest
                ? fmt::format(", {} {:.2f}x over {}", code(variant), lowest, baseline)
                : fmt::format(", {} {:.2f}x to {:.2f}x over {}", code(variant), lowest, highest, baseline);
  }
  return text;
}

std::string folded(const std::string& op, std::span<const CaseGroup> groups, const Records& records) {
  std::string text =
      fmt::format("\n<details><summary>{}: {}{}</summary>\n\n{}", code(op), plural(rows_of(groups), "row"),
                  speedups_of(groups, baseline_name(records)), heads_of(records));
  for (const CaseGroup& group : groups) text += lines_of(group);
  return text + "\n</details>\n";
}

// In order of first appearance.
std::vector<std::pair<std::string, std::vector<CaseGroup>>> by_op(std::vector<CaseGroup> groups) {
  std::vector<std::pair<std::string, std::vector<CaseGroup>>> ops;
  for (CaseGroup& group : groups) {
    const std::string op = text_of(*group.rows.front(), "op");
    auto found = std::find_if(ops.begin(), ops.end(), [&](const auto& known) { return known.first == op; });
    if (found == ops.end()) found = ops.insert(ops.end(), {op, {}});
    found->second.push_back(std::move(group));
  }
  return ops;
}

// As many cases as a comment of which `used` letters are taken still holds.
std::span<const CaseGroup> that_fit(std::span<const CaseGroup> groups, std::size_t used) {
  std::size_t n = 0;
  for (; n < groups.size(); ++n) {
    used += lines_of(groups[n]).size();
    if (used > kComment) break;
  }
  return groups.first(n);
}

std::string tables_of(const Records& records, std::size_t used) {
  std::vector<CaseGroup> groups = group_by_case(records);
  if (groups.empty()) return {};
  std::string text;
  std::size_t shown = 0;
  if (records.rows.size() <= kOpenRows) {
    text += "\n" + heads_of(records);
    for (const CaseGroup& group : that_fit(groups, used)) {
      text += lines_of(group);
      shown += group.rows.size();
    }
  } else {
    for (const auto& [op, cases] : by_op(std::move(groups))) {
      const auto fit = that_fit(cases, used + text.size() + heads_of(records).size());
      if (fit.empty()) continue;
      text += folded(op, fit, records);
      shown += rows_of(fit);
    }
  }
  if (shown < records.rows.size()) {
    text += fmt::format("\n{} left out, since a comment holds no more; results.csv has all.\n",
                        plural(records.rows.size() - shown, "row"));
  }
  return text;
}

std::string legend_of(const Records& records) {
  if (records.rows.empty()) return {};
  return "\nEach speed-up is the other's latency over this one's, with its 95% interval. HBM MB are measured; where "
         "they "
         "could not be, they are modelled: what the steps declare. The floor is what the op needs at this run's "
         "ceilings. Over 100% of the budget a result is wrong.\n";
}

}  // namespace

std::string run_markdown(const Records& records) {
  std::string text = title_of(records) + facts_of(records) + failures_of(records);
  const std::string legend = legend_of(records);
  text += tables_of(records, text.size() + legend.size());
  return text + legend;
}

}  // namespace fusebench::reports
