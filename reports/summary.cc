#include "reports/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reports/format.h"
#include "reports/terminal.h"

namespace fusebench::reports {

namespace {

constexpr std::array<std::string_view, 7> kHeads = {"variant",   "verdict",     "median us",   "vs naive",
                                                    "vs cublas", "modelled MB", "error/budget"};
constexpr std::size_t kVerdict = 1;
constexpr std::size_t kBaseline = 4;
constexpr std::size_t kTextColumns = 2;  // the rest are figures, set to the right
constexpr std::string_view kGap = "  ";
using Cells = std::array<std::string, kHeads.size()>;
using Widths = std::array<std::size_t, kHeads.size()>;

std::string_view colour_of(std::string_view verdict) {
  if (verdict == "pass") return kGood;
  if (verdict == "unsupported") return kDoubtful;
  return kBad;
}

Cells cells_of(const Json& row) {
  return {printable(text_of(row, "variant")),
          printable(text_of(row, "verdict")),
          figure_cell(number_of(row, "median_us"), format_us),
          speedup_cell(row, "naive"),
          speedup_cell(row, "cublas"),
          figure_cell(number_of(row, "bytes_modelled"), format_mb),
          figure_cell(error_over_budget(row), format_percent)};
}

Widths widths_of(const Records& records) {
  Widths widths;
  for (std::size_t i = 0; i < kHeads.size(); ++i) widths[i] = kHeads[i].size();
  for (const Json& row : records.rows) {
    const Cells cells = cells_of(row);
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  return widths;
}

std::string line_of(const Cells& cells, const Widths& widths, const SummaryStyle& style) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = padded(cells[i], widths[i], i >= kTextColumns);
    line += kGap;
    line += i == kVerdict ? coloured(cell, colour_of(cells[i]), style.colour) : cell;
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string head_line(const Records& records, const Widths& widths) {
  Cells heads;
  std::copy(kHeads.begin(), kHeads.end(), heads.begin());
  heads[kBaseline] = "vs " + baseline_name(records);
  return line_of(heads, widths, {});
}

std::string counts_line(const Records& records, const SummaryStyle& style) {
  std::string line = fmt::format("{} row{}", records.rows.size(), records.rows.size() == 1 ? "" : "s");
  std::string separator = ": ";
  for (const VerdictCount& count : count_verdicts(records)) {
    line += separator;
    line +=
        coloured(fmt::format("{} {}", count.rows, printable(count.verdict)), colour_of(count.verdict), style.colour);
    separator = ", ";
  }
  return line + "\n";
}

}  // namespace

std::string summary(const Records& records, const SummaryStyle& style) {
  const Widths widths = widths_of(records);
  std::string text;
  if (!records.rows.empty()) text += head_line(records, widths);
  for (const CaseGroup& group : group_by_case(records)) {
    text += printable(fmt::format("{} ({})", group.case_id, group.mode)) + "\n";
    for (const Json* row : group.rows) {
      text += line_of(cells_of(*row), widths, style);
      text += wrapped(printable(text_of(*row, "reason")), style.width);
      if (number_of(*row, "median_us")) text += wrapped(printable(text_of(*row, "timing_reason")), style.width);
    }
  }
  if (!text.empty()) text += "\n";
  for (const std::string& warning : warnings_of(records)) {
    text += coloured("warning: " + printable(warning), kBad, style.colour) + "\n";
  }
  text += counts_line(records, style);
  if (!style.report_path.empty()) text += fmt::format("report: {}\n", printable(style.report_path));
  return text;
}

}  // namespace fusebench::reports
