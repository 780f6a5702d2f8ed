#include "harness/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "harness/mutants.h"

namespace fusebench {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t machine_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) return std::strtoll(line.c_str() + 13, nullptr, 10) * 1024;
  }
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

// What a container leaves, by either version of control groups; kMost without a limit.
std::int64_t group_bytes(const char* limit_file, const char* used_file) {
  std::int64_t limit = 0;
  std::int64_t used = 0;
  if (!(std::ifstream(limit_file) >> limit) || !(std::ifstream(used_file) >> used)) return kMost;
  return std::max<std::int64_t>(limit - used, 0);
}

}  // namespace

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMost : sum;
}

std::int64_t available_host_bytes() {
  return std::min(
      {machine_bytes(), group_bytes("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
       group_bytes("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")});
}

std::int64_t host_bytes_needed(const Case& c, const OpSpec& spec, const VerifyRows& verify, bool prove) {
  // A checked value: expected and replica in double, and once more while the cache writes or reads them.
  constexpr double kValueBytes = 40;
  // A mutant's value is exact alone; while all are computed they stand once in the reference and once outside.
  const double wrong_bytes = prove ? 16 * static_cast<double>(mistakes_of(c).size() + 1) : 0;
  constexpr double kLaneBytes = 16;  // the oracle's intermediates: a double each for the exact lane and the replica
  const auto rows = static_cast<double>(most_rows(c, verify));
  const auto tokens = static_cast<double>(c.tokens());
  double bytes = rows * sizeof(std::int64_t) + tokens * sizeof(double);
  for (const TensorSpec& tensor : spec.tensors) {
    const auto all = static_cast<double>(tensor.bytes());
    if (tensor.role != Role::output) bytes += prove ? 2 * all : all;
    if (tensor.role == Role::input) continue;
    bytes += (prove ? 4 : 2) * tokens * static_cast<double>(tensor.cols * bytes_of(tensor.dtype));
    bytes += rows * static_cast<double>(tensor.cols) * (kValueBytes + wrong_bytes);
  }
  if (c.op == Op::block) {
    const auto kv_dim = static_cast<double>(c.kv_heads * c.head_dim());
    bytes += kLaneBytes * (2 * static_cast<double>(c.batch * c.keys()) * kv_dim +
                           rows * static_cast<double>(4 * c.dim + 3 * c.hidden)) +
             rows * 2 * kv_dim * wrong_bytes;
  }
  return bytes < 0x1p62 ? static_cast<std::int64_t>(bytes) : kMost;
}

}  // namespace fusebench
