// Under sustained load a device is settled and kept busy; in a burst it rests. On a device whose clock is a script.
#include "harness/load.h"

#include <cmath>

#include "harness/nvml.h"
#include "tests/catch.h"
#include "tests/fake_device.h"

using namespace fusebench;
using testing::FakeDevice;

namespace {

constexpr double kFullMhz = 1980;
constexpr double kSlowMhz = 1500;

// A device, and a kernel whose launches are counted.
struct Scene {
  FakeDevice device;
  Load load;
  double kernel_us;
  int launches = 0;

  Scene(LoadMode mode, double us) : load(device, mode, device.host_time()), kernel_us(us) {}
  std::function<void()> launch() {
    return [this] {
      ++launches;
      device.busy(kernel_us);
    };
  }
  // Launches that come before a sample, which the host starts late by so much and checks for so long.
  int preloads(double late_us = 0, double check_us = 0) {
    const int before = launches;
    load.before_sample(launch());
    const int preloaded = launches - before;
    device.pass(late_us);
    load.after_sample(device.time({launch()}, true));
    device.pass(check_us);
    return preloaded;
  }
  void slows_after(double us) {
    device.mhz = [us](double loaded_us) { return loaded_us > us ? kSlowMhz : kFullMhz; };
  }
};

}  // namespace

TEST_CASE("a turn settles until the clock is steady", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  CHECK(scene.load.settles());
  // Falls in steps of a tenth until 200 ms of load, and stays there.
  scene.device.mhz = [](double us) { return kFullMhz - 100 * std::floor(std::min(us, 200e3) / 20e3); };
  scene.load.settle(scene.launch());
  CHECK(scene.device.loaded_us > 200e3);
  CHECK(scene.device.loaded_us < 300e3);
  CHECK(scene.load.highest_mhz() > scene.device.mhz(scene.device.loaded_us));
  CHECK(scene.launches == Approx(scene.device.loaded_us / 100));
}

TEST_CASE("a clock that is steady from the start is seen to be so over the shortest settling", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.device.mhz = [](double) { return kFullMhz; };
  scene.device.read_sensors = [] { return DeviceState{.power_w = 500.0, .power_limit_w = 700.0}; };
  scene.load.settle(scene.launch());
  CHECK(scene.device.loaded_us >= 50e3);
  CHECK(scene.device.loaded_us < 80e3);
}

TEST_CASE("near the power limit, or where that is not known, settling outlasts the limit's delay", "[load]") {
  const bool known = GENERATE(true, false);
  Scene scene(LoadMode::sustained, 100);
  scene.device.mhz = [](double) { return kFullMhz; };
  if (known) scene.device.read_sensors = [] { return DeviceState{.power_w = 650.0, .power_limit_w = 700.0}; };
  scene.load.settle(scene.launch());
  CHECK(scene.device.loaded_us >= 150e3);
  CHECK(scene.device.loaded_us < 180e3);
}

TEST_CASE("a turn rests first where the work before it was heavy", "[load]") {
  const double power_w = GENERATE(500, 650);
  Scene scene(LoadMode::sustained, 100);
  scene.device.mhz = [](double) { return kFullMhz; };
  scene.device.read_sensors = [=] { return DeviceState{.power_w = power_w, .power_limit_w = 700.0}; };
  scene.load.settle(scene.launch());
  CHECK(scene.device.longest_rest_us == (power_w > 600 ? 300e3 : 0));
}

TEST_CASE("a clock that was lowered before the case began is known by what NVML says of it", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.device.mhz = [](double) { return kSlowMhz; };
  scene.device.read_sensors = [] { return DeviceState{.clock_events = std::uint64_t{kPowerCap}}; };
  scene.load.settle(scene.launch());
  CHECK(scene.preloads(500) == 0);  // straight behind the settling
  CHECK(scene.preloads(500) > 0);
}

TEST_CASE("settling ends at its limit where the clock never is steady", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  int reads = 0;
  scene.device.mhz = [&](double) { return ++reads % 2 == 0 ? kFullMhz : kSlowMhz; };
  scene.load.settle(scene.launch());
  CHECK(scene.device.loaded_us >= 500e3);
  CHECK(scene.device.loaded_us < 530e3);
}

TEST_CASE("a clock that cannot be read does not prolong the settling", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.load.settle(scene.launch());
  CHECK(scene.device.loaded_us < 180e3);
  CHECK(scene.preloads(1e3) == 0);
  CHECK(scene.preloads(1e3) == 0);
}

TEST_CASE("few long launches settle", "[load]") {
  Scene scene(LoadMode::sustained, 700e3);
  int reads = 0;
  scene.device.mhz = [&](double) { return ++reads % 2 == 0 ? kFullMhz : kSlowMhz; };
  scene.load.settle(scene.launch());
  CHECK(scene.launches == 1);  // the limit is passed by it

  Scene shorter(LoadMode::sustained, 60e3);
  shorter.device.mhz = [](double) { return kFullMhz; };
  shorter.load.settle(shorter.launch());
  CHECK(shorter.launches == 3);
}

TEST_CASE("where the load lowers the clock, the device is kept busy for nine tenths of the time", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.slows_after(40e3);
  scene.load.settle(scene.launch());
  CHECK(scene.preloads(500) == 0);  // straight behind the settling
  // The host waited for 500 us, while nothing was queued.
  CHECK(scene.preloads(500) == 45);
  // It waits no shorter behind the preload, which hides the wait on the device: no rest is seen.
  CHECK(scene.preloads(0) == 0);
}

TEST_CASE("what the host does between two samples is rest for the device as well", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.slows_after(40e3);
  scene.load.settle(scene.launch());
  CHECK(scene.preloads(0, 1000) == 0);
  CHECK(scene.preloads(0, 0) == 90);
}

TEST_CASE("a long pause is made good for 20 ms at most, and a kernel that is longer than that by nothing", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.slows_after(40e3);
  scene.load.settle(scene.launch());
  scene.preloads(1e6);
  CHECK(scene.preloads() == 200);

  Scene longer(LoadMode::sustained, 21e3);
  longer.slows_after(40e3);
  longer.load.settle(longer.launch());
  longer.preloads(1e6);
  CHECK(longer.preloads() == 0);
}

TEST_CASE("where the load leaves the clock as it is, nothing runs before a sample", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.device.mhz = [](double us) { return us > 40e3 ? 0.995 * kFullMhz : kFullMhz; };
  scene.load.settle(scene.launch());
  CHECK(scene.preloads(5e3) == 0);
  CHECK(scene.preloads(5e3) == 0);
}

TEST_CASE("each turn finds anew whether its own variant lowers the clock", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.slows_after(40e3);
  scene.load.settle(scene.launch());
  scene.preloads(500);
  CHECK(scene.preloads(500) > 0);
  scene.load.settle(scene.launch());
  CHECK(scene.preloads(500) == 0);  // the other turn's pauses are over
  CHECK(scene.preloads(500) == 45);
  scene.device.mhz = [](double) { return kFullMhz; };
  scene.load.settle(scene.launch());
  CHECK(scene.preloads(500) == 0);
  CHECK(scene.preloads(500) == 0);
}

TEST_CASE("on the CPU sustained load does nothing", "[load]") {
  Scene scene(LoadMode::sustained, 100);
  scene.device.described.backend = Backend::cpu;
  CHECK_FALSE(scene.load.settles());
  scene.load.settle(scene.launch());
  CHECK(scene.launches == 0);
  CHECK(scene.preloads(5e3) == 0);
  CHECK(scene.preloads(5e3) == 0);
  CHECK(scene.device.longest_rest_us == 5e3);
}

TEST_CASE("while a tool watches nothing runs for the load's sake, and nothing rests", "[load]") {
  for (const LoadMode mode : {LoadMode::sustained, LoadMode::burst}) {
    Scene scene(mode, 2000);
    scene.device.described.watched_by = "compute-sanitizer";
    CHECK_FALSE(scene.load.settles());
    scene.load.settle(scene.launch());
    CHECK(scene.launches == 0);
    CHECK(scene.preloads() == 0);
    const double start = scene.device.now_us;
    CHECK(scene.preloads() == 0);
    CHECK(scene.device.now_us - start == scene.kernel_us);
  }
}

TEST_CASE("in a burst the device rests three times as long as the last sample took, half a second at most", "[load]") {
  Scene scene(LoadMode::burst, 2000);
  CHECK_FALSE(scene.load.settles());
  scene.load.settle(scene.launch());
  CHECK(scene.launches == 0);
  const auto rest_us = [&] {
    const double start = scene.device.now_us;
    CHECK(scene.preloads() == 0);
    return scene.device.now_us - start - scene.kernel_us;
  };
  CHECK(rest_us() == 0);
  CHECK(rest_us() == 6000);
  scene.kernel_us = 400e3;
  CHECK(rest_us() == 6000);
  CHECK(rest_us() == 500e3);
}

TEST_CASE("in a burst the device rests until its clock is back", "[load]") {
  Scene scene(LoadMode::burst, 10e3);
  scene.device.mhz = [](double) { return kFullMhz; };
  scene.preloads();
  CHECK(scene.load.highest_mhz() == kFullMhz);
  // From here on it needs far more than the 30 ms of rest in proportion.
  scene.device.loaded_us = 200e3;
  scene.device.mhz = [](double us) { return us > 10e3 ? kSlowMhz : kFullMhz; };
  const double start = scene.device.now_us;
  scene.load.before_sample(scene.launch());
  CHECK(scene.device.mhz(scene.device.loaded_us) == kFullMhz);
  CHECK(scene.device.now_us - start >= 190e3);
  CHECK(scene.device.now_us - start < 200e3);
}

TEST_CASE("a burst gives up on a clock that does not come back within half a second", "[load]") {
  Scene scene(LoadMode::burst, 10e3);
  scene.device.mhz = [](double) { return kFullMhz; };
  scene.preloads();
  scene.device.mhz = [](double) { return kSlowMhz; };
  const double start = scene.device.now_us;
  scene.load.before_sample(scene.launch());
  CHECK(scene.device.now_us - start == Approx(530e3));
  CHECK(scene.launches == 1);
}
