#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/bootstrap.h"
#include "reports/compare_text.h"
#include "reports/format.h"
#include "reports/terminal.h"

namespace fusebench::reports {

namespace {

constexpr std::size_t kRatio = 1;
constexpr std::size_t kFigures = 5;  // from here on figures end and the row's name begins
using Cells = std::array<std::string, kFigures + 1>;
using Widths = std::array<std::size_t, kFigures>;

std::string median(const Timing& timing) { return timing.median_us ? format_us(*timing.median_us) : "-"; }

Cells heads() {
  return {"latency", fmt::format("new/base [{:.0f}%]", kConfidence * 100), "noise", "base us", "new us", "row"};
}

Cells cells_of(const ComparedRow& row) {
  return {std::string(name_of(row.kind)), format_ratio(row), format_noise(row), median(row.base), median(row.current),
          printable(row_name(row))};
}

Widths widths_of(const Comparison& comparison) {
  Widths widths;
  const auto widen = [&](const Cells& cells) {
    for (std::size_t i = 0; i < kFigures; ++i) widths[i] = std::max(widths[i], cells[i].size());
  };
  widths.fill(0);
  widen(heads());
  for (const ComparedRow& row : comparison.rows) widen(cells_of(row));
  return widths;
}

std::string_view colour_of(Kind kind) {
  if (kind == Kind::slower || kind == Kind::gone) return kBad;
  return kind == Kind::faster ? kGood : kDoubtful;
}

std::string line_of(const Cells& cells, const Widths& widths, std::string_view colour, const TableStyle& style) {
  std::string line;
  for (std::size_t i = 0; i < kFigures; ++i) {
    const std::string cell = padded(cells[i], widths[i], i > kRatio);
    line += "  " + (i == 0 && !colour.empty() ? coloured(cell, colour, style.colour) : cell);
  }
  return line + "  " + cells[kFigures] + "\n";
}

std::string line_of(const ComparedRow& row, const Widths& widths, const TableStyle& style) {
  std::string text =
      line_of(cells_of(row), widths, row.kind == Kind::same ? std::string_view() : colour_of(row.kind), style);
  for (const std::string& remark : remarks_of(row)) text += wrapped(printable(remark), style.width);
  return text;
}

}  // namespace

std::string comparison_table(const Comparison& comparison, const TableStyle& style) {
  std::string text = printable("base  " + format_side(comparison.base)) + "\n" +
                     printable("new   " + format_side(comparison.current)) + "\n";
  for (const Difference& difference : comparison.differences) {
    text += coloured(printable("differs: " + format_difference(difference)), kDoubtful, style.colour) + "\n";
  }
  const Widths widths = widths_of(comparison);
  if (!comparison.rows.empty()) text += "\n" + line_of(heads(), widths, {}, style);
  for (const ComparedRow* row : by_importance(comparison)) text += line_of(*row, widths, style);
  text += "\n";
  const std::vector<std::string> caveats = caveats_of(comparison);
  for (const std::string& caveat : caveats)
    text += coloured("note: " + printable(caveat), kDoubtful, style.colour) + "\n";
  text += counts_of(comparison) + "\n";
  return text + coloured(regressions_of(comparison), regressions(comparison) > 0 ? kBad : kGood, style.colour) + "\n";
}

}  // namespace fusebench::reports
