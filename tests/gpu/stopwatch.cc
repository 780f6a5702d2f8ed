// The stopwatch against kernels whose own time is known: those that spin for so long, by the device's clock.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "harness/attached_tools.h"
#include "harness/device.h"
#include "harness/sampler.h"
#include "harness/statistics.h"
#include "tests/catch.h"
#include "tests/skip.h"

namespace {

using namespace fusebench;

double median_us(Device& device, const std::function<void()>& work) {
  std::vector<double> us;
  for (int i = 0; i < 31; ++i) us.push_back(device.time({work}, i > 0).us.front());
  return median(us);
}

// Times under a tool are its own.
bool skipped() {
  return (cuda_device_count() == 0 && fusebench::testing::skip("no CUDA device")) ||
         (!attached_tool().empty() && fusebench::testing::skip("a profiler or sanitiser is attached"));
}

}  // namespace

TEST_CASE("a kernel's time is what it spins for, whatever the host does meanwhile", "[gpu][stopwatch]") {
  if (skipped()) return;
  const auto device = open_cuda_device(0);
  const double empty_us = median_us(*device, [&] { device->launch_empty(); });
  std::printf("events alone %.2f us, around an empty launch %.2f us\n", median_us(*device, [] {}), empty_us);
  for (const double us : {5.0, 20.0, 100.0, 1000.0}) {
    const double timed_us = median_us(*device, [&] { device->launch_delay(us); });
    std::printf("spinning for %.0f us: %.2f us\n", us, timed_us);
    CHECK(std::abs(timed_us - empty_us - us) < 0.25 + 0.01 * us);
  }
}

TEST_CASE("launches are back to back when the stream is held", "[gpu][stopwatch]") {
  if (skipped()) return;
  const auto device = open_cuda_device(0);
  device->time({[&] { device->launch_delay(5); }}, false);
  // A host that dawdles between launches, as one does that plans them.
  const auto dawdle = [&] {
    for (int i = 0; i < 10; ++i) {
      device->launch_delay(5);
      const double end = 20e-6 + steady_seconds();
      while (steady_seconds() < end) {
      }
    }
  };
  const Times held = device->time({dawdle}, true);
  const Times free = device->time({dawdle}, false);
  CHECK(held.held);
  CHECK(held.us.front() < 90);
  CHECK(free.us.front() > 190);
  CHECK(held.sm_mhz > 100);
}

TEST_CASE("work that waits for the device is let go, and the time says so", "[gpu][stopwatch]") {
  if (cuda_device_count() == 0 && fusebench::testing::skip("no CUDA device")) return;
  const auto device = open_cuda_device(0);
  const Times times = device->time({[&] { device->synchronize(); }}, true);
  CHECK_FALSE(times.held);
}
