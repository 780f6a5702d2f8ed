// How long each step of a plan takes: in its place, and on its own.
#pragma once

#include <vector>

#include "harness/binding.h"
#include "harness/config.h"
#include "harness/device.h"
#include "harness/load.h"
#include "harness/sampler.h"

namespace fusebench {

struct StepTimes {
  std::vector<double> in_place_us;  ///< by step, behind the steps before it, from event to event
  std::vector<double> alone_us;     ///< by step, from the mode's own cache state
};

/// Medians over a few rounds under the same load as the samples; fewer where a round takes long.
StepTimes time_steps(Device& device, Load& load, const BoundPlan& plan, CacheMode mode, double max_seconds,
                     const Clock& clock = steady_seconds);

}  // namespace fusebench
