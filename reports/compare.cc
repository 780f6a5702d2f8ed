#include "reports/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "reports/bootstrap.h"
#include "reports/columns.h"
#include "reports/format.h"

namespace fusebench::reports {

namespace {

// Columns whose changes are told. Counters and clocks scatter from run to run, errors where sums are atomic: a change
// within both slacks is not one.
struct Watched {
  std::string_view column;
  double relative_slack = 0;
  double absolute_slack = 0;
};
constexpr double kCounterSlack = 0.02;
constexpr double kCounterSlackBytes = 65536;
constexpr auto kWatched = std::to_array<Watched>({
    {"verdict"},
    {"kernel"},
    {"rel_l2", 0.01},
    {"max_abs", 0.01},
    {"budget_rel_l2", 0.01},
    {"nonfinite"},
    {"deterministic"},
    {"flops"},
    {"bytes_compulsory"},
    {"bytes_modelled"},
    {"dram_read_bytes", kCounterSlack, kCounterSlackBytes},
    {"dram_write_bytes", kCounterSlack, kCounterSlackBytes},
    {"traffic_source"},
    {"workspace_bytes"},
    {"prepared_bytes"},
    {"launches"},
    {"sm_mhz", 0.02},
});
// More samples than this part of them throttled on one side: the clock may explain the latency.
constexpr double kThrottledSlack = 0.1;

bool differs(const Json& base, const Json& current, const Watched& watched) {
  if (!base.is_number() || !current.is_number()) return base != current;
  const double a = base.get<double>();
  const double b = current.get<double>();
  const double slack = std::max(watched.relative_slack * std::max(std::abs(a), std::abs(b)), watched.absolute_slack);
  return std::abs(a - b) > slack;
}

double throttled_share(const Json& row) {
  const double samples = number_of(row, "samples").value_or(0);
  return samples > 0 ? number_of(row, "throttled_samples").value_or(0) / samples : 0;
}

std::vector<Change> changes_of(const Json& base, const Json& current) {
  std::vector<Change> changes;
  const auto add = [&](std::string_view column) {
    changes.push_back({std::string(column), value_of(base, column), value_of(current, column)});
  };
  for (const Watched& watched : kWatched) {
    if (differs(value_of(base, watched.column), value_of(current, watched.column), watched)) add(watched.column);
  }
  if (std::abs(throttled_share(base) - throttled_share(current)) > kThrottledSlack) add("throttled_samples");
  return changes;
}

std::vector<double> numbers_of(const Json& row, std::string_view key) {
  std::vector<double> numbers;
  const Json array = value_of(row, key);
  if (!array.is_array()) return numbers;
  for (const Json& number : array) numbers.push_back(number.is_number() ? number.get<double>() : 0);
  return numbers;
}

// Those that were not throttled: power limits slow a few samples down, in one run and not in the next. None where a
// latency is null: it was not finite, and the record has no median either.
std::vector<double> samples_of(const Json& row) {
  const std::vector<double> all = numbers_of(row, "samples_us");
  if (std::any_of(all.begin(), all.end(), [](double us) { return !(us > 0); })) return {};
  return unthrottled(all, numbers_of(row, "samples_mhz"));
}

Timing timing_of(const Json& row) {
  const std::string verdict = text_of(row, "verdict");
  return {.median_us = latency_us_of(row),
          .samples = samples_of(row).size(),
          .verdict = verdict.empty() ? "none" : verdict,
          .reason = text_of(row, "reason")};
}

// A wrong result's latency says nothing; one that the check cannot tell from a wrong one is judged all the same.
bool judged(const std::string& verdict) { return verdict == "pass" || verdict == "no_power"; }

std::string why_not_judged(const ComparedRow& row) {
  const bool base_judged = judged(row.base.verdict);
  const bool new_judged = judged(row.current.verdict);
  if (!base_judged && !new_judged && row.base.verdict == row.current.verdict) {
    return fmt::format("{} in both", row.base.verdict);
  }
  if (!base_judged) return fmt::format("{} in base", row.base.verdict);
  if (!new_judged) return fmt::format("{} in new", row.current.verdict);
  if (!row.ratio) {
    return fmt::format("no latency in {}", row.base.median_us ? "new" : row.current.median_us ? "base" : "either");
  }
  if (!row.ratio->lo) {
    return fmt::format("fewer than {} samples in {}: no interval", kFewestSamples,
                       row.base.samples < kFewestSamples ? "base" : "new");
  }
  return {};
}

std::optional<Ratio> ratio_of(const Json& base, const Json& current, const ComparedRow& row) {
  if (!row.base.median_us || !row.current.median_us || *row.base.median_us <= 0) return std::nullopt;
  const std::vector<double> base_us = samples_of(base);
  const std::vector<double> new_us = samples_of(current);
  if (base_us.size() >= kFewestSamples && new_us.size() >= kFewestSamples) {
    const RatioOfMedians ratio = ratio_of_medians(base_us, new_us);
    return Ratio{ratio.ratio, ratio.lo, ratio.hi};
  }
  return Ratio{*row.current.median_us / *row.base.median_us, {}, {}};
}

Kind kind_of(const Ratio& ratio, const Noise& noise) {
  if (*ratio.lo > 1 + noise.relative) return Kind::slower;
  if (*ratio.hi < 1 / (1 + noise.relative)) return Kind::faster;
  const double most = 1 + noise.same_within;
  return *ratio.lo >= 1 / most && *ratio.hi <= most ? Kind::same : Kind::unsure;
}

std::string regression_of(const ComparedRow& row, double threshold) {
  if (row.base.verdict == "pass" && row.current.verdict != "pass") {
    return fmt::format("verdict went from pass to {}{}{}", row.current.verdict, row.current.reason.empty() ? "" : ": ",
                       row.current.reason);
  }
  if (row.kind == Kind::slower && *row.ratio->lo > 1 + threshold) {
    return fmt::format("slower than base by more than {:.4g}%", threshold * 100);
  }
  return {};
}

Json key_of(const Json& row) {
  Json key = Json::object();
  for (std::string_view column : key_columns()) key[std::string(column)] = value_of(row, column);
  return key;
}

struct Headers {
  const Json& base;
  const Json& current;
};

// What both rows' records say of a row whose timings are known.
void judge(ComparedRow& row, const Json& base, const Json& current, const Headers& headers, double threshold) {
  row.ratio = ratio_of(base, current, row);
  if (row.ratio) {
    row.noise = noise_of(headers.base, headers.current, *row.base.median_us, *row.current.median_us,
                         text_of(base, "backend") == "cpu");
  }
  row.reason = why_not_judged(row);
  row.kind = row.reason.empty() ? kind_of(*row.ratio, row.noise) : Kind::unsure;
  row.changes = changes_of(base, current);
  row.regression = regression_of(row, threshold);
}

// Rows by key and occurrence.
using Key = std::pair<std::string, int>;
std::vector<Key> keys_of(const Records& records) {
  std::map<std::string, int> seen;
  std::vector<Key> keys;
  for (const Json& row : records.rows) {
    std::string key = key_of(row).dump();
    const int occurrence = ++seen[key];
    keys.emplace_back(std::move(key), occurrence);
  }
  return keys;
}

std::vector<ComparedRow> join(const Records& base, const Records& current, double threshold) {
  const std::vector<Key> base_keys = keys_of(base);
  const std::vector<Key> new_keys = keys_of(current);
  const Headers headers{base.header, current.header};
  std::map<Key, const Json*> unmatched;
  for (std::size_t i = 0; i < new_keys.size(); ++i) unmatched[new_keys[i]] = &current.rows[i];
  std::vector<ComparedRow> rows;
  const auto add = [&](const Json& record, const Key& key) -> ComparedRow& {
    ComparedRow& row = rows.emplace_back();
    row.key = key_of(record);
    row.occurrence = key.second;
    return row;
  };
  for (std::size_t i = 0; i < base_keys.size(); ++i) {
    const Json& record = base.rows[i];
    const auto found = unmatched.find(base_keys[i]);
    ComparedRow& row = add(record, base_keys[i]);
    row.base = timing_of(record);
    row.kind = Kind::gone;
    if (found == unmatched.end()) continue;
    row.current = timing_of(*found->second);
    judge(row, record, *found->second, headers, threshold);
    unmatched.erase(found);
  }
  for (std::size_t i = 0; i < new_keys.size(); ++i) {
    if (!unmatched.contains(new_keys[i])) continue;
    ComparedRow& row = add(current.rows[i], new_keys[i]);
    row.current = timing_of(current.rows[i]);
    row.kind = Kind::fresh;
  }
  return rows;
}

Side side_of(const Records& records, const std::string& path) {
  return {.path = path,
          .name = text_of(records.header, "name"),
          .run_id = text_of(records.header, "run_id"),
          .started = text_of(records.header, "started"),
          .version = text_of(value_of(records.header, "build"), "version"),
          .rows = records.rows.size(),
          .warnings = warnings_of(records)};
}

// Leaves of what a run ran on, by name: "device.uuid", "libraries.cublas". Reasons of nulls are no facts.
void put_leaves(const Json& value, const std::string& name, std::map<std::string, Json>& leaves) {
  if (!value.is_object()) {
    leaves[name] = value;
    return;
  }
  for (const auto& [key, inner] : value.items()) {
    if (!key.ends_with("_reason")) put_leaves(inner, fmt::format("{}.{}", name, key), leaves);
  }
}

std::vector<Difference> differences_of(const Json& base, const Json& current) {
  std::vector<Difference> differences;
  if (base.is_null() || current.is_null()) return differences;
  for (const char* fact : {"schema", "backend", "device", "driver", "libraries", "build", "config_sha256"}) {
    std::map<std::string, Json> base_leaves;
    std::map<std::string, Json> new_leaves;
    put_leaves(value_of(base, fact), fact, base_leaves);
    put_leaves(value_of(current, fact), fact, new_leaves);
    for (const auto& [name, value] : base_leaves) new_leaves.try_emplace(name);
    for (const auto& [name, value] : new_leaves) {
      if (base_leaves[name] != value) differences.push_back({name, base_leaves[name], value});
    }
  }
  return differences;
}

std::string device_of(const Json& header) {
  const Json device = value_of(header, "device");
  const std::string uuid = text_of(device, "uuid");
  return text_of(device, "name") + (uuid.empty() ? "" : " " + uuid);
}

bool same_device(const Json& base, const Json& current) {
  const Json base_device = value_of(base, "device");
  const Json new_device = value_of(current, "device");
  const std::string base_uuid = text_of(base_device, "uuid");
  const std::string new_uuid = text_of(new_device, "uuid");
  if (!base_uuid.empty() && !new_uuid.empty()) return base_uuid == new_uuid;
  return text_of(base_device, "name") == text_of(new_device, "name");
}

// A header that is missing is not known to be another device's: that is noted, not refused.
std::string refusal_of(const Json& base, const Json& current) {
  if (base.is_null() || current.is_null() || same_device(base, current)) return {};
  return fmt::format("base ran on {}, new on {}: latencies of different devices say nothing of the code",
                     device_of(base), device_of(current));
}

// A row whose case and variant the other run has in another mode is easily taken for lost.
void note_other_modes(Comparison& comparison) {
  const auto name = [](const ComparedRow& row) {
    return text_of(row.key, "case_id") + "\n" + text_of(row.key, "variant");
  };
  std::set<std::string> fresh;
  for (const ComparedRow& row : comparison.rows) {
    if (row.kind == Kind::fresh) fresh.insert(name(row));
  }
  const auto elsewhere = std::count_if(comparison.rows.begin(), comparison.rows.end(), [&](const ComparedRow& row) {
    return row.kind == Kind::gone && fresh.contains(name(row));
  });
  if (elsewhere == 0) return;
  comparison.notes.push_back(
      fmt::format("{} of base: new has it in another mode or on another backend only, which is not compared",
                  plural(static_cast<std::size_t>(elsewhere), "row")));
}

void note_headers(Comparison& comparison, const Records& base, const Records& current) {
  for (const auto& [records, run] : {std::pair(&base, "base"), std::pair(&current, "new")}) {
    if (records->header.is_null()) {
      comparison.notes.push_back(fmt::format("{} has no header: its device and driver are not known", run));
    }
  }
  if (!comparison.refusal.empty()) comparison.notes.push_back("forced: " + comparison.refusal);
}

void note_assumed_noise(Comparison& comparison) {
  std::map<std::pair<double, std::string>, std::size_t> rows;  // floor, why
  for (const ComparedRow& row : comparison.rows) {
    if (row.noise.assumed > 0) ++rows[{row.noise.assumed, row.noise.why}];
  }
  for (const auto& [assumed, n] : rows) {
    comparison.notes.push_back(fmt::format("a noise of at least {:.4g}% (*) is assumed for {}: {}", assumed.first * 100,
                                           plural(n, "row"), assumed.second));
  }
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::slower:
      return "slower";
    case Kind::faster:
      return "faster";
    case Kind::same:
      return "same";
    case Kind::unsure:
      return "unsure";
    case Kind::fresh:
      return "new";
    case Kind::gone:
      return "gone";
  }
  return "unsure";
}

Comparison compare(const Records& base, const Records& current, const CompareOptions& options) {
  Comparison comparison{.base = side_of(base, options.base_path),
                        .current = side_of(current, options.new_path),
                        .threshold = options.threshold,
                        .refusal = refusal_of(base.header, current.header),
                        .differences = differences_of(base.header, current.header),
                        .notes = {},
                        .rows = join(base, current, options.threshold)};
  note_headers(comparison, base, current);
  note_other_modes(comparison);
  note_assumed_noise(comparison);
  return comparison;
}

std::size_t count(const Comparison& comparison, Kind kind) {
  return static_cast<std::size_t>(std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                                [&](const ComparedRow& row) { return row.kind == kind; }));
}

std::size_t joined(const Comparison& comparison) {
  return comparison.rows.size() - count(comparison, Kind::fresh) - count(comparison, Kind::gone);
}

std::size_t regressions(const Comparison& comparison) {
  return static_cast<std::size_t>(std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                                [](const ComparedRow& row) { return !row.regression.empty(); }));
}

std::vector<const ComparedRow*> by_importance(const Comparison& comparison) {
  std::vector<const ComparedRow*> rows;
  for (const ComparedRow& row : comparison.rows) rows.push_back(&row);
  const auto weight = [](const ComparedRow* row) {
    const auto kind = std::find(kKinds.begin(), kKinds.end(), row->kind) - kKinds.begin();
    return std::pair(row->regression.empty(), kind);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return weight(a) < weight(b); });
  return rows;
}

}  // namespace fusebench::reports
