#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "reports/bootstrap.h"
#include "reports/compare_text.h"
#include "reports/format.h"

namespace fusebench::reports {

namespace {

bool alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Punctuation that begins no markup; a colon does in front of a slash, an underscore at the edge of a word.
bool plain(const std::string& text, std::size_t i) {
  const char next = i + 1 < text.size() ? text[i + 1] : ' ';
  if (text[i] == ':') return next != '/';
  if (text[i] == '_') return i > 0 && alphanumeric(text[i - 1]) && alphanumeric(next);
  const bool ascii = static_cast<unsigned char>(text[i]) < 0x80;
  return !ascii || alphanumeric(text[i]) || std::string_view(" -./,()%;").find(text[i]) != std::string_view::npos;
}

// Text that no table, link, emphasis or tag can be made of: other punctuation becomes a character reference, which is
// never read as markup.
std::string inert(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (plain(text, i)) {
      out += text[i];
    } else {
      out += c < 0x20 || c == 0x7f ? std::string(" ") : fmt::format("&#{};", static_cast<int>(c));
    }
  }
  return out;
}

// In <code> GitHub makes no mentions and no links of issues.
std::string code(const std::string& text) { return "<code>" + inert(text) + "</code>"; }

std::string median(const Timing& timing) { return timing.median_us ? format_us(*timing.median_us) : "-"; }

std::string remarks(const ComparedRow& row) {
  std::string text;
  for (const std::string& remark : remarks_of(row)) text += "<br>" + code(remark);
  return text;
}

std::string table(std::span<const ComparedRow* const> rows) {
  std::string text = fmt::format(
      "| latency | new/base [{:.0f}%] | noise | base us | new us | row |\n| --- | --- | ---: | ---: | ---: | --- |\n",
      kConfidence * 100);
  for (const ComparedRow* row : rows) {
    text += fmt::format("| {}{} | {} | {} | {} | {} | {}{} |\n", row->regression.empty() ? "" : "**regression**, ",
                        name_of(row->kind), format_ratio(*row), format_noise(*row), median(row->base),
                        median(row->current), code(row_name(*row)), remarks(*row));
  }
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
  if (quiet != rows.begin()) text += "\n" + table({rows.begin(), quiet});
  if (quiet != rows.end()) {
    text +=
        fmt::format("\n<details><summary>{} rows same or unsure, nothing else changed</summary>\n\n{}\n</details>\n",
                    rows.end() - quiet, table({quiet, rows.end()}));
  }
  return text;
}

}  // namespace fusebench::reports
