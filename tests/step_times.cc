// Each step's time, in its place and alone: medians over rounds, of which there are fewer where they take long.
#include "harness/step_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/bound.h"
#include "tests/catch.h"
#include "tests/fake_device.h"

using namespace fusebench;
using testing::BoundSteps;
using testing::FakeDevice;

namespace {

constexpr double kNoLimit = 1e9;

// Two steps, a and b, whose n-th launches take so long.
struct Scene {
  FakeDevice device;
  std::function<double(int)> a_us, b_us;
  int a_launches = 0;
  int b_launches = 0;
  Load load{device, LoadMode::sustained, device.host_time()};
  BoundSteps steps{device,
                   {{"a",
                     [this] {
                       device.log.emplace_back("a");
                       device.busy(a_us(a_launches++));
                     }},
                    {"b", [this] {
                       device.log.emplace_back("b");
                       device.busy(b_us(b_launches++));
                     }}}};

  Scene() {
    device.described.backend = Backend::cpu;  // nothing to settle
    a_us = b_us = [](int) { return 1.0; };
  }
  StepTimes time(CacheMode mode, double max_seconds = kNoLimit) {
    return time_steps(device, load, steps.plan(), mode, max_seconds, [this] { return device.now_us * 1e-6; });
  }
  std::string log_of_round(std::size_t entries) const {
    return fmt::format("{}", fmt::join(device.log.begin(), device.log.begin() + static_cast<int>(entries), " "));
  }
};

}  // namespace

TEST_CASE("cold: steps in place run behind one flush, each alone behind its own", "[step_times]") {
  Scene scene;
  // Of each step's launches every first is in place and every second alone; both get longer from round to round, and
  // one round is disturbed.
  scene.a_us = [](int n) { return n % 2 == 0 ? 10 + n / 2 : n == 1 ? 1e4 : 100 + n / 2; };
  scene.b_us = [](int n) { return n % 2 == 0 ? 20 + n : 7; };
  const StepTimes times = scene.time(CacheMode::cold);
  CHECK(scene.log_of_round(7) == "flush a b flush a flush b");
  REQUIRE(scene.a_launches == 2 * 11);
  CHECK(scene.device.log.size() == 7 * 11);
  CHECK(times.in_place_us == std::vector<double>{15, 30});
  CHECK(times.alone_us == std::vector<double>{106, 7});
}

TEST_CASE("a step alone pays for the cold cache, and so does the first in place", "[step_times]") {
  Scene scene;
  scene.device.cold_extra_us = 50;
  const StepTimes times = scene.time(CacheMode::cold);
  CHECK(times.in_place_us == std::vector<double>{51, 1});
  CHECK(times.alone_us == std::vector<double>{51, 51});
}

TEST_CASE("hot: what is timed runs behind an untimed launch of the same", "[step_times]") {
  Scene scene;
  // A round launches a step four times: with the whole plan, in place, to warm, and alone.
  scene.a_us = [](int n) { return n % 4 == 1 ? 10 : n % 4 == 3 ? 12 : 1000; };
  scene.b_us = [](int n) { return n % 4 == 1 ? 20 : n % 4 == 3 ? 22 : 1000; };
  const StepTimes times = scene.time(CacheMode::hot);
  CHECK(scene.log_of_round(8) == "a b a b a a b b");
  CHECK(times.in_place_us == std::vector<double>{10, 20});
  CHECK(times.alone_us == std::vector<double>{12, 22});
}

TEST_CASE("where rounds take long there are fewer, and steps are timed alone but once", "[step_times]") {
  Scene scene;
  scene.a_us = scene.b_us = [](int) { return 0.25e6; };  // a second a round
  const StepTimes few = scene.time(CacheMode::cold, 0.1);
  CHECK(scene.a_launches == 3 + 1);
  CHECK(few.in_place_us == std::vector<double>{0.25e6, 0.25e6});
  CHECK(few.alone_us == std::vector<double>{0.25e6, 0.25e6});

  scene.a_launches = 0;
  scene.time(CacheMode::cold, 5.75);
  CHECK(scene.a_launches == 2 * 6);

  scene.a_launches = 0;
  scene.time(CacheMode::cold, 20);
  CHECK(scene.a_launches == 2 * 11);
}

TEST_CASE("steps are timed under the load that samples are", "[step_times]") {
  Scene scene;
  scene.device.described.backend = Backend::cuda;
  scene.a_us = scene.b_us = [](int) { return 1000.0; };
  scene.device.mhz = [](double loaded_us) { return loaded_us > 40e3 ? 1500.0 : 1980.0; };
  scene.time(CacheMode::cold);
  const auto first_flush = std::find(scene.device.log.begin(), scene.device.log.end(), "flush");
  CHECK(first_flush - scene.device.log.begin() >= 50);  // 50 ms of launches of 1 ms
  CHECK(scene.device.loaded_us > 50e3);
}
