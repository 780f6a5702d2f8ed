#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/device.h"
#include "harness/host_memory.h"
#include "harness/mix.h"
#include "harness/parallel.h"
#include "harness/stretches.h"

namespace fusebench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "CPU";
}

std::int64_t last_level_cache_bytes() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return std::max({l3, l2, 1L << 20});
}

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::uint64_t sum_of(const void* data, std::size_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) sum += words[i];
  return sum;
}

class CpuDevice final : public Device {
 public:
  CpuDevice() {
    facts_.name = processor_name();
    facts_.multiprocessors = static_cast<int>(std::thread::hardware_concurrency());
    facts_.l2_bytes = last_level_cache_bytes();
    facts_.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    // A shared server's last-level cache can be hundreds of MiB; more than this only costs time.
    flush_.resize(static_cast<std::size_t>(std::min<std::int64_t>(2 * facts_.l2_bytes, 32 << 20)) /
                  sizeof(std::uint64_t));
  }

  const DeviceFacts& facts() const override { return facts_; }
  Exec exec() const override { return {}; }

  std::int64_t free_bytes() const override { return available_host_bytes(); }

  void* allocate(std::int64_t bytes) override {
    const std::size_t rounded = (static_cast<std::size_t>(bytes) + 255) / 256 * 256;
    void* memory = std::aligned_alloc(256, std::max<std::size_t>(rounded, 256));
    if (memory == nullptr) throw std::runtime_error(fmt::format("aligned_alloc: {} bytes are not available", bytes));
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }
  void copy_in(void* device, const void* host, std::int64_t bytes) override {
    std::memcpy(device, host, static_cast<std::size_t>(bytes));
  }
  void copy_out(void* host, const void* device, std::int64_t bytes) override {
    std::memcpy(host, device, static_cast<std::size_t>(bytes));
  }
  void fill(void* device, std::uint8_t byte, std::int64_t bytes) override {
    std::memset(device, byte, static_cast<std::size_t>(bytes));
  }

  void fill_some(void* device, std::uint8_t byte, std::int64_t bytes, std::uint64_t seed) override {
    for (std::uint64_t i = 0; i < kFilledStretches; ++i) {
      std::byte* stretch = static_cast<std::byte*>(device) + stretch_offset(bytes, seed, i);
      std::memset(stretch, byte, static_cast<std::size_t>(std::min(kStretchBytes, bytes)));
    }
  }

  std::uint64_t checksum(const void* device, std::int64_t bytes) override {
    const auto* data = static_cast<const unsigned char*>(device);
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < bytes; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, data + i, static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - i)));
      sum += mix(word ^ mix(static_cast<std::uint64_t>(i)));
    }
    return sum;
  }

  void flush_cache() override {
    parallel_ranges(words(), kFlushGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) flush_[static_cast<std::size_t>(i)] += 1;
    });
    drain_cache();
  }
  void drain_cache() override {
    parallel_ranges(words(), kFlushGrain, [&](std::int64_t first, std::int64_t last) {
      sink_ = sum_of(flush_.data() + first, static_cast<std::size_t>(last - first) * sizeof(std::uint64_t));
    });
  }
  void synchronize() override {}
  Times time(const std::vector<std::function<void()>>& works, bool /*hold*/) override {
    Times times{.held = true};  // nothing is queued: each piece of work runs when it is called
    for (const std::function<void()>& work : works) {
      const auto start = Clock::now();
      work();
      times.us.push_back(microseconds_since(start));
    }
    return times;
  }
  void transfer(Transfer kind, void* to, const void* from, std::int64_t bytes) override {
    parallel_ranges(bytes, 1 << 20, [&](std::int64_t first, std::int64_t last) {
      const auto size = static_cast<std::size_t>(last - first);
      const auto* source = static_cast<const std::byte*>(from) + first;
      auto* target = static_cast<std::byte*>(to) + first;
      if (kind == Transfer::copy) std::memcpy(target, source, size);
      if (kind == Transfer::write) std::memset(target, 1, size);
      if (kind == Transfer::read) sink_ = sum_of(source, size);
    });
  }
  void launch_empty() override {}
  void launch_delay(double us) override {
    const auto start = Clock::now();
    while (microseconds_since(start) < us) {
    }
  }
  DeviceState state() const override {
    const std::string why = "not read on the CPU";
    const auto unknown = Known<double>::unknown(why);
    return {unknown, unknown, unknown, Known<std::uint64_t>::unknown(why)};
  }
  std::unique_ptr<Counters> open_counters() override {
    throw std::runtime_error("traffic on the CPU is modelled, not counted");
  }
  std::function<void()> capture(const std::function<void()>& /*work*/) override {
    throw Unsupported("graphs exist on CUDA alone");
  }

 private:
  static constexpr std::int64_t kFlushGrain = 1 << 18;
  std::int64_t words() const { return static_cast<std::int64_t>(flush_.size()); }

  DeviceFacts facts_;
  std::vector<std::uint64_t> flush_;
  std::atomic<std::uint64_t> sink_ = 0;
};

}  // namespace

Target Device::target() const {
  const DeviceFacts& f = facts();
  return {.backend = f.backend,
          .compute_capability = f.compute_capability,
          .multiprocessors = f.multiprocessors,
          .l2_bytes = f.l2_bytes};
}

std::unique_ptr<Device> open_cpu_device() { return std::make_unique<CpuDevice>(); }

#if !FUSEBENCH_HAS_CUDA
std::unique_ptr<Device> open_cuda_device(int /*index*/) {
  throw std::runtime_error(
      "this build has no CUDA; configure with FUSEBENCH_CUDA=ON and CUDA 12.8 or later, or use --backend cpu");
}
int cuda_device_count() { return 0; }
std::string why_no_cuda() { return "this build has no CUDA"; }
#endif

}  // namespace fusebench
