#include "reports/csv.h"

#include <string_view>
#include <utility>

#include "reports/columns.h"

namespace fusebench::reports {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

std::string quoted_if_needed(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

// Appends cells to one line at a time.
class Table {
 public:
  void cell(std::string_view text) {
    if (!at_line_start_) text_ += ',';
    text_ += text;
    at_line_start_ = false;
  }
  void cell_of(const Json& object, std::string_view key) {
    const auto found = object.find(key);
    cell(found == object.end() ? std::string() : csv_cell(*found));
  }
  void end_line() {
    text_ += kLineEnd;
    at_line_start_ = true;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  bool at_line_start_ = true;
};

}  // namespace

std::string csv_cell(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>() ? "TRUE" : "FALSE";  // R takes "true" for text
  if (!value.is_string()) {
    return quoted_if_needed(value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  }
  std::string text = value.get<std::string>();
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos)
    text.insert(text.begin(), '\'');
  return quoted_if_needed(std::move(text));
}

std::string results_csv(const Records& records) {
  Table table;
  for (const Column& column : columns()) table.cell(column.name);
  table.end_line();
  for (const Json& row : records.rows) {
    for (const Column& column : columns()) table.cell_of(row, column.name);
    table.end_line();
  }
  return table.take();
}

std::string steps_csv(const Records& records) {
  Table table;
  for (std::string_view key : key_columns()) table.cell(key);
  table.cell("step");
  for (const Column& column : step_columns()) table.cell(column.name);
  table.end_line();
  for (const Json& row : records.rows) {
    std::size_t number = 0;
    for (const Json& step : steps_of(row)) {
      for (std::string_view key : key_columns()) table.cell_of(row, key);
      table.cell(std::to_string(++number));
      for (const Column& column : step_columns()) table.cell_of(step, column.name);
      table.end_line();
    }
  }
  return table.take();
}

}  // namespace fusebench::reports
