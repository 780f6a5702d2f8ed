#include "harness/step_times.h"

#include <functional>

#include "harness/statistics.h"

namespace fusebench {

namespace {

constexpr int kMostRounds = 11;
constexpr int kFewestRounds = 3;

}  // namespace

StepTimes time_steps(Device& device, Load& load, const BoundPlan& plan, CacheMode mode, double max_seconds,
                     const Clock& clock) {
  const std::size_t count = plan.plan().steps().size();
  std::vector<std::function<void()>> steps;
  for (std::size_t i = 0; i < count; ++i) steps.emplace_back([&plan, i] { plan.launch_step(i); });
  const std::function<void()> whole = [&plan] { plan.launch(); };
  const auto start_from_mode = [&](const std::function<void()>& work) {
    if (mode == CacheMode::hot) work();
    if (mode == CacheMode::cold) device.flush_cache();
  };
  std::vector<std::vector<double>> in_place(count);
  std::vector<std::vector<double>> alone(count);

  const double start = clock();
  load.settle(whole);
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && clock() - start > max_seconds) break;
    load.before_sample(whole);
    start_from_mode(whole);
    const Times times = device.time(steps, true);
    load.after_sample(times);
    for (std::size_t i = 0; i < count; ++i) in_place[i].push_back(times.us[i]);
    // Costs a flush a step, which on the CPU is most of a round.
    if (round > 0 && clock() - start > max_seconds) continue;
    for (std::size_t i = 0; i < count; ++i) {
      load.before_sample(whole);
      start_from_mode(steps[i]);
      const Times times = device.time({steps[i]}, true);
      load.after_sample(times);
      alone[i].push_back(times.us.front());
    }
  }
  StepTimes times;
  for (std::size_t i = 0; i < count; ++i) {
    times.in_place_us.push_back(median(in_place[i]));
    times.alone_us.push_back(median(alone[i]));
  }
  return times;
}

}  // namespace fusebench
