#include "harness/list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "harness/config.h"
#include "harness/device.h"
#include "variants/registry.h"

namespace fusebench {
namespace {

void print_variants(Backend backend) {
  if (registry().names(backend).empty()) {
    fmt::print("variants on {}: none in this build\n", name_of(backend));
    return;
  }
  fmt::print("variants on {}:\n", name_of(backend));
  for (const Op op : kOps) {
    std::vector<std::string> parts;
    for (const Variant* variant : registry().all(op, backend)) {
      std::vector<std::string_view> dtypes;
      for (const DType dtype : variant->dtypes) dtypes.push_back(name_of(dtype));
      parts.push_back(fmt::format("{} ({})", variant->name, fmt::join(dtypes, ", ")));
    }
    fmt::print("  {:<12} {}\n", name_of(op), fmt::join(parts, "; "));
  }
}

void print_device(Device& device) {
  const DeviceFacts& f = device.facts();
  fmt::print("  {}: {}, {:.1f} GiB{}\n", name_of(f.backend), f.name, static_cast<double>(f.memory_bytes) / (1 << 30),
             f.backend == Backend::cuda ? fmt::format(", sm_{}, driver {}", f.compute_capability, f.driver) : "");
  for (const std::string& warning : f.warnings) fmt::print("    warning: {}\n", warning);
}

}  // namespace

void print_list() {
  print_variants(Backend::cuda);
  print_variants(Backend::cpu);
  fmt::print("models:\n");
  for (const Model& m : load_models()) {
    fmt::print("  {:<14} dim {}, hidden {}, heads {}, kv_heads {}, rope {} theta {:g}, {}\n", m.name, m.dim, m.hidden,
               m.heads, m.kv_heads, name_of(m.rope), m.rope_theta, m.causal ? "causal" : "not causal");
  }
  fmt::print("devices:\n");
  print_device(*open_cpu_device());
  for (int i = 0; i < cuda_device_count(); ++i) print_device(*open_cuda_device(i));
}

}  // namespace fusebench
