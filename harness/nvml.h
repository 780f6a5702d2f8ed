// What NVIDIA's management library tells of a card: clocks, power, temperature, what slows it down, who else is on it.
// The library comes with the driver and is loaded at run time, so that every build has this and none needs it. It is
// only asked, never told: no setting of the card is changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/row.h"

namespace fusebench {

struct ComputeProcess {
  std::int64_t pid = 0;
  Known<std::int64_t> memory_bytes;
};

/// Where a C function is found by its name; null where there is none.
using NvmlLookup = std::function<void*(const char*)>;

/// Never throws: where the library, the card or one function is missing, a query says so instead of giving a value.
class Nvml {
 public:
  /// The card that NVML calls `uuid` ("GPU-..." or "MIG-..."; a slice that CUDA calls "GPU-..." is found too). Of a MIG
  /// slice, clocks, power and ECC are the whole card's, processes its own.
  explicit Nvml(const std::string& uuid, const std::string& library = "libnvidia-ml.so.1");
  Nvml(const std::string& uuid, NvmlLookup lookup);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Why no query gives a value; empty when the card was found.
  const std::string& missing() const { return missing_; }

  Known<double> sm_mhz() const;
  Known<double> max_sm_mhz() const;
  Known<double> memory_mhz() const;
  Known<double> max_memory_mhz() const;
  /// Of this moment where the card can tell, otherwise an average over the card's own window (up to a second).
  Known<double> power_w() const;
  Known<double> power_limit_w() const;
  Known<double> energy_mj() const;  ///< since the driver was loaded; in millijoules
  Known<double> temperature_c() const;
  Known<std::uint64_t> clock_events() const;  ///< bits of ClockEvent
  Known<std::string> driver() const;
  Known<bool> ecc() const;
  Known<std::int64_t> uncorrected_ecc_errors() const;  ///< since the driver was loaded
  Known<bool> mig() const;
  Known<bool> persistence() const;
  /// Those with a compute context on the card, without this process.
  Known<std::vector<ComputeProcess>> other_processes() const;

 private:
  template <class Prototype, class... Arguments>
  std::string call(const char* name, Arguments... arguments) const;
  void open(const std::string& uuid);
  bool find_card(const std::string& uuid);
  Known<double> typed(const char* name, unsigned type) const;  // a clock or sensor
  Known<double> milli(const char* name) const;                 // given in thousandths
  Known<double> instant_power_w() const;

  NvmlLookup lookup_;
  std::string missing_;
  bool started_ = false;
  void* slice_ = nullptr;  // as the UUID names it
  void* card_ = nullptr;   // the same, or the card of a MIG slice
};

/// What holds the SM clock under its maximum.
enum ClockEvent : std::uint64_t {
  kGpuIdle = 0x1,
  kClockSetting = 0x2,  ///< application clocks or locked clocks
  kPowerCap = 0x4,
  kHardwareSlowdown = 0x8,
  kSyncBoost = 0x10,
  kThermalSlowdown = 0x20,
  kHardwareThermalSlowdown = 0x40,
  kPowerBrake = 0x80,
  kDisplayClockSetting = 0x100,
};
/// Those that slow work down against the card's or the user's will: not idling, and not clocks that someone set.
inline constexpr std::uint64_t kThrottleEvents =
    kPowerCap | kHardwareSlowdown | kSyncBoost | kThermalSlowdown | kHardwareThermalSlowdown | kPowerBrake;

/// "power cap, thermal slowdown"; "none" for 0. Bits that have no name here are given as a number.
std::string clock_event_words(std::uint64_t events);

}  // namespace fusebench
