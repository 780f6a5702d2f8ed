#include "reports/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "reports/columns.h"
#include "reports/format.h"
#include "reports/html_style.h"

namespace fusebench::reports {

namespace {

constexpr std::string_view kNone = "\u2013";

std::string tag(std::string_view name, std::string_view attributes, std::string_view content) {
  return fmt::format("<{}{}{}>{}</{}>", name, attributes.empty() ? "" : " ", attributes, content, name);
}

// Wide tables scroll in a frame of their own, which the keyboard reaches.
std::string table(std::string_view label, std::string_view css_class, std::string_view content) {
  return fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table "
      "class=\"{1}\">\n{2}</table>\n</div>\n",
      escaped(label), css_class, content);
}

std::string section(std::string_view title, std::string_view content, std::string_view css_class = "") {
  return fmt::format("<section class=\"{}\">\n<h2>{}</h2>\n{}</section>\n", css_class, escaped(title), content);
}

std::string class_of(const std::string& verdict) {
  return verdict == "pass" || verdict == "unsupported" ? verdict : "fail";
}

std::string verdict_of(const Json& row) {
  const std::string verdict = text_of(row, "verdict");
  return tag("span", fmt::format(R"(class="{}")", class_of(verdict)), escaped(verdict));
}

// A case id may break after its slashes.
std::string breakable(std::string_view id) {
  std::string text = escaped(id);
  for (std::size_t at = text.find('/'); at != std::string::npos; at = text.find('/', at + 6))
    text.insert(at + 1, "<wbr>");
  return text;
}

std::string case_of(std::string_view id, std::string_view mode) {
  return breakable(id) + " " + tag("span", R"(class="mode")", escaped(mode));
}

// A JSON value as a cell; null shows its reason.
std::string cell(const Json& object, const Column& column) {
  const auto found = object.find(column.name);
  if (found == object.end() || found->is_null()) {
    const std::string reason = column.reason.empty() ? std::string() : text_of(object, column.reason);
    return tag("td", reason.empty() ? R"(class="soft")" : fmt::format(R"(class="soft" title="{}")", escaped(reason)),
               kNone);
  }
  if (found->is_string()) return tag("td", "", escaped(found->get<std::string>()));
  return tag("td", found->is_number() ? R"(class="n")" : "", escaped(found->dump()));
}

std::string head_of(std::span<const Column> all) {
  std::string heads;
  for (const Column& column : all) {
    heads += tag("th", fmt::format(R"(scope="col" title="{}")", escaped(column.description)), escaped(column.name));
  }
  return tag("thead", "", tag("tr", "", heads)) + "\n";
}

std::string line_of(const Json& object, std::span<const Column> all) {
  std::string cells;
  for (const Column& column : all) cells += cell(object, column);
  return tag("tr", "", cells) + "\n";
}

// Rows that `chosen` takes, with why they are as they are and how to repeat them.
std::string reasons_table(const Records& records, const std::string& label,
                          const std::function<bool(const std::string&)>& chosen) {
  std::string lines;
  for (const Json& row : records.rows) {
    if (!chosen(text_of(row, "verdict"))) continue;
    lines += tag("tr", "",
                 tag("td", "", verdict_of(row)) + tag("td", "", escaped(text_of(row, "variant"))) +
                     tag("td", R"(class="id")", case_of(text_of(row, "case_id"), mode_of(row))) +
                     tag("td", R"(class="text")", escaped(text_of(row, "reason"))) +
                     tag("td", R"(class="text")", tag("code", "", escaped(text_of(row, "repro"))))) +
             "\n";
  }
  if (lines.empty()) return {};
  const std::string head =
      R"(<thead><tr><th scope="col">verdict</th><th scope="col">variant</th><th scope="col">case</th>)"
      "<th scope=\"col\">reason</th><th scope=\"col\">repeat</th></tr></thead>\n";
  return table(label, "", head + tag("tbody", "", lines));
}

// One figure of a variant in the summary by case.
struct Figure {
  std::string name;
  std::function<std::string(const Json&)> text;
};

template <class Format>
std::string formatted(std::optional<double> value, Format format) {
  return value ? format(*value) : std::string(kNone);
}

std::vector<Figure> figures_of(const Records& records, const std::string& variant) {
  std::vector<Figure> figures = {{"median \u00b5s", [](const Json& row) {
                                    const std::string median = formatted(number_of(row, "median_us"), format_us);
                                    return text_of(row, "verdict") == "pass" ? median : verdict_of(row) + " " + median;
                                  }}};
  for (const std::string base : {"naive", "cublas"}) {
    const bool known = std::any_of(records.rows.begin(), records.rows.end(), [&](const Json& row) {
      return text_of(row, "variant") == variant && number_of(row, "speedup_vs_" + base);
    });
    if (!known || variant == base) continue;
    figures.push_back({"vs " + (base == "naive" ? base : baseline_name(records)), [base](const Json& row) {
                         const std::string speedup = format_speedup(row, base);
                         return speedup.empty() ? std::string(kNone) : speedup;
                       }});
  }
  figures.push_back({"MB", [](const Json& row) { return formatted(number_of(row, "bytes_modelled"), format_mb); }});
  figures.push_back({"error", [](const Json& row) { return formatted(error_over_budget(row), format_percent); }});
  return figures;
}

std::vector<std::string> variants_of(const Records& records) {
  std::vector<std::string> names;
  for (const Json& row : records.rows) {
    const std::string name = text_of(row, "variant");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string figure_cells(const CaseGroup& group, const std::string& variant, const std::vector<Figure>& figures) {
  const auto row = std::find_if(group.rows.begin(), group.rows.end(),
                                [&](const Json* candidate) { return text_of(*candidate, "variant") == variant; });
  std::string cells;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    cells += tag("td", i == 0 ? R"(class="n first")" : R"(class="n")",
                 row == group.rows.end() ? std::string(kNone) : figures[i].text(**row));
  }
  return cells;
}

std::string summary_by_case(const Records& records) {
  std::vector<std::pair<std::string, std::vector<Figure>>> variants;
  for (const std::string& name : variants_of(records)) variants.emplace_back(name, figures_of(records, name));

  std::string names = R"(<th rowspan="2" scope="col">case</th>)";
  std::string heads;
  for (const auto& [name, figures] : variants) {
    names += tag("th", fmt::format(R"(class="first" scope="colgroup" colspan="{}")", figures.size()), escaped(name));
    for (std::size_t i = 0; i < figures.size(); ++i) {
      heads += tag("th", fmt::format(R"(scope="col" class="n{}")", i == 0 ? " first" : ""), escaped(figures[i].name));
    }
  }
  std::string lines;
  for (const CaseGroup& group : group_by_case(records)) {
    std::string cells = tag("th", R"(scope="row" class="id")", case_of(group.case_id, group.mode));
    for (const auto& [name, figures] : variants) cells += figure_cells(group, name, figures);
    lines += tag("tr", "", cells) + "\n";
  }
  return R"(<p class="soft">Median latency of one launch; speed-ups are medians of paired samples with their 95% )"
         "interval; "
         "MB are modelled (10<sup>6</sup> bytes); error is the worst error as a share of its budget.</p>\n" +
         table("Summary by case", "",
               tag("thead", R"(class="two")", tag("tr", "", names) + tag("tr", "", heads)) + "\n" +
                   tag("tbody", "", lines));
}

// {"device": {"name": "x"}} is the fact device.name.
void add_facts(std::string& lines, const std::string& name, const Json& value) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items())
      add_facts(lines, name.empty() ? key : fmt::format("{}.{}", name, key), inner);
    return;
  }
  const std::string text = value.is_string() ? value.get<std::string>() : value.empty() ? "unknown" : value.dump();
  lines +=
      tag("tr", "", tag("th", R"(scope="row")", escaped(name)) + tag("td", R"(class="text")", escaped(text))) + "\n";
}

std::string facts(const Records& records) {
  if (!records.header.is_object()) return "<p>The file has no header line.</p>\n";
  std::string lines;
  add_facts(lines, "", records.header);
  return table("Run", "", tag("tbody", "", lines));
}

std::string steps(const Records& records) {
  std::string text;
  for (const Json& row : records.rows) {
    const std::vector<Json> all = steps_of(row);
    if (all.empty()) continue;
    std::string lines;
    for (const Json& step : all) lines += line_of(step, step_columns());
    const std::string title = fmt::format("<strong>{}</strong> {} ({}): {} steps", escaped(text_of(row, "variant")),
                                          breakable(text_of(row, "case_id")), escaped(mode_of(row)), all.size());
    text += fmt::format("<details><summary>{}</summary>\n{}</details>\n", title,
                        table("Steps", "wide", head_of(step_columns()) + tag("tbody", "", lines)));
  }
  return text.empty() ? "<p>No row has steps.</p>\n" : text;
}

std::string full_table(const Records& records) {
  std::string lines;
  for (const Json& row : records.rows) lines += line_of(row, columns());
  return table("All columns", "wide", head_of(columns()) + tag("tbody", "", lines));
}

std::string counts(const Records& records) {
  std::string text = fmt::format("{} row{}", records.rows.size(), records.rows.size() == 1 ? "" : "s");
  std::string separator = ": ";
  for (const VerdictCount& count : count_verdicts(records)) {
    text += separator + tag("span", fmt::format(R"(class="{}")", class_of(count.verdict)),
                            fmt::format("{} {}", count.rows, escaped(count.verdict)));
    separator = ", ";
  }
  return tag("p", "", text) + "\n";
}

std::string warnings(const Records& records) {
  std::string text;
  for (const std::string& warning : warnings_of(records)) {
    text += tag("p", R"(class="fail")", "Warning: " + escaped(warning)) + "\n";
  }
  return text;
}

std::string head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{}'; base-uri )"
      "'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      kHtmlStyleSha256, escaped(title), kHtmlStyle);
}

std::string body(const std::string& title, const Records& records) {
  const auto is_failure = [](const std::string& verdict) { return verdict != "pass" && verdict != "unsupported"; };
  const std::string failures = reasons_table(records, "Failures", is_failure);
  const std::string unsupported =
      reasons_table(records, "Unsupported", [](const std::string& verdict) { return verdict == "unsupported"; });

  std::string text = tag("h1", "", escaped(title)) + "\n" + counts(records) + warnings(records);
  if (!failures.empty()) text += section("Failures", failures);
  text += section("Summary by case", summary_by_case(records));
  if (!unsupported.empty()) text += section("Unsupported", unsupported);
  text += section("Run", facts(records));
  text += section("Steps", steps(records), "screen");
  text += section("All columns", full_table(records), "screen");
  text += "<p class=\"print\">Steps and the full table are in steps.csv and results.csv.</p>\n";
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
        out += control && c != '\n' && c != '\t' ? std::string("\uFFFD") : std::string(1, c);
      }
    }
  }
  return out;
}

std::string html_page(const Records& records) {
  const std::string name = text_of(records.header, "name");
  const std::string title = "fusebench" + (name.empty() ? "" : ": " + name);
  return head(title) + tag("body", "", "\n<main>\n" + body(title, records) + "</main>\n") + "\n</html>\n";
}

}  // namespace fusebench::reports
