// How far two runs of the same binary may differ: the noise that a comparison judges by.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

/// Where no run has measured it. A GPU at rest repeats medians within 2% from process to process. A CPU is shared with
/// the operating system and its other processes: over 15 pairs of runs of configs/quick.yaml on two cores that others
/// used too, 2% of rows stood out at 50%, 1% at 100%.
inline constexpr double kAssumedNoise = 0.02;
inline constexpr double kAssumedNoiseCpu = 1.0;

/// A figure that 99% of pairs stay under needs about so many pairs; with fewer, the assumed floor holds beside it.
inline constexpr double kFewestPairs = 30;

struct Noise {
  double relative = 0;     ///< beyond it a row is slower or faster
  double same_within = 0;  ///< the same, but never more than kAssumedNoise on an assumption: that proves no sameness
  std::string source;      ///< "restarts of base", "A/A of new", "assumed"
  double assumed = 0;      ///< the floor that was assumed; 0 where the duration's own figure is known
  std::string why;         ///< why it was assumed
};

/// The largest figure that either header has for the duration of either median. A figure from within one run (`a_a`)
/// does not see what differs between processes: alone it can only raise the assumed floor.
Noise noise_of(const Json& base_header, const Json& new_header, double base_us, double new_us, bool cpu);

}  // namespace fusebench::reports
