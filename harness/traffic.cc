#include "harness/traffic.h"

#include <cstddef>

namespace fusebench {

PlanTraffic count_traffic(Device& device, Counters& counters, const BoundPlan& plan,
                          const std::function<void()>& launch, CacheMode mode) {
  const std::size_t steps = plan.plan().steps().size();
  std::vector<Piece> pieces;
  const auto start_from_mode = [&](const std::function<void()>& work) {
    if (mode == CacheMode::cold) pieces.push_back({[&] { device.flush_cache(); }, false});
    if (mode == CacheMode::hot) pieces.push_back({work, false});
  };
  const auto drain = [&] { pieces.push_back({[&] { device.drain_cache(); }}); };

  start_from_mode(launch);
  pieces.push_back({launch});
  drain();
  start_from_mode(launch);
  for (std::size_t i = 0; i < steps; ++i) pieces.push_back({[&plan, i] { plan.launch_step(i); }});
  // In order, so that each step finds what the one before it wrote.
  for (std::size_t i = 0; i < steps; ++i) {
    const auto step = [&plan, i] { plan.launch_step(i); };
    start_from_mode(step);
    pieces.push_back({step});
    drain();
  }

  const std::vector<Traffic> counted = counters.count(pieces);
  PlanTraffic traffic{.plan = counted.at(0), .late_write_bytes = counted.at(1).dram_write_bytes};
  for (std::size_t i = 0; i < steps; ++i) {
    traffic.in_place.push_back(counted.at(2 + i));
    Traffic alone = counted.at(2 + steps + 2 * i);
    alone.dram_write_bytes += counted.at(3 + steps + 2 * i).dram_write_bytes;
    traffic.alone.push_back(alone);
  }
  return traffic;
}

}  // namespace fusebench
