#include "harness/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "harness/statistics.h"
#include "harness/units.h"
#include "reports/records.h"

namespace fusebench {

namespace {

using Json = nlohmann::ordered_json;

// Writes the columns of one object in order. Columns that may be null come in groups that end in a reason column.
class Writer {
 public:
  explicit Writer(Json& json) : json_(json) {}

  template <class T>
  void put(std::string_view name, T value) {
    json_[std::string(name)] = std::move(value);
  }

  void put_text(std::string_view name, const std::string& text) { put(name, text.empty() ? Json() : Json(text)); }

  template <class T>
  void put(std::string_view name, const Known<T>& known) {
    ++members_;
    if (!known.value) {
      put(name, Json());
      missing_.emplace_back(name, known.reason);
    } else if (!finite(*known.value)) {
      put(name, Json());
      missing_.emplace_back(name, "not a finite number");
    } else {
      put(name, *known.value);
    }
  }

  // "why", where all of the group is null for one reason; otherwise "these, those: why; that: why".
  void put_reason(std::string_view name, std::string also = {}) {
    std::vector<std::pair<std::string, std::string>> by_reason;  // reason, columns
    for (const auto& missing : missing_) {
      const auto known =
          std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& r) { return r.first == missing.second; });
      if (known == by_reason.end()) {
        by_reason.emplace_back(missing.second, missing.first);
      } else {
        known->second.append(", ").append(missing.first);
      }
    }
    const bool whole = by_reason.size() == 1 && missing_.size() == members_;
    for (const auto& [why, names] : by_reason) {
      if (why == also) continue;
      if (!also.empty()) also += "; ";
      if (!whole) also.append(names).append(": ");
      also += why;
    }
    put_text(name, also);
    members_ = 0;
    missing_.clear();
  }

 private:
  static bool finite(double value) { return std::isfinite(value); }
  template <class T>
  static bool finite(const T&) {
    return true;
  }

  Json& json_;
  std::size_t members_ = 0;
  std::vector<std::pair<std::string, std::string>> missing_;  // column, why
};

// The value that `get` makes of what is known.
template <class T, class Get>
auto derive(const Known<T>& known, Get get) {
  using Derived = Known<decltype(get(*known.value))>;
  return known.value ? Derived(get(*known.value)) : Derived::unknown(known.reason);
}

template <class T>
Known<T> used(bool op_uses_it, T value) {
  return op_uses_it ? Known<T>(std::move(value)) : Known<T>::unknown("the op does not use it");
}

void put_case(Writer& out, const Row& row) {
  const Case& c = row.c;
  const OpUses uses = uses_of(c.op);
  out.put("case_id", case_id(c));
  out.put("op", name_of(c.op));
  out.put("variant", row.variant);
  out.put("backend", name_of(row.backend));
  out.put("dtype", name_of(c.dtype));
  out.put("dim", used(uses.dim, c.dim));
  out.put("hidden", used(uses.hidden, c.hidden));
  out.put("heads", used(uses.heads, c.heads));
  out.put("kv_heads", used(uses.heads, c.kv_heads));
  out.put("head_dim", used(uses.heads, c.head_dim()));
  out.put("batch", c.batch);
  out.put("seq", c.seq);
  out.put("past", used(uses.past, c.past));
  out.put("causal", used(uses.causal, c.causal));
  out.put("rope", used(uses.rope, std::string(name_of(c.rope))));
  out.put_reason("shape_reason");
  out.put("inputs", name_of(c.inputs));
  out.put("seed", c.seed);
  out.put("cache", name_of(row.cache));
  out.put("graph", row.graph);
  out.put("load", name_of(row.load));
}

void put_check(Writer& out, const Row& row) {
  out.put("verdict", name_of(row.verdict));
  const bool owes_reason = row.verdict != Verdict::pass && row.reason.empty();
  out.put_text("reason", owes_reason ? "no reason was given" : row.reason);
  out.put_text("kernel", row.kernel);
  const auto checked = [&](auto member) {
    return derive(row.check, [member](const Verification& check) { return check.*member; });
  };
  out.put("rel_l2", checked(&Verification::rel_l2));
  out.put("max_abs", checked(&Verification::max_abs));
  out.put("budget_rel_l2", checked(&Verification::budget_rel_l2));
  out.put("budget_max_abs", checked(&Verification::budget_max_abs));
  out.put("nonfinite", checked(&Verification::nonfinite));
  out.put("seed_allclose", checked(&Verification::seed_allclose));
  out.put("rows_checked", checked(&Verification::rows_checked));
  out.put("rows_total", checked(&Verification::rows_total));
  out.put_reason("check_reason");
  const auto count = [&](std::initializer_list<Outcome> outcomes) {
    return derive(row.mutants, [outcomes](const std::vector<Mutant>& mutants) {
      return std::count_if(mutants.begin(), mutants.end(), [outcomes](const Mutant& mutant) {
        return std::find(outcomes.begin(), outcomes.end(), mutant.outcome) != outcomes.end();
      });
    });
  };
  out.put("mutants_tried", count({Outcome::rejected, Outcome::let_through}));
  out.put("mutants_rejected", count({Outcome::rejected}));
  out.put("mutants_equivalent", count({Outcome::equivalent}));
  out.put_reason("mutants_reason");
  out.put("deterministic", row.deterministic);
  out.put_reason("deterministic_reason");
}

// The samples, or why nothing can be derived from them.
Known<std::vector<double>> usable_samples(const Row& row) {
  if (row.samples_us.empty()) {
    return Known<std::vector<double>>::unknown(row.timing_reason.empty() ? "not timed" : row.timing_reason);
  }
  for (std::size_t i = 0; i < row.samples_us.size(); ++i) {
    if (!std::isfinite(row.samples_us[i])) {
      return Known<std::vector<double>>::unknown(fmt::format("sample {} is not a finite number", i));
    }
  }
  return row.samples_us;
}

Known<double> clock_of(const Row& row) {
  std::vector<double> known;
  for (const double mhz : row.samples_mhz) {
    if (mhz > 0) known.push_back(mhz);
  }
  if (known.empty()) return Known<double>::unknown(row.samples_us.empty() ? "not timed" : "the clock cannot be read");
  return median(known);
}

Known<double> interval_of(const std::vector<double>& samples) {
  if (samples.size() >= kSamplesFor95) return relative_interval(samples);
  return Known<double>::unknown(fmt::format("fewer than {} samples hold no 95% interval", kSamplesFor95));
}

void put_timing(Writer& out, const Row& row, const Known<std::vector<double>>& samples) {
  out.put("median_us", derive(samples, [](const auto& us) { return median(us); }));
  out.put("mean_us", derive(samples, [](const auto& us) { return mean(us); }));
  out.put("min_us", derive(samples, [](const auto& us) { return *std::min_element(us.begin(), us.end()); }));
  out.put("p05_us", derive(samples, [](const auto& us) { return quantile(us, 0.05); }));
  out.put("p95_us", derive(samples, [](const auto& us) { return quantile(us, 0.95); }));
  out.put("ci95_rel", samples.value ? interval_of(*samples.value) : Known<double>::unknown(samples.reason));
  out.put("samples", row.samples_us.size());
  const std::vector<double> free = reports::unthrottled(row.samples_us, row.samples_mhz);
  out.put("throttled_samples", row.samples_us.size() - free.size());
  out.put("unheld_samples", row.unheld_samples);
  out.put("median_unthrottled_us", !samples.value ? Known<double>::unknown(samples.reason)
                                   : free.empty() ? Known<double>::unknown("every sample was throttled")
                                                  : Known<double>(median(free)));
  out.put_reason("timing_reason", row.timing_reason);
}

void put_speedup(Writer& out, const std::string& name, const Known<Ratio>& speedup) {
  const auto end = [&](double Ratio::*member) {
    if (speedup.value && !std::isfinite((*speedup.value).*member)) {
      return Known<double>::unknown(fmt::format("fewer than {} pairs hold no 95% interval", kSamplesFor95));
    }
    return derive(speedup, [member](const Ratio& ratio) { return ratio.*member; });
  };
  out.put(name, derive(speedup, [](const Ratio& ratio) { return ratio.value; }));
  out.put(name + "_lo", end(&Ratio::lo));
  out.put(name + "_hi", end(&Ratio::hi));
  out.put_reason(name + "_reason");
}

// Less than this share of the compulsory bytes was moved: beyond what the counters themselves err by.
constexpr double kCountedWhole = 0.99;

Known<bool> l2_resident_of(const Row& row) {
  if (!row.dram_read_bytes.value) return Known<bool>::unknown(row.dram_read_bytes.reason);
  if (!row.dram_write_bytes.value) return Known<bool>::unknown(row.dram_write_bytes.reason);
  const auto moved = static_cast<double>(*row.dram_read_bytes.value + *row.dram_write_bytes.value);
  return moved < kCountedWhole * static_cast<double>(row.bytes_compulsory);
}

void put_traffic(Writer& out, const Row& row) {
  out.put("flops", row.flops);
  out.put("bytes_compulsory", row.bytes_compulsory);
  out.put("bytes_modelled", row.bytes_modelled);
  out.put_reason("bytes_modelled_reason");
  out.put("dram_read_bytes", row.dram_read_bytes);
  out.put("dram_write_bytes", row.dram_write_bytes);
  out.put("dram_late_write_bytes", row.dram_late_write_bytes);
  out.put("l2_bytes", row.l2_bytes);
  out.put_reason("traffic_reason");
  out.put("traffic_source", row.traffic_source);
  out.put("l2_resident", l2_resident_of(row));
  out.put_reason("l2_resident_reason");
}

void put_rates(Writer& out, const Row& row, const Known<double>& median_us) {
  const Known<double> floor = floor_us(row);
  out.put("gbps", row.cache == CacheMode::hot
                      ? Known<double>::unknown("a hot row may be served by L2: it has no memory bandwidth")
                      : derive(median_us, [&](double us) {
                          return static_cast<double>(bytes_inside_sample(row)) / us / kBytesPerUsAtGbps;
                        }));
  out.put("tflops", row.flops == 0
                        ? Known<double>::unknown("the op has no matrix product")
                        : derive(median_us, [&](double us) { return row.flops / us / kFlopsPerUsAtTflops; }));
  out.put_reason("rate_reason");
  out.put("floor_us", floor);
  out.put("floor_share", !floor.value ? floor : derive(median_us, [&](double us) { return *floor.value / us; }));
  out.put_reason("floor_reason");
}

// Sums over the steps against the whole.
void put_attribution(Writer& out, const Row& row, const Known<double>& median_us) {
  Known<double> steps_us = 0.0;
  Known<double> alone_us = 0.0;
  Known<std::int64_t> alone_bytes = std::int64_t{0};
  const auto add = [](auto& sum, const auto& part, auto less) {
    if (!part.value) sum = std::decay_t<decltype(sum)>::unknown(part.reason);
    if (sum.value && part.value) *sum.value += *part.value - less;
  };
  // Each step's time holds the two events around it.
  const double events_us = row.event_pair_us.value.value_or(0);
  for (const StepRow& step : row.steps) {
    add(steps_us, step.time_us, events_us);
    add(alone_us, step.alone_us, events_us);
    add(alone_bytes, step.alone_dram_read_bytes, std::int64_t{0});
    add(alone_bytes, step.alone_dram_write_bytes, std::int64_t{0});
  }
  if (row.steps.empty()) steps_us = alone_us = Known<double>::unknown("the row has no plan");
  const Known<double> gaps =
      !steps_us.value ? steps_us : derive(median_us, [&](double us) { return us - events_us - *steps_us.value; });
  out.put("steps_us", steps_us);
  out.put("gaps_us", gaps);
  out.put("l2_reuse_us",
          !steps_us.value ? steps_us : derive(alone_us, [&](double us) { return us - *steps_us.value; }));
  const Known<std::int64_t> written =
      row.dram_read_bytes.value ? row.dram_write_bytes : row.dram_read_bytes;  // both are known, or the reason is
  out.put("l2_reuse_bytes", !alone_bytes.value ? alone_bytes : derive(written, [&](std::int64_t bytes) {
            return *alone_bytes.value - *row.dram_read_bytes.value - bytes;
          }));
  out.put_reason("attribution_reason");
}

void put_plan(Writer& out, const Row& row) {
  out.put("workspace_bytes", row.workspace_bytes);
  out.put("prepare_us", row.prepare_us);
  out.put("prepared_bytes", row.prepared_bytes);
  out.put("launches", row.launches);
  out.put_reason("plan_reason");
  out.put("sm_mhz", clock_of(row));
  out.put("power_w", row.power_w);
  out.put("temperature_c", row.temperature_c);
  out.put("clock_limits", row.clock_limits);
  out.put_reason("device_reason");
  out.put("repro", row.repro);
}

// Parts of one tensor are one entry.
Json to_json(const std::vector<Touch>& touches) {
  Json json = Json::object();
  for (const Touch& touch : touches) {
    json[touch.tensor] = json.value(touch.tensor, std::int64_t{0}) + touch.bytes;
  }
  return json;
}

Json to_json(const StepRow& step) {
  Json json;
  Writer out(json);
  out.put("name", step.name);
  out.put("kernel", step.kernel);
  out.put("bytes_read", step.bytes_read);
  out.put("bytes_written", step.bytes_written);
  out.put("flops", step.flops);
  out.put("time_us", step.time_us);
  out.put("alone_us", step.alone_us);
  out.put_reason("time_reason");
  out.put("dram_read_bytes", step.dram_read_bytes);
  out.put("dram_write_bytes", step.dram_write_bytes);
  out.put("alone_dram_read_bytes", step.alone_dram_read_bytes);
  out.put("alone_dram_write_bytes", step.alone_dram_write_bytes);
  out.put_reason("traffic_reason");
  json["reads"] = to_json(step.reads);
  json["writes"] = to_json(step.writes);
  return json;
}

Json to_json(const TensorRow& tensor) {
  return {{"name", tensor.name},
          {"storage", tensor.storage},
          {"dtype", name_of(tensor.dtype)},
          {"dims", tensor.dims},
          {"compulsory_read_bytes", tensor.compulsory_read_bytes},
          {"compulsory_write_bytes", tensor.compulsory_write_bytes}};
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "fail";
    case Verdict::no_power:
      return "no_power";
    case Verdict::unsupported:
      return "unsupported";
    case Verdict::error:
      return "error";
    case Verdict::crashed:
      return "crashed";
    case Verdict::timeout:
      return "timeout";
  }
  return "error";
}

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::rejected:
      return "rejected";
    case Outcome::equivalent:
      return "equivalent";
    case Outcome::let_through:
      return "let through";
  }
  return "let through";
}

Known<Ratio> paired_speedup(std::span<const double> base_us, std::span<const double> subject_us) {
  const std::vector<double> ratios = paired_ratios(base_us, subject_us);
  if (ratios.empty()) return Known<Ratio>::unknown("no round holds a sample of both");
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Interval interval = ratios.size() < kSamplesFor95 ? Interval{nan, nan} : median_interval(ratios);
  return Ratio{median(ratios), interval.lo, interval.hi};
}

std::int64_t bytes_inside_sample(const Row& row) {
  return row.bytes_compulsory - std::min(row.bytes_compulsory_written, row.l2_retained_bytes);
}

Known<double> floor_us(const Row& row) {
  if (row.cache == CacheMode::hot) return Known<double>::unknown("a hot row may be served by L2: it has no floor");
  if (!row.bandwidth_ceiling_gbps.value) return row.bandwidth_ceiling_gbps;
  const double bytes_us =
      static_cast<double>(bytes_inside_sample(row)) / (*row.bandwidth_ceiling_gbps.value * kBytesPerUsAtGbps);
  if (row.flops == 0) return bytes_us;
  if (!row.flops_ceiling_tflops.value) return row.flops_ceiling_tflops;
  return std::max(bytes_us, row.flops / (*row.flops_ceiling_tflops.value * kFlopsPerUsAtTflops));
}

nlohmann::ordered_json to_json(const Row& row) {
  Json json;
  Writer out(json);
  const Known<std::vector<double>> samples = usable_samples(row);
  put_case(out, row);
  put_check(out, row);
  put_timing(out, row, samples);
  put_speedup(out, "speedup_vs_naive", row.speedup_vs_naive);
  put_speedup(out, "speedup_vs_cublas", row.speedup_vs_cublas);
  put_traffic(out, row);
  const Known<double> median_us = derive(samples, [](const auto& us) { return median(us); });
  put_rates(out, row, median_us);
  put_attribution(out, row, median_us);
  put_plan(out, row);
  json["samples_us"] = Json::array();
  for (double us : row.samples_us) json["samples_us"].push_back(std::isfinite(us) ? Json(us) : Json());
  json["samples_mhz"] = Json::array();
  for (double mhz : row.samples_mhz) json["samples_mhz"].push_back(mhz > 0 ? Json(mhz) : Json());
  json["steps"] = Json::array();
  for (const StepRow& step : row.steps) json["steps"].push_back(to_json(step));
  json["tensors"] = Json::array();
  for (const TensorRow& tensor : row.tensors) json["tensors"].push_back(to_json(tensor));
  json["mutants"] = Json::array();
  for (const Mutant& mutant : row.mutants.value.value_or(std::vector<Mutant>())) {
    json["mutants"].push_back({{"name", mutant.name}, {"outcome", name_of(mutant.outcome)}});
  }
  return json;
}

}  // namespace fusebench
