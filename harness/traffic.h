// What a plan moves to and from memory, counted apart from all timing. docs/traffic.md says exactly what is counted.
#pragma once

#include <functional>
#include <vector>

#include "harness/binding.h"
#include "harness/config.h"
#include "harness/counters.h"
#include "harness/device.h"

namespace fusebench {

struct PlanTraffic {
  Traffic plan;                       ///< from the plan's start to its end
  std::int64_t late_write_bytes = 0;  ///< left dirty in L2 by the plan, and driven out after it
  std::vector<Traffic> in_place;  ///< by step, each where the one before it left L2; late writes fall to later steps
  std::vector<Traffic> alone;     ///< by step, each from the mode's own cache state, its late writes among its writes
};

/// `launch` launches the whole of `plan`, as the mode does (a graph's replay). Cold: each count starts from a flushed
/// cache. Hot: behind an uncounted launch of the same.
PlanTraffic count_traffic(Device& device, Counters& counters, const BoundPlan& plan,
                          const std::function<void()>& launch, CacheMode mode);

}  // namespace fusebench
