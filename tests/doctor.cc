// Each finding from what it judges: what is well, what is worse than it could be, and what cannot do.
#include "harness/doctor.h"

#include <algorithm>
#include <stdexcept>

#include "harness/run.h"
#include "tests/catch.h"
#include "tests/fake_nvml.h"
#include "tests/files.h"

using namespace fusebench;
using namespace fusebench::testing;

namespace {

FakeCard& fresh_card() { return fake_card() = FakeCard(); }

Finding of_card(const std::string& name, const FakeFunctions& functions = fake_functions()) {
  const Nvml nvml(kFakeUuid, looked_up_in(functions));
  for (const Finding& finding : card_findings(nvml)) {
    if (finding.name == name) return finding;
  }
  throw std::logic_error("no finding " + name);
}

void check(const Finding& finding, Health health, const std::string& says) {
  INFO(finding.name << ": " << finding.text << " -> " << finding.remedy);
  CHECK(finding.health == health);
  CHECK_THAT(finding.text, ContainsSubstring(says));
  CHECK(finding.remedy.empty() == (health == Health::ok));
}

DeviceFacts card() {
  return {.backend = Backend::cuda,
          .name = "NVIDIA H200",
          .uuid = kFakeUuid,
          .driver = "13.0",
          .runtime = "12.8",
          .compute_capability = 90,
          .multiprocessors = 132,
          .libraries = {{"cublas", "12.8.4"}}};
}

}  // namespace

TEST_CASE("a card that is well has nothing to do", "[doctor]") {
  fresh_card();
  for (const char* name : {"processes", "mig", "ecc", "persistence", "clocks", "power"}) {
    check(of_card(name), Health::ok, "");
  }
  check(of_card("power"), Health::ok, "412 W now, limit 700 W, temperature 41 C");
  check(of_card("clocks"), Health::ok, "SM at 1980 of 1980 MHz");
}

TEST_CASE("what disturbs a card is a warning with a remedy", "[doctor]") {
  fresh_card().other_process = true;
  check(of_card("processes"), Health::warning, "pid 4711 with 3.00 GiB, pid 4712");
  fresh_card().mig = 1;
  check(of_card("mig"), Health::warning, "slice");
  fresh_card().uncorrected = 2;
  check(of_card("ecc"), Health::warning, "2 errors");
  fresh_card().ecc = 0;
  check(of_card("ecc"), Health::ok, "off");
  fresh_card().persistence = 0;
  check(of_card("persistence"), Health::warning, "off");
  fresh_card().events = kThermalSlowdown;
  check(of_card("clocks"), Health::warning, "thermal slowdown");
  fresh_card().events = kPowerCap;
  check(of_card("clocks"), Health::warning, "power cap");
  fresh_card().events = kClockSetting | kGpuIdle;
  check(of_card("clocks"), Health::ok, "clocks set by a user");
}

TEST_CASE("what NVML does not tell is a warning, never a figure", "[doctor]") {
  for (const auto& [name, function] :
       {std::pair("processes", "nvmlDeviceGetComputeRunningProcesses_v3"), std::pair("ecc", "nvmlDeviceGetEccMode"),
        std::pair("persistence", "nvmlDeviceGetPersistenceMode"),
        std::pair("clocks", "nvmlDeviceGetCurrentClocksEventReasons")}) {
    fresh_card().status[function] = 4;
    check(of_card(name), Health::warning, "not known");
    fresh_card();
    FakeFunctions functions = fake_functions();
    functions.erase(function);
    check(of_card(name, functions), Health::warning, "not known");
  }
  const std::vector<Finding> none = card_findings(Nvml(kFakeUuid, "libfusebench-has-no-such.so.1"));
  REQUIRE(none.size() == 1);
  check(none[0], Health::warning, "libfusebench-has-no-such.so.1");
}

TEST_CASE("without CUDA it says why and what to do", "[doctor]") {
  const std::string no_build = "this build has no CUDA";
  check(cuda_is_missing(no_build, false, false), Health::warning, "rows run on the CPU");
  check(cuda_is_missing(no_build, false, true), Health::missing, no_build);
  CHECK_THAT(cuda_is_missing(no_build, true, false).remedy, ContainsSubstring("build again"));
  const std::string no_driver =
      "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version";
  CHECK_THAT(cuda_is_missing(no_driver, false, false).remedy, ContainsSubstring("no NVIDIA driver"));
  CHECK_THAT(cuda_is_missing(no_driver, true, false).remedy, ContainsSubstring("newer driver"));
  const std::string no_device = "cudaErrorNoDevice: no CUDA-capable device is detected";
  CHECK_THAT(cuda_is_missing(no_device, true, false).remedy, ContainsSubstring("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("a device that is too old is missing, one that is not has its facts told", "[doctor]") {
  check(device_finding(card()), Health::ok, "NVIDIA H200, sm_90, 132 multiprocessors");
  DeviceFacts old = card();
  old.compute_capability = 75;
  check(device_finding(old), Health::missing, "sm_75");
  check(driver_finding(card(), std::string("580.65.06")), Health::ok, "580.65.06, CUDA 13.0, runtime 12.8");
  check(driver_finding(card(), Known<std::string>::unknown("no library")), Health::warning, "no library");
  check(libraries_finding(card()), Health::ok, "cublas 12.8.4");
}

TEST_CASE("refused counters are a warning that knows the driver's setting", "[doctor]") {
  check(counters_finding([] {}, "", false), Health::ok, "");
  const auto refused = [] { throw std::runtime_error("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"); };
  const char* admin_only = "RmMsg: \"\"\nRmProfilingAdminOnly: 1\n";
  check(counters_finding(refused, admin_only, false), Health::warning, "INSUFFICIENT_PRIVILEGES");
  CHECK_THAT(counters_finding(refused, admin_only, false).remedy,
             ContainsSubstring("NVreg_RestrictProfilingToAdminUsers=0"));
  CHECK_THAT(counters_finding(refused, admin_only, true).remedy, ContainsSubstring("SYS_ADMIN"));
  CHECK_THAT(counters_finding(refused, "RmProfilingAdminOnly: 0", false).remedy, !ContainsSubstring("root"));
}

TEST_CASE("ceilings are told, or why there are none", "[doctor]") {
  Ceilings ceilings;
  ceilings.copy_gbps = 4180.0;
  ceilings.read_gbps = 4500.0;
  ceilings.write_gbps = 4300.0;
  ceilings.gemm_tflops[DType::fp16] = 780.0;
  check(ceilings_finding(ceilings), Health::ok, "copy 4180 GB/s, read 4500 GB/s, write 4300 GB/s, fp16 780 TFLOP/s");
  ceilings.gemm_tflops[DType::bf16] = Known<double>::unknown("no memory");
  check(ceilings_finding(ceilings), Health::warning, "bf16 is not known: no memory");
  ceilings.not_probed = "not probed: Nsight Compute is attached";
  check(ceilings_finding(ceilings), Health::warning, ceilings.not_probed);
}

TEST_CASE("memory, tools and attached tools", "[doctor]") {
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  check(device_memory_finding(139 * kGib, 140 * kGib), Health::ok, "139.0 of 140.0 GiB");
  check(device_memory_finding(10 * kGib, 140 * kGib), Health::warning, "10.0 of 140.0 GiB");
  check(host_memory_finding(64 * kGib), Health::ok, "64.0 GiB");
  check(host_memory_finding(kGib), Health::warning, "1.0 GiB");
  check(attached_finding(""), Health::ok, "no profiler");
  check(attached_finding("Nsight Compute"), Health::warning, "Nsight Compute is attached");

  const TempFolder folder;
  const std::filesystem::path program = folder.write("ncu", "#!/bin/sh\n");
  const std::string path = "/nonexistent::" + folder.path().string();
  check(program_finding("ncu", path, "x"), Health::warning, "not on PATH");  // not executable
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  check(program_finding("ncu", path, "x"), Health::ok, program.string());
  check(program_finding("ncu", "", "x"), Health::warning, "not on PATH");
}

TEST_CASE("what is missing decides the exit code", "[doctor]") {
  CHECK(exit_code_of(std::vector<Finding>()) == kPassed);
  CHECK(exit_code_of({{.name = "a", .health = Health::warning}}) == kPassed);
  CHECK(exit_code_of({{.name = "a"}, {.name = "b", .health = Health::missing}}) == kDidNotRun);
}
