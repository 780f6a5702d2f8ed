// Holds a device in the state that `load` asks for while samples are taken, since a power-bound kernel runs by more
// than a tenth faster in a short burst than under load.
//
// sustained: before a turn of samples the variant runs on end until the SM clock is steady, after a rest where the work
// before it was heavy; where the steady clock is a lowered one, it also runs before each sample, so long that the
// pauses of the harness leave the device little rest. burst: before each sample the device rests, at least kRestShare
// times as long as the last sample took, until its clock is as high as it was ever seen. Where the clock cannot be read
// (the CPU) sustained does nothing; neither does anything while a tool watches (DeviceFacts::watched_by).
#pragma once

#include <functional>
#include <utility>

#include "harness/config.h"
#include "harness/device.h"

namespace fusebench {

/// The host's clock, and how it waits.
struct HostTime {
  std::function<double()> now_us;
  std::function<void(double us)> sleep_us;
};
HostTime steady_host_time();

class Load {
 public:
  Load(Device& device, LoadMode mode, HostTime host = steady_host_time())
      : device_(device), mode_(mode), host_(std::move(host)) {}

  bool settles() const;  ///< whether a turn of several samples is worth its settling
  /// Before a turn of `launch`'s samples.
  void settle(const std::function<void()>& launch);
  /// Before a sample, whose work may be queued right behind what this queues.
  void before_sample(const std::function<void()>& launch);
  void after_sample(const Times& times);
  double highest_mhz() const { return highest_mhz_; }

 private:
  void rest();

  Device& device_;
  LoadMode mode_;
  HostTime host_;
  bool slowed_ = false;   // the load lowers the clock, so that a pause would raise it
  double launch_us_ = 0;  // of the variant whose turn it is
  double idle_us_ = 0;    // what the harness let the device rest since the last sample began
  double last_us_ = 0;
  double sample_began_us_ = 0;  // 0: none yet in this turn
  double queued_us_ = 0;
  double highest_mhz_ = 0;
};

}  // namespace fusebench
