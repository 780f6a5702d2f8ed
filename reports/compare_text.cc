#include "reports/compare_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/format.h"

namespace fusebench::reports {

namespace {

constexpr std::size_t kLongestText = 48;  // of a kernel's name or a hash in a line of changes

std::string shortened(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

std::string format_value(std::string_view name, const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return shortened(value.get<std::string>());
  if (!value.is_number()) return shortened(value.dump());
  if (name.ends_with("_bytes") || name.starts_with("bytes_")) return format_mb(value.get<double>()) + " MB";
  return value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump();
}

std::string arrow(const std::string& name, const Json& base, const Json& current) {
  std::string from = format_value(name, base);
  std::string to = format_value(name, current);
  if (from == to) {  // they differ beyond what is shown
    from = base.dump();
    to = current.dump();
  }
  return fmt::format("{} {} -> {}", name, from, to);
}

}  // namespace

std::string format_ratio(const ComparedRow& row) {
  if (!row.ratio) return "-";
  const auto figure = [](double ratio) { return fmt::format("{:.{}f}", ratio, ratio < 10 ? 3 : ratio < 100 ? 1 : 0); };
  if (!row.ratio->lo || !row.ratio->hi) return figure(row.ratio->value);
  return fmt::format("{} [{}, {}]", figure(row.ratio->value), figure(*row.ratio->lo), figure(*row.ratio->hi));
}

std::string format_noise(const ComparedRow& row) {
  if (!row.ratio) return "-";
  const double percent = row.noise.relative * 100;
  return fmt::format("{:.{}f}%{}", percent, percent < 10 ? 1 : 0, row.noise.assumed > 0 ? "*" : "");
}

std::string format_change(const Change& change) { return arrow(change.column, change.base, change.current); }

std::string format_difference(const Difference& difference) {
  return arrow(difference.fact, difference.base, difference.current);
}

std::string format_side(const Side& side) {
  std::string text = side.path.empty() ? side.run_id : side.path;
  std::string separator = ": ";
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    text += separator + part;
    separator = ", ";
  };
  add(side.name);
  add(side.started);
  add(side.version.empty() ? "" : "fusebench " + side.version);
  add(fmt::format("{} row{}", side.rows, side.rows == 1 ? "" : "s"));
  return text;
}

std::string counts_of(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (Kind kind : kKinds) {
    if (const std::size_t n = count(comparison, kind); n > 0) parts.push_back(fmt::format("{} {}", n, name_of(kind)));
  }
  const std::size_t rows = comparison.rows.size();
  return fmt::format("{} row{}{}{}", rows, rows == 1 ? "" : "s", parts.empty() ? "" : ": ", fmt::join(parts, ", "));
}

std::string regressions_of(const Comparison& comparison) {
  const std::size_t all = regressions(comparison);
  const auto slower = std::count_if(comparison.rows.begin(), comparison.rows.end(), [](const ComparedRow& row) {
    return !row.regression.empty() && row.kind == Kind::slower;
  });
  if (all == 0) {
    if (joined(comparison) == 0) return "nothing was compared: the runs have no row in common";
    const std::size_t unsure = count(comparison, Kind::unsure);
    return fmt::format("no regression: no verdict was lost, no row is surely slower than base by more than {:.4g}%{}",
                       comparison.threshold * 100, unsure > 0 ? fmt::format("; {} may be", unsure) : "");
  }
  return fmt::format("{} regression{}: {} slower than base by more than {:.4g}%, {} whose verdict was pass", all,
                     all == 1 ? "" : "s", slower, comparison.threshold * 100, all - static_cast<std::size_t>(slower));
}

std::string row_name(const ComparedRow& row) {
  std::string name =
      fmt::format("{}/{} ({})", text_of(row.key, "case_id"), text_of(row.key, "variant"), mode_of(row.key));
  if (row.occurrence > 1) name += fmt::format(", occurrence {}", row.occurrence);
  return name;
}

std::vector<std::string> remarks_of(const ComparedRow& row) {
  std::vector<std::string> remarks;
  if (!row.regression.empty()) remarks.push_back("regression: " + row.regression);
  if (!row.reason.empty()) remarks.push_back("latency not judged: " + row.reason);
  if (row.kind == Kind::fresh) remarks.push_back("not in base; verdict " + row.current.verdict);
  if (row.kind == Kind::gone) remarks.push_back("not in new; verdict was " + row.base.verdict);
  std::vector<std::string> changes;
  for (const Change& change : row.changes) changes.push_back(format_change(change));
  if (!changes.empty()) remarks.push_back(fmt::format("changed: {}", fmt::join(changes, "; ")));
  return remarks;
}

std::vector<std::string> caveats_of(const Comparison& comparison) {
  std::vector<std::string> caveats;
  for (const std::string& warning : comparison.base.warnings) caveats.push_back("base: " + warning);
  for (const std::string& warning : comparison.current.warnings) caveats.push_back("new: " + warning);
  caveats.insert(caveats.end(), comparison.notes.begin(), comparison.notes.end());
  return caveats;
}

}  // namespace fusebench::reports
