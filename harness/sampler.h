// Takes the latency samples of a case's variants in interleaved order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/config.h"

namespace fusebench {

/// One variant to time. `sample_us` prepares the cache state, launches the plan once and returns its time.
struct Subject {
  std::string name;
  std::function<double()> sample_us;
};

struct Samples {
  std::vector<double> us;  ///< us[i] of every subject was taken in round i
  std::string reason;      ///< why fewer than asked; empty otherwise
  std::string error;       ///< a sample threw: the subject was dropped with this message
};

/// Seconds on a clock that never goes back.
using Clock = std::function<double()>;
double steady_seconds();

/// The order in which `count` subjects are sampled in a round: a permutation that depends on its arguments alone.
std::vector<std::size_t> round_order(std::size_t count, std::uint64_t seed, std::uint64_t round);

/// Each round takes one sample of each subject, in an order drawn from the seed. Warm-up rounds come first and are not
/// kept. Rounds go on until every subject has `samples` of them, or a subject has used max_seconds (after 3 rounds: it
/// then leaves, and the others go on). Warm-ups count towards max_seconds: a subject that has used half of it leaves
/// them after the first, so that time for samples is left. `measure.ci` stops nothing.
std::vector<Samples> take_samples(const std::vector<Subject>& subjects, const Measure& measure, std::uint64_t seed,
                                  const Clock& clock = steady_seconds);

}  // namespace fusebench
