// Splits host work over all cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace fusebench {

/// Calls work(first, last) on disjoint ranges that cover [0, count), each on a thread of its own. `work` must not
/// throw. No range but the last is shorter than `grain`.
template <class Work>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Work& work) {
  const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t threads = std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, cores);
  const std::int64_t share = (count + threads - 1) / threads;
  std::vector<std::jthread> pool;
  for (std::int64_t first = share; first < count; first += share) {
    pool.emplace_back([&work, first, last = std::min(first + share, count)] { work(first, last); });
  }
  if (count > 0) work(std::int64_t{0}, std::min(share, count));
}

}  // namespace fusebench
