// Which of a device's multiprocessors read through which partition of its L2, and what the blocks of a launch count.
//
// From the A100 on large devices have two partitions. Either caches what the multiprocessors beside it read, also where
// the memory belongs to the other, as NVIDIA's A100 whitepaper says. So what is read on both sides takes its space
// twice, and comes over the link between them. No interface tells where a multiprocessor is, but an atomic is carried
// out where the memory belongs, so that latencies of atomics tell.
//
// Placing work by partition may never decide a result: what is measured here can be wrong.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace fusebench::kernels {

/// The multiprocessors of the second partition.
struct L2Partitions {
  std::array<std::uint64_t, 4> second{};  ///< bit i % 64 of second[i / 64] is multiprocessor i

  constexpr bool is_second(int multiprocessor) const { return second[multiprocessor / 64] >> multiprocessor % 64 & 1; }
};

/// From `latencies`[multiprocessor][line], in any unit. Those of a partition rise and fall together from line to line,
/// and against the other's. Nothing where they do not, or where one partition has less than three eighths of all.
std::optional<L2Partitions> partitions_by(const std::vector<std::vector<double>>& latencies);

/// Of the current device, measured at the first call, in some 10 ms; also while the calling thread captures a stream.
/// Nothing where the device's partitions could not be told apart.
std::optional<L2Partitions> l2_partitions();

/// A place among 2 · half for one who arrives behind `earlier_first` of the first partition and `earlier_second` of the
/// second: those below half are the first partition's. Where over half of all come from one partition, the last of them
/// take what the other leaves. So 2 · half arrivals get each place once, whatever partitions they name.
constexpr int place_of(bool is_second, int earlier_first, int earlier_second, int half) {
  const int earlier = is_second ? earlier_second : earlier_first;
  if (earlier < half) return (is_second ? half : 0) + earlier;
  return (is_second ? 0 : half) + 2 * half - 1 - earlier;
}

constexpr int kPartCounters = 256;  ///< of a launch that splits k: one for each consumer of its tiles

/// What the blocks of one launch count in device memory. It is zero again at the launch's end.
struct LaunchCounters {
  unsigned long long arrivals;
  unsigned finished[kPartCounters];
};

/// Launches at one time need counters of their own: with shared ones tiles would be left out, or added up too early.
/// 1024 are handed out in turn as launches are queued or captured, and a graph keeps its own. So streams that run at
/// one time may not have queued 1024 products between them, and a graph may run neither beside itself nor beside other
/// products.
LaunchCounters* next_launch_counters();

}  // namespace fusebench::kernels
