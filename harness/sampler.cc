#include "harness/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <numeric>
#include <stdexcept>

#include "harness/mix.h"

namespace fusebench {

namespace {

constexpr std::size_t kMinSamples = 3;

// Unlike mix, it does not leave the seed 0 as it is.
std::uint64_t scrambled(std::uint64_t x) { return mix(x + kMixStride); }

struct Taking {
  const Subject* subject = nullptr;
  Samples samples;
  double used_seconds = 0;
  int warmups = 0;
  bool active = true;
};

void drop(Taking& taking, std::string message) {
  taking.samples.reason = fmt::format("a sample failed: {}", message);
  taking.samples.error = std::move(message);
  taking.active = false;
}

// A subject that throws is dropped, so that the others keep their run.
bool take_one(Taking& taking, const Clock& clock, double& us) {
  const double start = clock();
  try {
    us = taking.subject->sample_us();
    if (!std::isfinite(us) || us < 0) throw std::runtime_error(fmt::format("a latency of {} us", us));
  } catch (const std::exception& e) {
    drop(taking, e.what());
  } catch (...) {
    drop(taking, "an exception of unknown type");
  }
  taking.used_seconds += clock() - start;
  return taking.active;
}

void warm_up(std::vector<Taking>& all, const Measure& measure, std::uint64_t seed, const Clock& clock) {
  for (int round = 0; round < measure.warmup; ++round) {
    for (std::size_t i : round_order(all.size(), scrambled(seed), static_cast<std::uint64_t>(round))) {
      Taking& taking = all[i];
      if (!taking.active || (round > 0 && taking.used_seconds >= measure.max_seconds / 2)) continue;
      double us = 0;
      if (take_one(taking, clock, us)) ++taking.warmups;
    }
  }
}

void leave_when_out_of_time(Taking& taking, const Measure& measure) {
  const std::size_t taken = taking.samples.us.size();
  if (!taking.active || taken < kMinSamples || taken >= static_cast<std::size_t>(measure.samples)) return;
  if (taking.used_seconds < measure.max_seconds) return;
  taking.active = false;
  taking.samples.reason =
      fmt::format("{} of {} samples: max_seconds ({:g}) reached", taken, measure.samples, measure.max_seconds);
  if (taking.warmups < measure.warmup) {
    taking.samples.reason += fmt::format(", after {} of {} warm-ups", taking.warmups, measure.warmup);
  }
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::size_t> round_order(std::size_t count, std::uint64_t seed, std::uint64_t round) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::uint64_t stream = scrambled(scrambled(seed) ^ round);
  for (std::size_t left = count; left > 1; --left) {
    // The remainder's bias is under count / 2^64.
    std::swap(order[left - 1], order[scrambled(stream ^ left) % left]);
  }
  return order;
}

std::vector<Samples> take_samples(const std::vector<Subject>& subjects, const Measure& measure, std::uint64_t seed,
                                  const Clock& clock) {
  std::vector<Taking> all(subjects.size());
  for (std::size_t i = 0; i < subjects.size(); ++i) all[i].subject = &subjects[i];

  warm_up(all, measure, seed, clock);
  for (int round = 0; round < measure.samples; ++round) {
    for (std::size_t i : round_order(all.size(), seed, static_cast<std::uint64_t>(round))) {
      double us = 0;
      if (all[i].active && take_one(all[i], clock, us)) all[i].samples.us.push_back(us);
    }
    for (Taking& taking : all) leave_when_out_of_time(taking, measure);
  }

  std::vector<Samples> samples;
  samples.reserve(all.size());
  for (Taking& taking : all) samples.push_back(std::move(taking.samples));
  return samples;
}

}  // namespace fusebench
