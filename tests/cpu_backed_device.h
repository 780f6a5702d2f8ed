// A device for tests whose memory and arithmetic are the CPU's.
#pragma once

#include <memory>

#include "harness/device.h"

namespace fusebench::testing {

class CpuBackedDevice : public Device {
 public:
  void* allocate(std::int64_t bytes) override { return cpu_->allocate(bytes); }
  void release(void* memory) noexcept override { cpu_->release(memory); }
  void copy_in(void* device, const void* host, std::int64_t bytes) override { cpu_->copy_in(device, host, bytes); }
  void copy_out(void* host, const void* device, std::int64_t bytes) override { cpu_->copy_out(host, device, bytes); }
  void fill(void* device, std::uint8_t byte, std::int64_t bytes) override { cpu_->fill(device, byte, bytes); }
  void fill_some(void* device, std::uint8_t byte, std::int64_t bytes, std::uint64_t seed) override {
    cpu_->fill_some(device, byte, bytes, seed);
  }
  std::uint64_t checksum(const void* device, std::int64_t bytes) override { return cpu_->checksum(device, bytes); }

 protected:
  std::unique_ptr<Device> cpu_ = open_cpu_device();
};

}  // namespace fusebench::testing
