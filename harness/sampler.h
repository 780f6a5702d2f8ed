// Takes the latency samples of a case's variants in interleaved order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/config.h"

namespace fusebench {

struct Sample {
  double us = 0;
  double sm_mhz = 0;  ///< 0: not known
  bool held = true;   ///< no time of the host's is in it
};

inline constexpr std::size_t kMinSamples = 3;  ///< taken however long they last

/// One variant to time. `sample` prepares the cache state, launches the plan once and times it; in a warm-up a launch
/// may do what is done only once. Before and after a turn of samples the other two are called, where there are such.
struct Subject {
  std::string name;
  std::function<Sample(bool warming_up)> sample;
  std::function<void()> begin_turn = {};
  std::function<void()> end_turn = {};
};

struct Samples {
  std::vector<double> us;      ///< in the order taken: `turn` of every subject come from one round
  std::vector<double> sm_mhz;  ///< beside them
  int unheld = 0;              ///< how many may hold the host's time
  std::string reason;          ///< why fewer than asked, or a wider interval; empty otherwise
  std::string error;           ///< a sample threw: the subject was dropped with this message
};

/// Seconds on a clock that never goes back.
using Clock = std::function<double()>;
double steady_seconds();

/// The order in which `count` subjects are sampled in a round: a permutation that depends on its arguments alone.
std::vector<std::size_t> round_order(std::size_t count, std::uint64_t seed, std::uint64_t round);

/// Each round gives each subject a turn of `turn` samples, in an order drawn from the seed. Warm-up rounds, of one
/// each, come first and are not kept. A subject leaves when it has `samples` of them and the 95% interval of their
/// median is within `ci`, when it has ten times as many, or when it has used max_seconds, after 3 samples: the others
/// go on. What begins a turn counts when the turn is over, so that it does not end it. Warm-ups count towards
/// max_seconds: a subject that has used half of it leaves them after the first, so that time for samples is left.
std::vector<Samples> take_samples(const std::vector<Subject>& subjects, const Measure& measure, std::uint64_t seed,
                                  int turn = 1, const Clock& clock = steady_seconds);

}  // namespace fusebench
