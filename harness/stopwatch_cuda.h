// Times work on a stream by events, with the host's part kept out.
//
// Problem: a launch takes the host some microseconds, so that events around several launches, or around one short
// kernel, time the host. Pattern (nvbench's): a kernel holds the stream until everything has been queued.
// Caveat: work that waits for the device while the stream is held would wait for ever; a timeout lets it go, and says
// so.
// Under profilers and sanitisers, which make launches wait, nothing is held.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

#include "harness/device.h"
#include "harness/device_kernels.h"

namespace fusebench {

class Stopwatch {
 public:
  Stopwatch(cudaStream_t stream, int multiprocessors);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  bool can_hold() const { return can_hold_; }
  Times time(const std::vector<std::function<void()>>& works, bool hold);

 private:
  struct Shared;  // between host and device
  cudaEvent_t event(std::size_t index);
  double sm_mhz() const;

  cudaStream_t stream_;
  bool can_hold_;
  int multiprocessors_;
  Shared* shared_ = nullptr;
  ClockStamp* before_ = nullptr;  // by multiprocessor, in the host's memory
  ClockStamp* after_ = nullptr;
  std::vector<cudaEvent_t> events_;
  unsigned ticket_ = 0;
};

}  // namespace fusebench
