// A device without hardware: memory and arithmetic are the CPU's; time, clock, power and counters are a test's script.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/load.h"
#include "tests/cpu_backed_device.h"

namespace fusebench::testing {

class FakeDevice final : public CpuBackedDevice {
 public:
  // --- the script ---
  DeviceFacts described{.backend = Backend::cuda, .name = "fake", .multiprocessors = 1, .l2_bytes = 1 << 20};
  std::int64_t free = 64 << 20;
  double work_us = 10;       // of timed work that does not call busy()
  double cold_extra_us = 0;  // what timed work takes longer behind a flush
  /// The SM clock, by how long the device has been under load; time at rest is taken off again.
  std::function<double(double loaded_us)> mhz = [](double) { return 0.0; };
  std::function<DeviceState()> read_sensors = [] { return DeviceState{}; };
  std::function<double(Transfer, std::int64_t bytes)> transfer_us;  // may throw
  std::function<Traffic(std::size_t counted)> traffic;              // of the counted pieces of one call
  std::string open_failure, count_failure;                          // what is thrown, if anything
  std::string source = "a script";

  // --- what happened ---
  std::vector<std::string> log;  // flushes, drains, and what works tell; "(" and ")" around a counted piece
  double now_us = 0;
  double loaded_us = 0;
  double longest_rest_us = 0;
  int counters_open = 0;
  bool timed_beside_counters = false;

  /// The work that is being launched takes so long.
  void busy(double us) { queued_us_ += us; }
  /// The host lets so much time pass: the device works off what is queued, then rests.
  void pass(double us) {
    const double worked = std::min(queued_us_, us);
    work(worked);
    queued_us_ -= worked;
    const double rest_us = us - worked;
    now_us += rest_us;
    loaded_us = std::max(loaded_us - rest_us, 0.0);
    longest_rest_us = std::max(longest_rest_us, rest_us);
  }
  HostTime host_time() {
    return {.now_us = [this] { return now_us; }, .sleep_us = [this](double us) { pass(us); }};
  }

  // --- the device ---
  const DeviceFacts& facts() const override { return described; }
  Exec exec() const override { return cpu_->exec(); }
  std::int64_t free_bytes() const override { return free; }

  void flush_cache() override {
    log.emplace_back("flush");
    is_cold_ = true;
  }
  void drain_cache() override { log.emplace_back("drain"); }
  void synchronize() override { pass(queued_us_); }
  Times time(const std::vector<std::function<void()>>& works, bool hold) override {
    timed_beside_counters = timed_beside_counters || counters_open > 0;
    synchronize();
    Times times{.held = hold};
    for (const std::function<void()>& launch : works) {
      const double cold_us = std::exchange(is_cold_, false) ? cold_extra_us : 0;
      launch();
      times.us.push_back((queued_us_ > 0 ? queued_us_ : work_us) + cold_us);
      queued_us_ = 0;
      work(times.us.back());
    }
    times.sm_mhz = mhz(loaded_us);
    return times;
  }
  void transfer(Transfer kind, void* /*to*/, const void* /*from*/, std::int64_t bytes) override {
    busy(transfer_us(kind, bytes));
  }
  void launch_empty() override { busy(2 * work_us); }
  void launch_delay(double us) override { busy(us); }
  DeviceState state() const override { return read_sensors(); }
  std::unique_ptr<Counters> open_counters() override {
    if (!open_failure.empty()) throw std::runtime_error(open_failure);
    return std::make_unique<ScriptedCounters>(*this);
  }
  std::function<void()> capture(const std::function<void()>& launch) override { return launch; }

 private:
  class ScriptedCounters final : public Counters {
   public:
    explicit ScriptedCounters(FakeDevice& device) : device_(device) { ++device_.counters_open; }
    ScriptedCounters(const ScriptedCounters&) = delete;
    ScriptedCounters& operator=(const ScriptedCounters&) = delete;
    ~ScriptedCounters() override { --device_.counters_open; }

    std::string source() const override { return device_.source; }
    std::vector<Traffic> count(const std::vector<Piece>& pieces) override {
      if (!device_.count_failure.empty()) throw std::runtime_error(device_.count_failure);
      std::vector<Traffic> counted;
      for (const Piece& piece : pieces) {
        if (piece.counted) device_.log.emplace_back("(");
        piece.work();
        device_.synchronize();
        if (!piece.counted) continue;
        device_.log.emplace_back(")");
        counted.push_back(device_.traffic(counted.size()));
      }
      return counted;
    }

   private:
    FakeDevice& device_;
  };

  void work(double us) {
    now_us += us;
    loaded_us += us;
  }

  double queued_us_ = 0;
  bool is_cold_ = false;
};

}  // namespace fusebench::testing
