// A machine's memory, stream and clock: all that the harness asks of a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/counters.h"
#include "harness/plan.h"
#include "harness/row.h"

namespace fusebench {

struct DeviceFacts {
  Backend backend = Backend::cpu;
  std::string name;
  std::string uuid;     ///< empty on the CPU
  std::string driver;   ///< CUDA driver API version; empty on the CPU
  std::string runtime;  ///< CUDA runtime version; empty on the CPU
  int compute_capability = 0;
  int multiprocessors = 0;    ///< cores on the CPU
  std::int64_t l2_bytes = 0;  ///< last-level cache
  std::int64_t memory_bytes = 0;
  std::map<std::string, std::string> libraries;  ///< name to version
  std::vector<std::string> warnings;             ///< a busy GPU, a MIG slice
  std::string watched_by;  ///< a profiler or sanitizer in this process, whose times are not the device's; mostly empty
};

/// How long each of several pieces of work took.
struct Times {
  std::vector<double> us;
  double sm_mhz = 0;  ///< clock of the multiprocessors meanwhile; 0 where it is not known
  bool held = false;  ///< all was queued before the first began, so that no time of the host's is in them
};

/// The card's own sensors, as far as they can be read.
struct DeviceState {
  Known<double> power_w, power_limit_w, temperature_c;
  Known<std::uint64_t> clock_events;  ///< what holds the clock down: bits of ClockEvent in harness/nvml.h
};

/// Traffic of a known size: every byte is read, or written, or both, once.
enum class Transfer : std::uint8_t { copy, read, write };

/// One backend's memory, stream and clock. Calls throw std::runtime_error that names the failing call, file and line.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceFacts& facts() const = 0;
  virtual Exec exec() const = 0;
  virtual std::int64_t free_bytes() const = 0;

  virtual void* allocate(std::int64_t bytes) = 0;  ///< aligned to 256 bytes
  virtual void release(void* memory) noexcept = 0;
  virtual void copy_in(void* device, const void* host, std::int64_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::int64_t bytes) = 0;
  virtual void fill(void* device, std::uint8_t byte, std::int64_t bytes) = 0;  ///< queued like a launch
  /// Fills a few short stretches here and there, at places that `seed` draws; queued like a launch.
  virtual void fill_some(void* device, std::uint8_t byte, std::int64_t bytes, std::uint64_t seed) = 0;
  /// Depends on every bit and its position.
  virtual std::uint64_t checksum(const void* device, std::int64_t bytes) = 0;

  /// Writes twice the last-level cache, then drains it, so that what follows starts cold and no dirty line is written
  /// back inside it. Resets persisting lines.
  virtual void flush_cache() = 0;
  /// Reads clean bytes, twice the last-level cache, which drives out what is dirty.
  virtual void drain_cache() = 0;
  virtual void synchronize() = 0;
  /// The device's times of `works`, queued one behind the other. With `hold` they begin when all are queued: no work
  /// may wait for the device, as a first launch does.
  virtual Times time(const std::vector<std::function<void()>>& works, bool hold) = 0;
  /// Queues a copy from `from`, a read of it, or a write to `to`, of a multiple of 16 bytes at bases that are aligned
  /// so.
  virtual void transfer(Transfer kind, void* to, const void* from, std::int64_t bytes) = 0;
  virtual void launch_empty() = 0;           ///< queues a kernel that does nothing
  virtual void launch_delay(double us) = 0;  ///< queues work that takes so long and moves nothing
  virtual DeviceState state() const = 0;
  /// Throws std::runtime_error that says why the device's counters cannot be read. One at a time.
  virtual std::unique_ptr<Counters> open_counters() = 0;
  /// What an attached profiler collects lies between the two, where it was told to wait for them.
  virtual void profiler_start() {}
  virtual void profiler_stop() {}
  /// Records what `work` launches and returns a function that replays it as one graph. Throws where there are none.
  virtual std::function<void()> capture(const std::function<void()>& work) = 0;

  Target target() const;
};

std::unique_ptr<Device> open_cpu_device();
/// Throws std::runtime_error with one clear line when the build or the machine has no such device.
std::unique_ptr<Device> open_cuda_device(int index);
/// 0 without a driver, a device, or CUDA in the build.
int cuda_device_count();
/// Why cuda_device_count() is 0; empty when it is not.
std::string why_no_cuda();

/// Memory of a device that is given back with its owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::int64_t bytes) : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}
  ~DeviceMemory() {
    if (data_ != nullptr) device_->release(data_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory taken(std::move(other));
    swap(taken);
    return *this;
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace fusebench
