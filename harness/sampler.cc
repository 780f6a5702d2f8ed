#include "harness/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <numeric>
#include <stdexcept>

#include "harness/mix.h"
#include "harness/statistics.h"

namespace fusebench {

namespace {

constexpr std::size_t kMostSamplesPerAsked = 10;  // a bimodal latency may never come within ci

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
template <class Call>
bool guarded(Taking& taking, const Clock& clock, const Call& call) {
  const double start = clock();
  try {
    call();
  } catch (const std::exception& e) {
    drop(taking, e.what());
  } catch (...) {
    drop(taking, "an exception of unknown type");
  }
  taking.used_seconds += clock() - start;
  return taking.active;
}

bool take_one(Taking& taking, const Clock& clock, bool warming_up, Sample& sample) {
  return guarded(taking, clock, [&] {
    sample = taking.subject->sample(warming_up);
    if (!std::isfinite(sample.us) || sample.us < 0) {
      throw std::runtime_error(fmt::format("a latency of {} us", sample.us));
    }
  });
}

void warm_up(std::vector<Taking>& all, const Measure& measure, std::uint64_t seed, const Clock& clock) {
  for (int round = 0; round < measure.warmup; ++round) {
    for (std::size_t i : round_order(all.size(), scrambled(seed), static_cast<std::uint64_t>(round))) {
      Taking& taking = all[i];
      if (!taking.active || (round > 0 && taking.used_seconds >= measure.max_seconds / 2)) continue;
      Sample sample;
      if (take_one(taking, clock, true, sample)) ++taking.warmups;
    }
  }
}

std::string too_few(const Taking& taking, const Measure& measure) {
  std::string reason = fmt::format("{} of {} samples: max_seconds ({:g}) reached", taking.samples.us.size(),
                                   measure.samples, measure.max_seconds);
  if (taking.warmups < measure.warmup) {
    reason += fmt::format(", after {} of {} warm-ups", taking.warmups, measure.warmup);
  }
  return reason;
}

std::string too_wide(const Taking& taking, const Measure& measure, const std::string& why) {
  return fmt::format("the median's interval is {:.2g} of it after {} samples, wider than ci ({:g}): {}",
                     relative_interval(taking.samples.us), taking.samples.us.size(), measure.ci, why);
}

// Whether it needs no more samples, or may not take more.
bool is_done(Taking& taking, const Measure& measure) {
  const std::size_t taken = taking.samples.us.size();
  const auto asked = static_cast<std::size_t>(measure.samples);
  if (taken >= asked && (taken < kSamplesFor95 || relative_interval(taking.samples.us) <= measure.ci)) return true;
  if (taken >= kMostSamplesPerAsked * asked) {
    taking.samples.reason = too_wide(taking, measure, fmt::format("{} times as many as asked", kMostSamplesPerAsked));
    return true;
  }
  if (taken < kMinSamples || taking.used_seconds < measure.max_seconds) return false;
  taking.samples.reason =
      taken < asked ? too_few(taking, measure)
                    : too_wide(taking, measure, fmt::format("max_seconds ({:g}) reached", measure.max_seconds));
  return true;
}

void take_turn(Taking& taking, const Measure& measure, int turn, const Clock& clock) {
  const Subject& subject = *taking.subject;
  const double before = taking.used_seconds;
  if (subject.begin_turn && !guarded(taking, clock, subject.begin_turn)) return;
  const double beginning = taking.used_seconds - before;
  taking.used_seconds = before;
  for (int i = 0; i < turn && taking.active; ++i) {
    Sample sample;
    if (!take_one(taking, clock, false, sample)) return;
    taking.samples.us.push_back(sample.us);
    taking.samples.sm_mhz.push_back(sample.sm_mhz);
    if (!sample.held) ++taking.samples.unheld;
    if (is_done(taking, measure)) taking.active = false;
  }
  if (subject.end_turn) guarded(taking, clock, subject.end_turn);
  taking.used_seconds += beginning;
  if (beginning > 0 && taking.active && is_done(taking, measure)) taking.active = false;
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
                                  int turn, const Clock& clock) {
  std::vector<Taking> all(subjects.size());
  for (std::size_t i = 0; i < subjects.size(); ++i) all[i].subject = &subjects[i];

  warm_up(all, measure, seed, clock);
  const auto is_active = [](const Taking& taking) { return taking.active; };
  for (std::uint64_t round = 0; std::any_of(all.begin(), all.end(), is_active); ++round) {
    for (const std::size_t i : round_order(all.size(), seed, round)) {
      if (all[i].active) take_turn(all[i], measure, turn, clock);
    }
  }

  std::vector<Samples> samples;
  samples.reserve(all.size());
  for (Taking& taking : all) samples.push_back(std::move(taking.samples));
  return samples;
}

}  // namespace fusebench
