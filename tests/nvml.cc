// NVML by a library of the test's own: every figure in its unit, and a reason for every one that is not there.
#include "harness/nvml.h"

#include "tests/catch.h"
#include "tests/fake_nvml.h"

using namespace fusebench;
using namespace fusebench::testing;

namespace {

FakeCard& fresh_card() { return fake_card() = FakeCard(); }

}  // namespace

TEST_CASE("figures come in their units", "[nvml]") {
  fresh_card();
  const Nvml nvml(kFakeUuid, looked_up_in(fake_functions()));
  REQUIRE(nvml.missing().empty());
  CHECK(nvml.sm_mhz().value == 1980.0);
  CHECK(nvml.max_sm_mhz().value == 1980.0);
  CHECK(nvml.memory_mhz().value == 2619.0);
  CHECK(nvml.max_memory_mhz().value == 2619.0);
  CHECK(nvml.power_w().value == 412.5);
  CHECK(nvml.power_limit_w().value == 700.0);
  CHECK(nvml.energy_mj().value == 123456789.0);
  CHECK(nvml.temperature_c().value == 41.0);
  CHECK(nvml.clock_events().value == 0U);
  CHECK(nvml.driver().value == "580.65.06");
  CHECK(nvml.ecc().value == true);
  CHECK(nvml.uncorrected_ecc_errors().value == 0);
  CHECK(nvml.mig().value == false);
  CHECK(nvml.persistence().value == true);
  REQUIRE(nvml.other_processes().value);
  CHECK(nvml.other_processes().value->empty());
}

TEST_CASE("what was started is stopped", "[nvml]") {
  FakeCard& card = fresh_card();
  { const Nvml nvml(kFakeUuid, looked_up_in(fake_functions())); }
  { const Nvml unknown("GPU-none", looked_up_in(fake_functions())); }
  CHECK(card.starts == 2);
  CHECK(card.stops == 2);
}

TEST_CASE("power of this moment is preferred, and an average taken where there is none", "[nvml]") {
  FakeCard& card = fresh_card();
  card.instant_power = false;
  CHECK(Nvml(kFakeUuid, looked_up_in(fake_functions())).power_w().value == 412.0);
  FakeFunctions old = fake_functions();
  old.erase("nvmlDeviceGetFieldValues");
  CHECK(Nvml(kFakeUuid, looked_up_in(old)).power_w().value == 412.0);
}

TEST_CASE("other processes are told without our own", "[nvml]") {
  fresh_card().other_process = true;
  const auto others = Nvml(kFakeUuid, looked_up_in(fake_functions())).other_processes();
  REQUIRE(others.value);
  REQUIRE(others.value->size() == 2);
  CHECK(others.value->at(0).pid == 4711);
  CHECK(others.value->at(0).memory_bytes.value == std::int64_t{3} << 30);
  CHECK_FALSE(others.value->at(1).memory_bytes.value);
}

TEST_CASE("a function that the driver lacks costs its own figure alone", "[nvml]") {
  fresh_card();
  for (const auto& [name, function] : fake_functions()) {
    if (name == "nvmlInit_v2" || name == "nvmlDeviceGetHandleByUUID") continue;
    FakeFunctions functions = fake_functions();
    functions.erase(name);
    const Nvml nvml(kFakeUuid, looked_up_in(functions));
    INFO(name);
    CHECK(nvml.missing().empty());
    CHECK(nvml.sm_mhz().value.has_value() == (name != "nvmlDeviceGetClockInfo"));
    if (name == "nvmlDeviceGetClockInfo") CHECK_THAT(nvml.sm_mhz().reason, ContainsSubstring(name));
    CHECK(nvml.ecc().value.has_value() == (name != "nvmlDeviceGetEccMode"));
    CHECK(nvml.other_processes().value.has_value() == (name != "nvmlDeviceGetComputeRunningProcesses_v3"));
  }
  FakeFunctions old = fake_functions();
  old["nvmlDeviceGetCurrentClocksThrottleReasons"] = old["nvmlDeviceGetCurrentClocksEventReasons"];
  old.erase("nvmlDeviceGetCurrentClocksEventReasons");
  fake_card().events = kPowerCap;
  CHECK(Nvml(kFakeUuid, looked_up_in(old)).clock_events().value == kPowerCap);
}

TEST_CASE("a refusal is told in NVML's words", "[nvml]") {
  FakeCard& card = fresh_card();
  card.status = {{"nvmlDeviceGetComputeRunningProcesses_v3", 4}, {"nvmlDeviceGetTotalEnergyConsumption", 3}};
  const Nvml nvml(kFakeUuid, looked_up_in(fake_functions()));
  CHECK(nvml.other_processes().reason == "nvmlDeviceGetComputeRunningProcesses_v3: Insufficient Permissions");
  CHECK(nvml.energy_mj().reason == "nvmlDeviceGetTotalEnergyConsumption: Not Supported");
  FakeFunctions wordless = fake_functions();
  wordless.erase("nvmlErrorString");
  CHECK_THAT(Nvml(kFakeUuid, looked_up_in(wordless)).energy_mj().reason, ContainsSubstring("error 3"));
}

TEST_CASE("no library, no driver and no such card are reasons, not failures", "[nvml]") {
  FakeCard& card = fresh_card();
  const Nvml no_library(kFakeUuid, "libfusebench-has-no-such.so.1");
  CHECK_THAT(no_library.missing(), ContainsSubstring("libfusebench-has-no-such.so.1"));
  CHECK(no_library.sm_mhz().reason == no_library.missing());
  CHECK(no_library.other_processes().reason == no_library.missing());

  CHECK_THAT(Nvml("GPU-none", looked_up_in(fake_functions())).missing(), ContainsSubstring("GPU-none"));
  CHECK_THAT(Nvml("", looked_up_in(fake_functions())).missing(), ContainsSubstring("UUID"));
  CHECK_THAT(Nvml(kFakeUuid, looked_up_in({})).missing(), ContainsSubstring("nvmlInit_v2"));
  card.init_status = 9;
  const Nvml no_driver(kFakeUuid, looked_up_in(fake_functions()));
  CHECK_THAT(no_driver.missing(), ContainsSubstring("nvmlInit_v2"));
  CHECK(no_driver.power_w().reason == no_driver.missing());
}

TEST_CASE("a MIG slice is found by the UUID that CUDA gives it", "[nvml]") {
  fresh_card().uuid = "MIG-00112233-4455-6677-8899-aabbccddeeff";
  CHECK(Nvml(kFakeUuid, looked_up_in(fake_functions())).missing().empty());
}

TEST_CASE("clock events are told in words", "[nvml]") {
  CHECK(clock_event_words(0) == "none");
  CHECK(clock_event_words(kPowerCap | kThermalSlowdown) == "power cap, thermal slowdown");
  CHECK(clock_event_words(kGpuIdle | 0x1000) == "idle, 0x1000");
  CHECK((kThrottleEvents & kGpuIdle) == 0);
}
