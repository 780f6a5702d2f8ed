// CUPTI's range profiler, which reads the counters from inside the process.
#pragma once

#include <functional>
#include <memory>

#include "harness/counters.h"

namespace fusebench {

/// Counters of the current context's device; `synchronize` waits for the stream that pieces of work are queued on.
/// Throws std::runtime_error with one line of why there are none and what would help.
std::unique_ptr<Counters> open_cupti_counters(int device_index, std::function<void()> synchronize);

}  // namespace fusebench
