// Profilers and sanitisers are known by what they inject, and CUPTI alone is none.
#include "harness/attached_tools.h"

#include <map>
#include <string>

#include "tests/catch.h"

using namespace fusebench;

namespace {

using Variables = std::map<std::string, std::string>;

std::string tool_with(const std::string& library, const Variables& variables = {}) {
  std::string maps = "55d0c0000000-55d0c0001000 r-xp 00000000 08:01 11 /home/me/nsight-compute-tests/fusebench\n";
  if (!library.empty()) maps += "7f0000000000-7f0000010000 r-xp 00000000 08:01 12 " + library + "\n";
  maps += "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]";
  return attached_tool(maps, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("no tool is attached to this process, nor is CUPTI one", "[attached_tools]") {
  CHECK(tool_with("").empty());
  CHECK(tool_with("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13").empty());
  CHECK(tool_with("/usr/local/cuda/lib64/libnvperf_host.so").empty());
  CHECK(tool_with("", {{"CUDA_INJECTION64_PATH", ""}}).empty());
  CHECK(attached_tool("", [](const char*) -> const char* { return nullptr; }).empty());
  CHECK(attached_tool().empty());
}

TEST_CASE("injected libraries name their tool", "[attached_tools]") {
  const std::string ncu = "/opt/nvidia/nsight-compute/2025.3.1/target/linux-desktop-glibc_2_11_3-x64/";
  CHECK(tool_with(ncu + "libcuda-injection.so") == "Nsight Compute");
  CHECK(tool_with(ncu + "libTreeLauncherTargetInjection.so") == "Nsight Compute");
  CHECK(tool_with(ncu + "libInterceptorInjectionTarget.so") == "Nsight Compute");
  CHECK(tool_with("/opt/nvidia/nsight-compute/2025.3.1/host/target-linux-x64/libToolsInjection64.so") ==
        "Nsight Systems");
  CHECK(tool_with("/opt/nvidia/nsight-systems/2025.5/target-linux-x64/libToolsInjectionProxy64.so") ==
        "Nsight Systems");
  CHECK(tool_with("/usr/local/cuda-13.0/compute-sanitizer/libsanitizer-collection.so") == "compute-sanitizer");
  CHECK(tool_with("/usr/local/cuda-13.0/compute-sanitizer/libTreeLauncherTargetInjection.so") == "compute-sanitizer");
}

TEST_CASE("before a library is mapped its variable names the tool", "[attached_tools]") {
  CHECK(tool_with("", {{"CUDA_INJECTION64_PATH", "/opt/x/libToolsInjection64.so"}}) == "Nsight Systems");
  CHECK(tool_with("", {{"CUDA_INJECTION64_PATH", "/opt/x/libmine.so"}}) == "a profiler (libmine.so)");
  CHECK(tool_with("", {{"NVTX_INJECTION64_PATH", "libranges.so"}}) == "a profiler (libranges.so)");
  CHECK(tool_with("", {{"NSYS_PROFILING_SESSION_ID", "1"}}) == "Nsight Systems");
  CHECK(tool_with("", {{"NV_TPS_LAUNCH_TOKEN", "x"}}) == "Nsight Compute");
  CHECK(tool_with("/cuda/compute-sanitizer/libsanitizer-public.so", {{"NV_TPS_LAUNCH_TOKEN", "x"}}) ==
        "compute-sanitizer");
}
