#include "reports/page_data.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "reports/columns.h"
#include "reports/format.h"

namespace fusebench::reports {

namespace {

constexpr auto kTensorKeys = std::to_array<std::string_view>(
    {"name", "storage", "dtype", "dims", "compulsory_read_bytes", "compulsory_write_bytes"});
constexpr auto kMutantKeys = std::to_array<std::string_view>({"name", "outcome"});

Json array_of(const Json& object, std::string_view key) {
  Json array = value_of(object, key);
  return array.is_array() ? array : Json::array();
}

Json dictionary(std::span<const Column> all) {
  Json list = Json::array();
  for (const Column& column : all) list.push_back({column.name, column.unit, column.description, column.reason});
  return list;
}

// A figure, a boolean, or text: what else a damaged record may hold is shown as JSON. Browsers fail at lines of a
// megabyte.
constexpr std::size_t kLongestText = 20'000;
Json shown(Json value) {
  if (value.is_structured()) value = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!value.is_string()) return value;
  const std::string text = value.get<std::string>();
  const std::string_view start = first_bytes(text, kLongestText);
  if (start.size() == text.size()) return value;
  return fmt::format("{}... ({} more bytes in results.jsonl)", start, text.size() - start.size());
}

// What parts take for text.
bool is_text(std::string_view column) {
  return column == "case_id" || column == "op" || column == "variant" || column == "verdict" || column == "kernel" ||
         column == "name" || column == "storage" || column == "dtype" || column == "outcome";
}

Json text_or_null(const Json& value) { return value.is_string() || value.is_null() ? value : Json(value.dump()); }

Json number_or_null(const Json& value) { return value.is_number() ? value : Json(); }

Json values_of(const Json& object, std::span<const Column> all) {
  Json values = Json::array();
  for (const Column& column : all) {
    const Json value = shown(value_of(object, column.name));
    values.push_back(is_text(column.name) ? text_or_null(value) : value);
  }
  return values;
}

Json rounded(const Json& numbers, double steps_a_unit) {
  Json list = Json::array();
  for (const Json& number : numbers) {
    if (!number.is_number()) {
      list.push_back(nullptr);
      continue;
    }
    const double value = std::round(number.get<double>() * steps_a_unit) / steps_a_unit;
    const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
    list.push_back(is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value));
  }
  return list;
}

Json extents_of(const Json& entry, std::string_view key) {
  Json extents = Json::array();
  for (const Json& extent : array_of(entry, key)) extents.push_back(shown(extent));
  return extents;
}

// What each entry of an array has under these keys: text, extents or bytes.
Json entries_of(const Json& array, std::span<const std::string_view> keys) {
  Json entries = Json::array();
  for (const Json& entry : array) {
    Json values = Json::array();
    for (const std::string_view key : keys) {
      values.push_back(is_text(key)    ? text_or_null(shown(value_of(entry, key)))
                       : key == "dims" ? extents_of(entry, key)
                                       : number_or_null(value_of(entry, key)));
    }
    entries.push_back(std::move(values));
  }
  return entries;
}

// Bytes by tensor.
Json touches_of(const Json& step, std::string_view key) {
  Json touches = Json::object();
  const Json all = value_of(step, key);
  if (!all.is_object()) return touches;
  for (const auto& [tensor, bytes] : all.items()) touches[tensor] = number_or_null(bytes);
  return touches;
}

Json packed(const Json& row) {
  Json steps = Json::array();
  for (const Json& step : steps_of(row)) {
    Json values = values_of(step, step_columns());
    for (const char* key : {"reads", "writes"}) values.push_back(touches_of(step, key));
    steps.push_back(std::move(values));
  }
  const Json more = {rounded(array_of(row, "samples_us"), 1e4), rounded(array_of(row, "samples_mhz"), 1),
                     std::move(steps), entries_of(array_of(row, "tensors"), kTensorKeys),
                     entries_of(array_of(row, "mutants"), kMutantKeys)};
  return {{"values", values_of(row, columns())}, {"more", more.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

}  // namespace

std::string page_title(const Records& records) {
  const std::string name = text_of(records.header, "name");
  return "fusebench" + (name.empty() ? "" : ": " + name);
}

Json page_data(const Records& records) {
  Json rows = Json::array();
  for (const Json& row : records.rows) rows.push_back(packed(row));
  return {{"kind", "run"},
          {"title", page_title(records)},
          {"header", records.header},
          {"warnings", warnings_of(records)},
          {"baseline", baseline_name(records)},
          {"columns", dictionary(columns())},
          {"step_columns", dictionary(step_columns())},
          {"tensor_keys", kTensorKeys},
          {"mutant_keys", kMutantKeys},
          {"rows", std::move(rows)}};
}

}  // namespace fusebench::reports
