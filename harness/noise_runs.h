// Learns a noise table on this machine: the same sweep in fresh processes, one after the other.
#pragma once

#include "harness/doctor.h"
#include "harness/noise.h"

namespace fusebench {

/// The table, which noise_file() now holds. Throws UsageError, or std::runtime_error where a run failed.
NoiseTable learn_noise_here(const DoctorOptions& options);

}  // namespace fusebench
