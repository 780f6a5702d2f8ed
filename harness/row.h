// One row of results: a case, a variant and a mode. Its JSON form is the single source of every report.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/config.h"
#include "harness/op.h"

namespace fusebench {

enum class Verdict : std::uint8_t { pass, fail, no_power, unsupported, error, crashed, timeout };
std::string_view name_of(Verdict verdict);

/// A value, or why there is none: null in the record, with the reason in the column's *_reason.
template <class T>
struct Known {
  std::optional<T> value;
  std::string reason;

  Known() : reason("not measured") {}
  Known(T v) : value(std::move(v)) {}
  static Known unknown(std::string why) {
    Known k;
    k.reason.swap(why);
    return k;
  }
};

/// How a variant's outputs compared with the oracle: see harness/verify.h.
struct Verification {
  double rel_l2 = 0;
  double max_abs = 0;
  double budget_rel_l2 = 0;
  double budget_max_abs = 0;
  std::int64_t nonfinite = 0;
  bool seed_allclose = false;
  std::int64_t rows_checked = 0;
  std::int64_t rows_total = 0;
};

/// What became of an output that is wrong on purpose: see harness/mutants.h.
enum class Outcome : std::uint8_t {
  rejected,
  equivalent,  ///< not wrong here: the exact result is the same
  let_through,
};
std::string_view name_of(Outcome outcome);

struct Mutant {
  std::string name;
  Outcome outcome = Outcome::let_through;
};

struct Ratio {
  double value = 0, lo = 0, hi = 0;  ///< median of paired ratios and its 95% interval
};

/// Of rounds that both took part in. With fewer than kSamplesFor95 of them lo and hi are NaN, which becomes null.
Known<Ratio> paired_speedup(std::span<const double> base_us, std::span<const double> subject_us);

/// What a step declares that it touches of a tensor.
struct Touch {
  std::string tensor;
  std::int64_t bytes = 0;
};

struct StepRow {
  std::string name;
  std::string kernel;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  double flops = 0;
  Known<double> time_us, alone_us;
  Known<std::int64_t> dram_read_bytes, dram_write_bytes;
  Known<std::int64_t> alone_dram_read_bytes, alone_dram_write_bytes;
  std::vector<Touch> reads, writes;  ///< by tensor: bytes_read and bytes_written are their sums
};

/// A tensor of the op, or one that the plan made.
struct TensorRow {
  std::string name;
  std::string storage;  ///< op, prepared or workspace
  DType dtype = DType::fp16;
  std::vector<std::int64_t> dims;
  std::int64_t compulsory_read_bytes = 0, compulsory_write_bytes = 0;  ///< 0 but for the op's
};

struct Row {
  Case c;
  std::string variant;
  Backend backend = Backend::cpu;
  CacheMode cache = CacheMode::cold;
  bool graph = false;
  LoadMode load = LoadMode::sustained;

  Verdict verdict = Verdict::error;
  std::string reason;  ///< empty only when the verdict is pass
  std::string kernel;
  Known<Verification> check;
  Known<std::vector<Mutant>> mutants = Known<std::vector<Mutant>>::unknown("run without --prove");
  Known<bool> deterministic;

  std::vector<double> samples_us;
  std::vector<double> samples_mhz;  ///< SM clock beside each sample; 0 where it is not known
  int unheld_samples = 0;
  std::string timing_reason;  ///< why there are no samples, or fewer than asked; empty otherwise
  Known<Ratio> speedup_vs_naive;
  Known<Ratio> speedup_vs_cublas;  ///< vs `eigen` on the CPU

  double flops = 0;
  std::int64_t bytes_compulsory = 0;
  std::int64_t bytes_compulsory_written = 0;  ///< not a column: the part of them that may stay in L2
  Known<std::int64_t> bytes_modelled;
  Known<std::int64_t> dram_read_bytes, dram_write_bytes, dram_late_write_bytes, l2_bytes;
  std::string traffic_source = "model";
  /// Not columns: what floor_us is derived from.
  Known<double> bandwidth_ceiling_gbps, flops_ceiling_tflops;
  std::int64_t l2_retained_bytes = 0;  ///< how much of what is written a cold sample may leave dirty in L2

  Known<std::int64_t> workspace_bytes;
  Known<double> prepare_us;
  Known<std::int64_t> prepared_bytes;
  Known<int> launches;
  Known<double> event_pair_us;  ///< not a column: what two events with nothing between them take
  Known<double> power_w, temperature_c;
  Known<std::string> clock_limits;
  std::string repro;
  std::vector<StepRow> steps;
  std::vector<TensorRow> tensors;  ///< those that a step touches
};

/// Bytes that must cross the memory's interface inside a cold sample: the compulsory ones, but for what the cache may
/// keep of the written.
std::int64_t bytes_inside_sample(const Row& row);
/// max(bytes_inside_sample / bandwidth ceiling, flops / rate ceiling): nothing is faster. Hot rows have none.
Known<double> floor_us(const Row& row);

/// Every column of reports/columns.h, in its order, then samples_us, samples_mhz, steps, tensors and mutants.
/// Statistics (median_us, ci95_rel, gbps, floor_share, ...) are derived here from the samples. What is unknown or not
/// finite is null, with why in its reason column.
nlohmann::ordered_json to_json(const Row& row);

}  // namespace fusebench
