#include "harness/stopwatch_cuda.h"

#include <algorithm>
#include <atomic>

#include "harness/attached_tools.h"
#include "harness/statistics.h"
#include "kernels/cuda_check.h"

namespace fusebench {

namespace {

// Queueing a plan takes the host well under a millisecond; a host that needs longer was doing something else.
constexpr double kHoldTimeoutUs = 2e5;
// The device's clock ticks in steps of up to a microsecond: over a shorter stretch the frequency would be noise.
constexpr double kStampSpinUs = 40;

template <class T>
T* host_memory(std::size_t count) {
  void* memory = nullptr;
  FUSEBENCH_CUDA_CHECK(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable));
  return new (memory) T[count]();
}

}  // namespace

struct Stopwatch::Shared {
  unsigned released = 0;
  unsigned timed_out = 0;
};

Stopwatch::Stopwatch(cudaStream_t stream, int multiprocessors)
    : stream_(stream), can_hold_(attached_tool().empty()), multiprocessors_(multiprocessors) {
  const auto count = static_cast<std::size_t>(multiprocessors);
  shared_ = host_memory<Shared>(1);
  before_ = host_memory<ClockStamp>(count);
  after_ = host_memory<ClockStamp>(count);
}

Stopwatch::~Stopwatch() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  cudaFreeHost(shared_);
  cudaFreeHost(before_);
  cudaFreeHost(after_);
}

cudaEvent_t Stopwatch::event(std::size_t index) {
  while (events_.size() <= index) {
    cudaEvent_t event = nullptr;
    FUSEBENCH_CUDA_CHECK(cudaEventCreate(&event));
    events_.push_back(event);
  }
  return events_[index];
}

Times Stopwatch::time(const std::vector<std::function<void()>>& works, bool hold) {
  std::fill_n(before_, multiprocessors_, ClockStamp{});
  std::fill_n(after_, multiprocessors_, ClockStamp{});
  for (std::size_t i = 0; i <= works.size(); ++i) event(i);  // made before the stream is held
  hold = hold && can_hold_;
  ++ticket_;
  if (hold) launch_hold(&shared_->released, ticket_, &shared_->timed_out, kHoldTimeoutUs, stream_);
  launch_stamp(before_, multiprocessors_, 0, stream_);
  FUSEBENCH_CUDA_CHECK(cudaEventRecord(event(0), stream_));
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i]();
    FUSEBENCH_CUDA_CHECK(cudaEventRecord(event(i + 1), stream_));
  }
  launch_stamp(after_, multiprocessors_, kStampSpinUs, stream_);
  FUSEBENCH_CUDA_CHECK(cudaGetLastError());
  std::atomic_ref(shared_->released).store(ticket_, std::memory_order_release);
  FUSEBENCH_CUDA_CHECK(cudaStreamSynchronize(stream_));
  Times times{.held = hold && std::atomic_ref(shared_->timed_out).load() != ticket_};
  for (std::size_t i = 0; i < works.size(); ++i) {
    float ms = 0;
    FUSEBENCH_CUDA_CHECK(cudaEventElapsedTime(&ms, event(i), event(i + 1)));
    times.us.push_back(1e3 * static_cast<double>(ms));
  }
  times.sm_mhz = sm_mhz();
  return times;
}

// Of those multiprocessors that both stamps reached.
double Stopwatch::sm_mhz() const {
  std::vector<double> mhz;
  for (int i = 0; i < multiprocessors_; ++i) {
    if (before_[i].ns == 0 || after_[i].ns <= before_[i].ns) continue;
    mhz.push_back(1e3 * static_cast<double>(after_[i].cycles - before_[i].cycles) /
                  static_cast<double>(after_[i].ns - before_[i].ns));
  }
  return mhz.empty() ? 0 : median(mhz);
}

}  // namespace fusebench
