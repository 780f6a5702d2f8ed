// Records as results.jsonl holds them: a header line, then one line a row. A run that was cut off leaves a file whose
// last line is incomplete; everything before it is read.
#pragma once

#include <filesystem>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusebench::reports {

using Json = nlohmann::ordered_json;

struct Records {
  Json header;  ///< null when the file has none
  std::vector<Json> rows;
  std::vector<std::string> notes;  ///< what could not be read, for people
};

Records read_records(std::istream& in);
Records read_records(const std::filesystem::path& file);  ///< throws std::runtime_error that names the file

/// One line, with its newline. Bytes that are not UTF-8 become U+FFFD, so that a record never loses its line to them.
std::string to_line(const Json& record);

/// A row's value; nothing when the key is missing, null or of another type.
std::string text_of(const Json& row, std::string_view key);
std::optional<double> number_of(const Json& row, std::string_view key);
Json value_of(const Json& object, std::string_view key);  ///< of any type; null where it is missing

/// Its steps that are objects; none when it has no such array.
std::vector<Json> steps_of(const Json& row);

/// What a reader must know before any figure: the header's `warnings` (a busy GPU, a MIG slice), then the notes.
std::vector<std::string> warnings_of(const Records& records);

/// The samples whose SM clock, beside them, was not more than kThrottledClock under the median clock; a clock of 0 or
/// none is not known.
std::vector<double> unthrottled(const std::vector<double>& samples_us, const std::vector<double>& samples_mhz);
inline constexpr double kThrottledClock = 0.05;
/// What runs are compared by: the median of the samples that were not throttled; of all in records without clocks.
std::optional<double> latency_us_of(const Json& row);

/// "cold, sustained" or "hot, graph, burst".
std::string mode_of(const Json& row);

/// Worst of rel_l2 and max_abs over their budgets: at most 1 passes.
std::optional<double> error_over_budget(const Json& row);

/// The rows of one case in one mode: variants side by side.
struct CaseGroup {
  std::string case_id;
  std::string mode;
  std::vector<const Json*> rows;
};
/// In order of first appearance.
std::vector<CaseGroup> group_by_case(const Records& records);

struct VerdictCount {
  std::string verdict;
  std::size_t rows = 0;
};
/// Pass, fail, no_power, unsupported, error, crashed, timeout, then any other; those that occur.
std::vector<VerdictCount> count_verdicts(const Records& records);

}  // namespace fusebench::reports
