// Two runs, row by row: what became faster or slower beyond the noise, what changed besides, what is new or gone. From
// records alone; compare_text.h renders it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/compare_noise.h"
#include "reports/records.h"

namespace fusebench::reports {

/// slower: the whole interval of new/base lies above 1 + noise; faster: below 1 / (1 + noise); same: between the two,
/// or nearer to 1 where the noise is assumed (Noise::same_within); unsure: anything else, and rows whose latency cannot
/// be judged, with the reason.
enum class Kind : std::uint8_t { slower, faster, same, unsure, fresh, gone };
inline constexpr std::array kKinds = {Kind::slower, Kind::faster, Kind::gone, Kind::unsure, Kind::fresh, Kind::same};
std::string_view name_of(Kind kind);  ///< "new" for a row that base does not have

/// A column other than the latency that differs by more than its counters' own scatter.
struct Change {
  std::string column;
  Json base, current;
};

struct Timing {
  std::optional<double> median_us;  ///< of the samples that were not throttled, as what follows
  std::size_t samples = 0;
  std::string verdict;
  std::string reason;  ///< of the verdict
};

struct Ratio {
  double value = 0;              ///< new / base
  std::optional<double> lo, hi;  ///< kConfidence interval; none with too few samples
};

struct ComparedRow {
  Json key;            ///< the columns of key_columns()
  int occurrence = 1;  ///< a key that a file repeats is joined in the order of its occurrences
  Kind kind = Kind::unsure;
  std::string reason;  ///< why a latency is not judged; empty where the interval alone decides
  Timing base, current;
  std::optional<Ratio> ratio;
  Noise noise;  ///< only where there is a ratio
  std::vector<Change> changes;
  std::string regression;  ///< why the row counts as one; empty when it does not
};

/// What a run was, for people.
struct Side {
  std::string path, name, run_id, started, version;
  std::size_t rows = 0;
  std::vector<std::string> warnings;
};

/// A fact of the headers that is not the same on both sides.
struct Difference {
  std::string fact;
  Json base, current;
};

struct Comparison {
  Side base, current;
  double threshold = 0;
  std::string refusal;  ///< why latencies should not be compared at all; empty where they can be
  std::vector<Difference> differences;
  std::vector<std::string> notes;
  std::vector<ComparedRow> rows;  ///< in base's order, then what is new
};

struct CompareOptions {
  double threshold = 0.03;  ///< a slower row regresses when its interval's nearer end lies beyond 1 + threshold
  std::string base_path, new_path;
};

Comparison compare(const Records& base, const Records& current, const CompareOptions& options = {});

std::size_t count(const Comparison& comparison, Kind kind);
std::size_t joined(const Comparison& comparison);  ///< rows that both have
std::size_t regressions(const Comparison& comparison);

/// Regressions first, then by kind in the order of kKinds.
std::vector<const ComparedRow*> by_importance(const Comparison& comparison);

}  // namespace fusebench::reports
