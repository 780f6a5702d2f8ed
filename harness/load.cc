#include "harness/load.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

#include "harness/nvml.h"
#include "harness/sampler.h"

namespace fusebench {

namespace {

// A power limit shows after 40 to 100 ms of load and has settled after about twice that (seen on an H200).
constexpr double kChunkUs = 25e3;
constexpr double kShortestSettlingUs = 50e3;  // of a kernel that draws little power
constexpr double kPowerSettlingUs = 150e3;    // of any other
constexpr double kLittlePower = 0.85;         // of the limit
constexpr double kLongestSettlingUs = 500e3;
constexpr double kSteadyClock = 0.005;  // relative change from chunk to chunk
// At the limit the clock is steady for 0.7 s, then falls by a tenth or more for 0.3 s, again and again. A rest gives a
// turn its 0.7 s; without, it inherits what the turn before it used up (the same H200: docs/performance-log.md).
constexpr double kRestAfterHeavyUs = 300e3;
// With so many times the pause spent under load, the device rests for a tenth of the time or less.
constexpr double kLoadPerIdle = 9;
constexpr double kLongestPreloadUs = 20e3;
constexpr double kUnslowedClock = 0.99;
constexpr double kRestShare = 3;
constexpr double kLongestRestUs = 500e3;
constexpr double kRestStepUs = 5e3;
constexpr double kRecoveredClock = 0.99;

std::optional<bool> draws_much(const DeviceState& state) {
  if (!state.power_w.value || !state.power_limit_w.value) return std::nullopt;
  return *state.power_w.value > kLittlePower * *state.power_limit_w.value;
}

}  // namespace

HostTime steady_host_time() {
  return {.now_us = [] { return 1e6 * steady_seconds(); },
          .sleep_us = [](double us) { std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us)); }};
}

bool Load::settles() const {
  const DeviceFacts& facts = device_.facts();
  return mode_ == LoadMode::sustained && facts.backend == Backend::cuda && facts.watched_by.empty();
}

void Load::settle(const std::function<void()>& launch) {
  idle_us_ = 0;
  sample_began_us_ = 0;
  slowed_ = false;
  if (!settles()) return;
  if (draws_much(device_.state()).value_or(false)) host_.sleep_us(kRestAfterHeavyUs);
  const auto chunk = [&](std::size_t launches) {
    return device_.time(std::vector<std::function<void()>>(launches, launch), false);
  };
  const auto total = [](const Times& times) {
    double us = 0;
    for (const double part : times.us) us += part;
    return us;
  };
  const Times first = chunk(1);
  launch_us_ = std::max(total(first), 1.0);
  const auto launches = static_cast<std::size_t>(std::ceil(kChunkUs / launch_us_));
  double us = total(first);
  for (double before_mhz = first.sm_mhz; us < kLongestSettlingUs;) {
    const Times times = chunk(launches);
    us += total(times);
    highest_mhz_ = std::max(highest_mhz_, times.sm_mhz);
    const DeviceState state = device_.state();
    const bool limited = state.clock_events.value && (*state.clock_events.value & kThrottleEvents) != 0;
    slowed_ = limited || times.sm_mhz < kUnslowedClock * highest_mhz_;
    const bool steady = std::abs(times.sm_mhz / std::max(before_mhz, 1.0) - 1) < kSteadyClock;
    const double shortest_us = draws_much(state).value_or(true) ? kPowerSettlingUs : kShortestSettlingUs;
    if (us >= shortest_us && (steady || times.sm_mhz == 0)) break;
    before_mhz = times.sm_mhz;
  }
}

void Load::before_sample(const std::function<void()>& launch) {
  if (mode_ == LoadMode::burst && device_.facts().watched_by.empty()) rest();
  // Up to now rather than to the sample's end: its outputs were checked since.
  if (sample_began_us_ > 0) {
    idle_us_ = std::max(host_.now_us() - sample_began_us_ - queued_us_ - last_us_, 0.0);
  }
  queued_us_ = 0;
  const double preload_us = std::min(kLoadPerIdle * idle_us_, kLongestPreloadUs);
  if (slowed_ && launch_us_ < preload_us) {
    for (; queued_us_ < preload_us; queued_us_ += launch_us_) launch();
  }
  sample_began_us_ = host_.now_us();
}

void Load::after_sample(const Times& times) {
  last_us_ = 0;
  for (const double us : times.us) last_us_ += us;
  highest_mhz_ = std::max(highest_mhz_, times.sm_mhz);
}

void Load::rest() {
  host_.sleep_us(std::min(kRestShare * last_us_, kLongestRestUs));
  if (highest_mhz_ == 0) return;
  for (double us = 0; us < kLongestRestUs; us += kRestStepUs) {
    if (device_.time({}, false).sm_mhz >= kRecoveredClock * highest_mhz_) return;
    host_.sleep_us(kRestStepUs);
  }
}

}  // namespace fusebench
