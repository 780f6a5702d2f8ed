#include "harness/attached_tools.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace fusebench {
namespace {

constexpr const char* kCompute = "Nsight Compute";
constexpr const char* kSystems = "Nsight Systems";
constexpr const char* kSanitizer = "compute-sanitizer";

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

std::string_view file_of(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

// The launcher that Nsight Compute and compute-sanitizer share is told apart by where it lies.
std::string owner_of_launcher(std::string_view path) {
  if (path.find("sanitizer") != std::string_view::npos) return kSanitizer;
  if (path.find("nsight-systems") != std::string_view::npos) return kSystems;
  return kCompute;
}

// CUPTI is none of these: fusebench reads its counters through it.
std::string tool_of_library(std::string_view path) {
  const std::string_view file = file_of(path);
  for (const auto& [start, tool] :
       {std::pair("libsanitizer-collection", kSanitizer), std::pair("libsanitizer-public", kSanitizer),
        std::pair("libToolsInjection", kSystems), std::pair("libcuda-injection", kCompute)}) {
    if (starts_with(file, start)) return tool;
  }
  if (starts_with(file, "libTreeLauncher") || starts_with(file, "libInterceptorInjection")) {
    return owner_of_launcher(path);
  }
  return {};
}

std::string tool_in_maps(std::string_view maps) {
  while (!maps.empty()) {
    const std::size_t end = maps.find('\n');
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(end == std::string_view::npos ? maps.size() : end + 1);
    const std::size_t path = line.find('/');
    if (path == std::string_view::npos) continue;
    std::string tool = tool_of_library(line.substr(path));
    if (!tool.empty()) return tool;
  }
  return {};
}

std::string tool_in_environment(const Environment& environment) {
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string_view(text != nullptr ? text : "");
  };
  // Any library may be named here: one that we do not know still watches.
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    const std::string_view library = value(name);
    if (library.empty()) continue;
    std::string tool = tool_of_library(library);
    return tool.empty() ? "a profiler (" + std::string(file_of(library)) + ")" : tool;
  }
  for (const auto& [name, tool] :
       {std::pair("NSYS_PROFILING_SESSION_ID", kSystems), std::pair("NV_SANITIZER_INJECTION_PORT_BASE", kSanitizer),
        std::pair("NV_NSIGHT_INJECTION_TRANSPORT_TYPE", kCompute), std::pair("NV_TPS_LAUNCH_TOKEN", kCompute)}) {
    if (!value(name).empty()) return tool;
  }
  return {};
}

}  // namespace

std::string attached_tool(std::string_view maps, const Environment& environment) {
  std::string tool = tool_in_maps(maps);
  return tool.empty() ? tool_in_environment(environment) : tool;
}

std::string attached_tool() {
  std::ifstream file("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator<char>(file), {}};
  return attached_tool(maps, [](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace fusebench
