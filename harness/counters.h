// The GPU's own counters: what really moved between its caches and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fusebench {

/// What one piece of work moved, and how long the device took with it under the counters.
struct Traffic {
  std::int64_t dram_read_bytes = 0;
  std::int64_t dram_write_bytes = 0;
  std::int64_t l2_bytes = 0;  ///< through L2: what the multiprocessors move, and some of L2's own fills
  double gpu_us = 0;
};

/// Work to be queued on the device's stream; what is not counted prepares the state that the next piece starts from.
struct Piece {
  std::function<void()> work;
  bool counted = true;
};

/// Counts pieces of work one by one, each from an idle device to an idle device. While one is open the device may run
/// slower: nothing is timed beside it. Calls throw std::runtime_error that names the failing call.
class Counters {
 public:
  virtual ~Counters() = default;
  virtual std::string source() const = 0;  ///< for a record's traffic_source
  /// One result for each counted piece, in order.
  virtual std::vector<Traffic> count(const std::vector<Piece>& pieces) = 0;
};

}  // namespace fusebench
