#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "reports/bootstrap.h"
#include "reports/compare_text.h"
#include "reports/format.h"
#include "reports/markdown_text.h"

namespace fusebench::reports {

namespace {

std::string median(const Timing& timing) { return timing.median_us ? format_us(*timing.median_us) : "-"; }

std::string remarks(const ComparedRow& row) {
  std::string text;
  for (const std::string& remark : remarks_of(row)) text += "<br>" + code(remark);
  return text;
}

// As many rows as a comment of which `used` letters are taken still holds.
std::string table(std::span<const ComparedRow* const> rows, std::size_t used) {
  std::string text = fmt::format(
      "| latency | new/base [{:.0f}%] | noise | base us | new us | row |\n| --- | --- | ---: | ---: | ---: | --- |\n",
      kConfidence * 100);
  std::size_t left = rows.size();
  for (const ComparedRow* row : rows) {
    if (used + text.size() > kComment) break;
    --left;
    text += fmt::format("| {}{} | {} | {} | {} | {} | {}{} |\n", row->regression.empty() ? "" : "**regression**, ",
                        name_of(row->kind), format_ratio(*row), format_noise(*row), median(row->base),
                        median(row->current), code(row_name(*row)), remarks(*row));
  }
  if (left > 0) text += fmt::format("\n{} more are left out, since a comment holds no more.\n", left);
  return text;
}

// What a reviewer has to see: anything but a latency that stayed, or that nothing could be said of, without a change.
bool worth_a_look(const ComparedRow* row) {
  const bool quiet = row->kind == Kind::same || row->kind == Kind::unsure;
  return !quiet || !row->regression.empty() || !row->changes.empty();
}

}  // namespace

std::string comparison_markdown(const Comparison& comparison) {
  std::vector<const ComparedRow*> rows = by_importance(comparison);
  const auto quiet = std::stable_partition(rows.begin(), rows.end(), worth_a_look);
  std::string text = fmt::format("### fusebench: {}\n\n{}.\n\n- base: {}\n- new: {}\n", inert(counts_of(comparison)),
                                 inert(regressions_of(comparison)), code(format_side(comparison.base)),
                                 code(format_side(comparison.current)));
  for (const Difference& difference : comparison.differences) {
    text += fmt::format("- differs: {}\n", code(format_difference(difference)));
  }
  for (const std::string& caveat : caveats_of(comparison)) text += fmt::format("- note: {}\n", code(caveat));
  if (quiet != rows.begin()) text += "\n" + table({rows.begin(), quiet}, text.size());
  if (quiet != rows.end()) {
    text +=
        fmt::format("\n<details><summary>{} rows same or unsure, nothing else changed</summary>\n\n{}\n</details>\n",
                    rows.end() - quiet, table({quiet, rows.end()}, text.size()));
  }
  return text;
}

}  // namespace fusebench::reports
