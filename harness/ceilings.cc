#include "harness/ceilings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "harness/binding.h"
#include "harness/load.h"
#include "harness/statistics.h"
#include "harness/tensor.h"
#include "harness/units.h"
#include "variants/choose.h"

namespace fusebench {

namespace {

constexpr int kProbeSamples = 11;
constexpr const char* kAllOfL2 = "the size of the last-level cache";

bool is_cpu(const Device& device) { return device.facts().backend == Backend::cpu; }

struct Peak {
  std::string_view name;
  std::string_view text;
};
constexpr auto kDatasheets = std::to_array<Peak>({
    {"H200", "4800 GB/s, 989 TFLOP/s dense fp16 and bf16 (H200 SXM)"},
    {"H100", "3350 GB/s, 989 TFLOP/s dense fp16 and bf16 (H100 SXM)"},
    {"A100", "2039 GB/s, 312 TFLOP/s dense fp16 and bf16 (A100 80GB SXM)"},
});

std::string datasheet_of(const std::string& device) {
  for (const Peak& peak : kDatasheets) {
    if (device.find(peak.name) != std::string::npos) return std::string(peak.text);
  }
  return {};
}

// Median time of `work` from a cold cache, under load.
double median_us(Device& device, Load& load, const std::function<void()>& work) {
  work();
  load.settle(work);
  std::vector<double> us;
  for (int i = 0; i < kProbeSamples; ++i) {
    load.before_sample(work);
    device.flush_cache();
    const Times times = device.time({work}, true);
    load.after_sample(times);
    us.push_back(times.us.front());
  }
  return median(us);
}

template <class Probe>
Known<double> attempt(const Probe& probe) {
  try {
    return probe();
  } catch (const std::exception& failure) {
    return Known<double>::unknown(failure.what());
  }
}

class Transfers {
 public:
  explicit Transfers(Device& device)
      : device_(device), bytes_(probe_bytes(device)), from_(device, bytes_), to_(device, bytes_) {
    device.fill(from_.data(), 0, bytes_);
  }

  std::function<void()> work(Transfer kind) const {
    return [this, kind] { device_.transfer(kind, to_.data(), from_.data(), bytes_); };
  }

  // Bytes that crossed the memory's interface before the end, over the time.
  double gbps(Load& load, Transfer kind, std::int64_t retained_bytes) const {
    const std::int64_t read = kind == Transfer::write ? 0 : bytes_;
    const std::int64_t written = kind == Transfer::read ? 0 : bytes_;
    const std::int64_t bytes = read + written - std::min(written, retained_bytes);
    if (bytes == 0) throw std::runtime_error("the cache may keep all that the probe writes");
    return static_cast<double>(bytes) / median_us(device_, load, work(kind)) / kBytesPerUsAtGbps;
  }

  // By the counters: what copies and writes much larger than L2 leave in it.
  std::int64_t retained_bytes() const {
    const auto counters = device_.open_counters();
    std::int64_t most = 0;
    for (const Transfer kind : {Transfer::copy, Transfer::write}) {
      const auto traffic =
          counters->count({{[&] { device_.flush_cache(); }, false}, {work(kind)}, {[&] { device_.drain_cache(); }}});
      most = std::max(most, traffic.at(1).dram_write_bytes);
    }
    return most;
  }

 private:
  static std::int64_t probe_bytes(const Device& device) {
    const std::int64_t wanted = is_cpu(device) ? 128 << 20 : 1 << 30;
    return std::min(wanted, device.free_bytes() / 8) / 256 * 256;
  }

  Device& device_;
  std::int64_t bytes_;
  DeviceMemory from_;
  DeviceMemory to_;
};

// The best product that the harness can ask for is the library's, in the op that is little else.
Case gemm_case(const Device& device, DType dtype) {
  const std::int64_t size = is_cpu(device) ? 512 : 4096;
  return canonical(
      {.op = Op::attn_out, .dtype = dtype, .dim = size, .heads = size / 128, .kv_heads = size / 128, .seq = size});
}

double gemm_tflops(Device& device, const Registry& variants, Load& load, DType dtype) {
  const Case c = gemm_case(device, dtype);
  const OpSpec spec = spec_of(c);
  const Variant* variant =
      variants.find(c.op, device.facts().backend, std::string(library_name(device.facts().backend)));
  if (variant == nullptr) throw std::runtime_error("the build has no library product");
  CaseMemory memory(device, spec, read_inputs(spec, DrawnSource(c)));
  Plan plan = variant->plan(c, device.target());
  memory.reserve_workspace(BoundPlan::workspace_bytes(plan));
  BoundPlan bound(device, std::move(plan), memory);
  bound.prepare();
  double best = 0;
  for (std::size_t i = 0; i < bound.plan().steps().size(); ++i) {
    const double flops = bound.plan().steps()[i].flops;
    if (flops == 0) continue;
    const double us = median_us(device, load, [&bound, i] { bound.launch_step(i); });
    best = std::max(best, flops / us / kFlopsPerUsAtTflops);
  }
  return best;
}

double median_of_empty(Device& device, const std::function<void()>& work) {
  std::vector<double> us;
  for (int i = 0; i < 4 * kProbeSamples; ++i) us.push_back(device.time({work}, true).us.front());
  return median(us);
}

void probe_memory(Device& device, Load& load, Ceilings& ceilings) {
  ceilings.l2_retained_bytes = device.facts().l2_bytes;
  ceilings.l2_retained_source = kAllOfL2;
  try {
    const Transfers transfers(device);
    try {
      ceilings.l2_retained_bytes = transfers.retained_bytes();
      ceilings.l2_retained_source = "counted after copies and writes";
    } catch (const std::exception& failure) {
      ceilings.l2_retained_source += fmt::format(" (not counted: {})", failure.what());
    }
    const auto probe = [&](Transfer kind) {
      return attempt([&] { return transfers.gbps(load, kind, ceilings.l2_retained_bytes); });
    };
    ceilings.copy_gbps = probe(Transfer::copy);
    ceilings.read_gbps = probe(Transfer::read);
    ceilings.write_gbps = probe(Transfer::write);
  } catch (const std::exception& failure) {
    ceilings.copy_gbps = ceilings.read_gbps = ceilings.write_gbps = Known<double>::unknown(failure.what());
  }
}

void raise_to(std::optional<Ceiling>& ceiling, double value, const std::string& by) {
  if (std::isfinite(value) && (!ceiling || value > ceiling->value)) ceiling = {value, by};
}

void raise_to(std::map<DType, Ceiling>& ceilings, DType dtype, double value, const std::string& by) {
  if (!std::isfinite(value)) return;
  const auto [place, is_new] = ceilings.try_emplace(dtype, Ceiling{value, by});
  if (!is_new && value > place->second.value) place->second = {value, by};
}

template <class Json>
void put(Json& json, const std::string& name, const Known<double>& known) {
  json[name] = known.value ? Json(*known.value) : Json();
  if (!known.value) json[name + "_reason"] = known.reason;
}

}  // namespace

Ceilings probe_ceilings(Device& device, const Registry& variants, LoadMode mode, std::span<const DType> dtypes,
                        const std::function<void(const std::string&)>& note) {
  Ceilings ceilings{.load = mode, .datasheet = datasheet_of(device.facts().name)};
  if (!device.facts().watched_by.empty()) {
    ceilings.not_probed = fmt::format("not probed: {} is attached", device.facts().watched_by);
    const auto unknown = Known<double>::unknown(ceilings.not_probed);
    ceilings.copy_gbps = ceilings.read_gbps = ceilings.write_gbps = unknown;
    ceilings.event_pair_us = ceilings.empty_launch_us = unknown;
    ceilings.l2_retained_bytes = device.facts().l2_bytes;
    ceilings.l2_retained_source = kAllOfL2;
    for (const DType dtype : dtypes) ceilings.gemm_tflops.emplace(dtype, unknown);
    return ceilings;
  }
  Load load(device, mode);
  ceilings.event_pair_us = median_of_empty(device, [] {});
  ceilings.empty_launch_us = median_of_empty(device, [&] { device.launch_empty(); });
  note("probing the memory's bandwidth");
  probe_memory(device, load, ceilings);
  const auto raise_by = [&](const Known<double>& probed, const char* by) {
    if (probed.value) raise_to(ceilings.bandwidth_gbps, *probed.value, by);
  };
  raise_by(ceilings.copy_gbps, "copy probe");
  raise_by(ceilings.read_gbps, "read probe");
  raise_by(ceilings.write_gbps, "write probe");
  for (const DType dtype : dtypes) {
    note(fmt::format("probing products in {}", name_of(dtype)));
    const Known<double> rate = attempt([&] { return gemm_tflops(device, variants, load, dtype); });
    if (rate.value) raise_to(ceilings.rate_tflops, dtype, *rate.value, "product probe");
    ceilings.gemm_tflops.emplace(dtype, rate);
  }
  return ceilings;
}

void Ceilings::raise(const Row& row) {
  if (row.verdict != Verdict::pass || row.samples_us.empty() || !not_probed.empty()) return;
  const std::string by = fmt::format("{} of {}", row.variant, case_id(row.c));
  const double us = median(row.samples_us);
  if (row.cache == CacheMode::cold) {
    raise_to(bandwidth_gbps, static_cast<double>(bytes_inside_sample(row)) / us / kBytesPerUsAtGbps, by);
  }
  if (row.flops > 0) raise_to(rate_tflops, row.c.dtype, row.flops / us / kFlopsPerUsAtTflops, by);
  for (const StepRow& step : row.steps) {
    if (step.flops == 0 || !step.time_us.value) continue;
    raise_to(rate_tflops, row.c.dtype, step.flops / *step.time_us.value / kFlopsPerUsAtTflops,
             fmt::format("{} in {}", step.name, by));
  }
}

void Ceilings::apply_to(Row& row) const {
  row.l2_retained_bytes = l2_retained_bytes;
  row.event_pair_us = event_pair_us;
  row.bandwidth_ceiling_gbps =
      bandwidth_gbps ? Known<double>(bandwidth_gbps->value) : Known<double>::unknown(copy_gbps.reason);
  const auto rate = rate_tflops.find(row.c.dtype);
  row.flops_ceiling_tflops =
      rate != rate_tflops.end()
          ? Known<double>(rate->second.value)
          : Known<double>::unknown(not_probed.empty() ? "no product in this dtype has run" : not_probed);
}

nlohmann::ordered_json Ceilings::to_json() const {
  using Json = nlohmann::ordered_json;
  const auto best = [](const Ceiling& ceiling) { return Json{{"value", ceiling.value}, {"by", ceiling.by}}; };
  Json json = {{"load", name_of(load)},
               {"bandwidth_gbps", bandwidth_gbps ? best(*bandwidth_gbps) : Json()},
               {"rate_tflops", Json::object()}};
  for (const auto& [dtype, ceiling] : rate_tflops) json["rate_tflops"][std::string(name_of(dtype))] = best(ceiling);
  Json probes = Json::object();
  put(probes, "copy_gbps", copy_gbps);
  put(probes, "read_gbps", read_gbps);
  put(probes, "write_gbps", write_gbps);
  for (const auto& [dtype, rate] : gemm_tflops) put(probes, fmt::format("gemm_{}_tflops", name_of(dtype)), rate);
  json["probes"] = std::move(probes);
  json["l2_retained_bytes"] = l2_retained_bytes;
  json["l2_retained_source"] = l2_retained_source;
  put(json, "event_pair_us", event_pair_us);
  put(json, "empty_launch_us", empty_launch_us);
  json["datasheet"] = datasheet.empty() ? Json() : Json(datasheet);
  return json;
}

}  // namespace fusebench
