#include <fmt/format.h>

#include "reports/bootstrap.h"
#include "reports/compare_text.h"
#include "reports/html.h"

namespace fusebench::reports {

namespace {

Json json_of(const Side& side) {
  return {{"path", side.path},       {"name", side.name}, {"run_id", side.run_id},    {"started", side.started},
          {"version", side.version}, {"rows", side.rows}, {"warnings", side.warnings}};
}

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string name_of(const Side& side, const std::string& otherwise) {
  for (const std::string& name : {side.path, side.name, side.run_id}) {
    if (!name.empty()) return name;
  }
  return otherwise;
}

Json json_of(const Timing& timing) {
  return {{"median_us", value_or_null(timing.median_us)},
          {"samples", timing.samples},
          {"verdict", timing.verdict},
          {"reason", text_or_null(timing.reason)}};
}

void put_latency(Json& json, const ComparedRow& row) {
  json["base"] = row.kind == Kind::fresh ? Json() : json_of(row.base);
  json["new"] = row.kind == Kind::gone ? Json() : json_of(row.current);
  json["new_over_base"] = row.ratio ? Json(row.ratio->value) : Json();
  json["new_over_base_lo"] = row.ratio ? value_or_null(row.ratio->lo) : Json();
  json["new_over_base_hi"] = row.ratio ? value_or_null(row.ratio->hi) : Json();
  json["noise"] = row.ratio ? Json(row.noise.relative) : Json();
  json["same_within"] = row.ratio ? Json(row.noise.same_within) : Json();
  json["noise_source"] = row.ratio ? Json(row.noise.source) : Json();
  json["noise_assumed"] = row.noise.assumed > 0 ? Json(row.noise.assumed) : Json();
  json["noise_assumed_reason"] = text_or_null(row.noise.why);
}

Json json_of(const ComparedRow& row) {
  Json json = row.key;
  json["occurrence"] = row.occurrence;
  json["latency"] = name_of(row.kind);
  json["latency_reason"] = text_or_null(row.reason);
  json["regression"] = text_or_null(row.regression);
  put_latency(json, row);
  json["changes"] = Json::array();
  for (const Change& change : row.changes) {
    json["changes"].push_back({{"column", change.column}, {"base", change.base}, {"new", change.current}});
  }
  return json;
}

}  // namespace

Json comparison_data(const Comparison& comparison) {
  Json json = {{"schema", 1},
               {"base", json_of(comparison.base)},
               {"new", json_of(comparison.current)},
               {"threshold", comparison.threshold},
               {"confidence", kConfidence},
               {"forced", text_or_null(comparison.refusal)},
               {"differences", Json::array()},
               {"notes", comparison.notes},
               {"counts", Json::object()},
               {"regressions", regressions(comparison)},
               {"rows", Json::array()}};
  for (const Difference& difference : comparison.differences) {
    json["differences"].push_back({{"fact", difference.fact}, {"base", difference.base}, {"new", difference.current}});
  }
  for (Kind kind : kKinds) json["counts"][std::string(name_of(kind))] = count(comparison, kind);
  for (const ComparedRow& row : comparison.rows) json["rows"].push_back(json_of(row));
  return json;
}

std::string comparison_json(const Comparison& comparison) {
  return comparison_data(comparison).dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string comparison_page(const Comparison& comparison) {
  const std::string title =
      fmt::format("fusebench: {} against {}", name_of(comparison.current, "new"), name_of(comparison.base, "base"));
  Json data = {{"kind", "compare"},
               {"title", title},
               {"said", {{"counts", counts_of(comparison)}, {"regressions", regressions_of(comparison)}}}};
  data.update(comparison_data(comparison));
  return page_of(title, comparison_table(comparison, {}), data);
}

}  // namespace fusebench::reports
