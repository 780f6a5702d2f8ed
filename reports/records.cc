#include "reports/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace fusebench::reports {

namespace {

const Json* find(const Json& row, std::string_view key) {
  if (!row.is_object()) return nullptr;
  const auto found = row.find(key);
  return found == row.end() ? nullptr : &*found;
}

// Who writes or walks a value calls itself a level: a damaged line must not exhaust the stack.
constexpr int kDeepest = 100;
bool is_too_deep(std::string_view line) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\') ++i;
    if (in_text) continue;
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

bool is_row(const Json& line) { return line.is_object() && line.contains("case_id"); }

}  // namespace

Records read_records(std::istream& in) {
  Records records;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const bool cut_off = in.eof();  // getline meets the end of the file only where the newline is missing
    if (line.empty() || line == "\r") continue;
    if (is_too_deep(line)) {
      records.notes.push_back(
          fmt::format("line {} is nested deeper than {} levels and was left out", number, kDeepest));
      continue;
    }
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (is_row(json)) {
      records.rows.push_back(std::move(json));
    } else if (json.is_object() && records.header.is_null() && records.rows.empty()) {
      records.header = std::move(json);
    } else if (cut_off) {
      records.notes.push_back(fmt::format("line {} is cut off after {} bytes and was left out", number, line.size()));
    } else {
      records.notes.push_back(fmt::format("line {} is not a record and was left out", number));
    }
  }
  if (records.header.is_null()) records.notes.emplace_back("there is no header line");
  if (records.rows.empty()) records.notes.emplace_back("there are no rows");
  return records;
}

Records read_records(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) {
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", file.string(),
                    std::filesystem::is_directory(file) ? "it is a folder" : std::generic_category().message(errno)));
  }
  Records records = read_records(in);
  if (in.bad())
    throw std::runtime_error(fmt::format("cannot read {} to its end; copy it anew, or try again", file.string()));
  return records;
}

std::string to_line(const Json& record) {
  return record.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string text_of(const Json& row, std::string_view key) {
  const Json* value = find(row, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<double> number_of(const Json& row, std::string_view key) {
  const Json* value = find(row, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

Json value_of(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  return value != nullptr ? *value : Json();
}

std::vector<Json> steps_of(const Json& row) {
  std::vector<Json> steps;
  const Json* array = find(row, "steps");
  if (array == nullptr || !array->is_array()) return steps;
  for (const Json& step : *array) {
    if (step.is_object()) steps.push_back(step);
  }
  return steps;
}

std::vector<std::string> warnings_of(const Records& records) {
  std::vector<std::string> all;
  const Json* warnings = find(records.header, "warnings");
  if (warnings != nullptr && warnings->is_array()) {
    for (const Json& warning : *warnings) {
      if (warning.is_string()) all.push_back(warning.get<std::string>());
    }
  }
  // Written last of all.
  if (records.header.is_object() && !records.header.empty() && find(records.header, "stages_s") == nullptr) {
    all.emplace_back("the run was cut off or still goes on: rows may be missing");
  }
  for (const std::string& note : records.notes) all.push_back("results.jsonl: " + note);
  return all;
}

std::vector<double> unthrottled(const std::vector<double>& samples_us, const std::vector<double>& samples_mhz) {
  std::vector<double> known;
  std::copy_if(samples_mhz.begin(), samples_mhz.end(), std::back_inserter(known), [](double mhz) { return mhz > 0; });
  std::sort(known.begin(), known.end());
  const std::size_t n = known.size();
  const double median_mhz = n > 0 ? (known[(n - 1) / 2] + known[n / 2]) / 2 : 0;
  std::vector<double> kept;
  for (std::size_t i = 0; i < samples_us.size(); ++i) {
    const double mhz = i < samples_mhz.size() ? samples_mhz[i] : 0;
    if (mhz <= 0 || mhz >= (1 - kThrottledClock) * median_mhz) kept.push_back(samples_us[i]);
  }
  return kept;
}

std::optional<double> latency_us_of(const Json& row) {
  const std::optional<double> unthrottled = number_of(row, "median_unthrottled_us");
  return unthrottled ? unthrottled : number_of(row, "median_us");
}

std::string mode_of(const Json& row) {
  const Json* graph = find(row, "graph");
  std::string mode = text_of(row, "cache");
  if (graph != nullptr && graph->is_boolean() && graph->get<bool>()) mode += ", graph";
  return mode + ", " + text_of(row, "load");
}

std::optional<double> error_over_budget(const Json& row) {
  std::optional<double> worst;
  for (const auto& [error, budget] : {std::pair("rel_l2", "budget_rel_l2"), std::pair("max_abs", "budget_max_abs")}) {
    const std::optional<double> got = number_of(row, error);
    const std::optional<double> allowed = number_of(row, budget);
    if (!got || !allowed || *allowed <= 0) return std::nullopt;
    worst = std::max(worst.value_or(0), *got / *allowed);
  }
  return worst;
}

std::vector<CaseGroup> group_by_case(const Records& records) {
  std::vector<CaseGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const Json& row : records.rows) {
    std::pair key(text_of(row, "case_id"), mode_of(row));
    const auto [entry, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.push_back({key.first, key.second, {}});
    groups[entry->second].rows.push_back(&row);
  }
  return groups;
}

std::vector<VerdictCount> count_verdicts(const Records& records) {
  std::vector<VerdictCount> counts;
  for (const char* verdict : {"pass", "fail", "no_power", "unsupported", "error", "crashed", "timeout"}) {
    counts.push_back({verdict, 0});
  }
  for (const Json& row : records.rows) {
    std::string verdict = text_of(row, "verdict");
    if (verdict.empty()) verdict = "none";
    auto count = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.verdict == verdict; });
    if (count == counts.end()) count = counts.insert(counts.end(), {verdict, 0});
    ++count->rows;
  }
  std::erase_if(counts, [](const VerdictCount& count) { return count.rows == 0; });
  return counts;
}

}  // namespace fusebench::reports
