#include "reports/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reports/format.h"

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

// A record's text may come from a plug-in: nothing in it may steer the terminal.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

// Characters, not bytes: figures are ASCII, names need not be.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return to_the_right ? space + text : text + space;
}

std::string_view colour_of(std::string_view verdict) {
  if (verdict == "pass") return "\x1b[32m";
  if (verdict == "unsupported") return "\x1b[33m";
  return "\x1b[31m";
}

std::string coloured(std::string text, std::string_view colour, const SummaryStyle& style) {
  return style.colour ? fmt::format("{}{}\x1b[0m", colour, text) : text;
}

template <class Format>
std::string figure(std::optional<double> value, Format format) {
  return value ? format(*value) : std::string("-");
}

std::string speedup(const Json& row, const std::string& base) {
  const std::string text = format_speedup(row, base);
  return text.empty() ? "-" : text;
}

Cells cells_of(const Json& row) {
  return {printable(text_of(row, "variant")),
          printable(text_of(row, "verdict")),
          figure(number_of(row, "median_us"), format_us),
          speedup(row, "naive"),
          speedup(row, "cublas"),
          figure(number_of(row, "bytes_modelled"), format_mb),
          figure(error_over_budget(row), format_percent)};
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
    line += i == kVerdict ? coloured(cell, colour_of(cells[i]), style) : cell;
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string head_line(const Records& records, const Widths& widths) {
  Cells heads;
  std::copy(kHeads.begin(), kHeads.end(), heads.begin());
  heads[kBaseline] = "vs " + baseline_name(records);
  return line_of(heads, widths, {});
}

// Words of `text` in lines of at most `width` characters, each indented.
std::string wrapped(const std::string& text, std::size_t width) {
  constexpr std::string_view indent = "      ";
  std::string out;
  std::string line(indent);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (line.size() > indent.size() && width_of(line) + 1 + width_of(word) > width) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
  }
  return line.size() > indent.size() ? out + line + "\n" : out;
}

std::string counts_line(const Records& records, const SummaryStyle& style) {
  std::string line = fmt::format("{} row{}", records.rows.size(), records.rows.size() == 1 ? "" : "s");
  std::string separator = ": ";
  for (const VerdictCount& count : count_verdicts(records)) {
    line += separator;
    line += coloured(fmt::format("{} {}", count.rows, printable(count.verdict)), colour_of(count.verdict), style);
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
    text += coloured("warning: " + printable(warning), colour_of("warning"), style) + "\n";
  }
  text += counts_line(records, style);
  if (!style.report_path.empty()) text += fmt::format("report: {}\n", printable(style.report_path));
  return text;
}

}  // namespace fusebench::reports
