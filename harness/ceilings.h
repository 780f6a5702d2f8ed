// The best that a device does in this run and under this load: what floors are derived from. Probed before the first
// case, then raised by whatever a row reaches, so that nothing beats its ceiling. No datasheet has a say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "harness/config.h"
#include "harness/device.h"
#include "harness/row.h"
#include "variants/registry.h"

namespace fusebench {

struct Ceiling {
  double value = 0;
  std::string by;  ///< the probe or the row that reached it
};

struct Ceilings {
  LoadMode load = LoadMode::sustained;
  Known<double> copy_gbps, read_gbps, write_gbps;  ///< probes
  std::map<DType, Known<double>> gemm_tflops;      ///< probes
  std::optional<Ceiling> bandwidth_gbps;
  std::map<DType, Ceiling> rate_tflops;
  std::int64_t l2_retained_bytes = 0;  ///< how much of what a kernel writes can be left in L2 at its end
  std::string l2_retained_source;
  Known<double> event_pair_us;    ///< two events with nothing between them
  Known<double> empty_launch_us;  ///< the same around a kernel that does nothing
  std::string datasheet;          ///< the vendor's peaks, for readers alone; empty where the device is not known
  std::string not_probed;         ///< why there are no ceilings at all; mostly empty

  void raise(const Row& row);     ///< by a row that passed, and by its steps
  void apply_to(Row& row) const;  ///< what its floor is derived from
  nlohmann::ordered_json to_json() const;
};

/// Takes a few seconds. A probe that fails leaves its ceiling unknown, with the reason; so do all where a tool watches
/// the process, which would slow every probe down, or not survive it.
Ceilings probe_ceilings(Device& device, const Registry& variants, LoadMode mode, std::span<const DType> dtypes,
                        const std::function<void(const std::string&)>& note);

}  // namespace fusebench
