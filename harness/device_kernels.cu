#include <cuda_runtime.h>

#include "harness/device_kernels.h"
#include "harness/mix.h"
#include "harness/stretches.h"

namespace fusebench {
namespace {

constexpr int kThreads = 512;

// One word of eight bytes a thread and turn, from any base; the sum does not depend on the order of the additions.
__global__ void checksum_kernel(const unsigned char* data, long long bytes, unsigned long long* sum) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x * 8;
  const bool aligned = reinterpret_cast<unsigned long long>(data) % 8 == 0;
  unsigned long long mine = 0;
  for (long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * 8; i < bytes; i += stride) {
    unsigned long long word = 0;
    if (aligned && i + 8 <= bytes) {
      word = *reinterpret_cast<const unsigned long long*>(data + i);
    } else {
      for (long long b = i; b < min(i + 8, bytes); ++b)
        word |= static_cast<unsigned long long>(data[b]) << (8 * (b - i));
    }
    mine += mix(word ^ mix(static_cast<unsigned long long>(i)));
  }
  atomicAdd(sum, mine);
}

__global__ void fill_some_kernel(unsigned char* data, unsigned char byte, long long bytes, unsigned long long seed) {
  unsigned char* stretch = data + stretch_offset(bytes, seed, blockIdx.x);
  if (threadIdx.x < bytes) stretch[threadIdx.x] = byte;
}

__global__ void write_kernel(uint4* data, long long words, unsigned value) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    data[i] = make_uint4(value, value, value, value);
  }
}

// The sum is stored only when it takes a value that zeros cannot have, so that the loads are not optimised away.
__global__ void read_kernel(const uint4* data, long long words, unsigned* sink) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    const uint4 v = data[i];
    sum |= v.x | v.y | v.z | v.w;
  }
  if (sum != 0) *sink = sum;
}

__global__ void empty_kernel() {}

__device__ unsigned long long device_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__device__ void spin(unsigned long long ns) {
  const unsigned long long start = device_ns();
  while (device_ns() - start < ns) {
  }
}

__global__ void delay_kernel(unsigned long long ns) { spin(ns); }

__global__ void hold_kernel(const volatile unsigned* released, unsigned ticket, volatile unsigned* timed_out,
                            unsigned long long timeout_ns) {
  const unsigned long long start = device_ns();
  while (*released != ticket) {
    if (device_ns() - start < timeout_ns) continue;
    *timed_out = ticket;
    return;
  }
}

__global__ void stamp_kernel(ClockStamp* stamps, unsigned long long spin_ns) {
  spin(spin_ns);
  unsigned multiprocessor;
  asm volatile("mov.u32 %0, %smid;" : "=r"(multiprocessor));
  stamps[multiprocessor] = {static_cast<unsigned long long>(clock64()), device_ns()};
}

unsigned long long ns_of(double us) { return static_cast<unsigned long long>(us * 1e3); }

}  // namespace

void launch_checksum(const void* data, std::int64_t bytes, unsigned long long* sum, int blocks, Stream stream) {
  checksum_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const unsigned char*>(data), bytes, sum);
}

void launch_fill_some(void* data, std::uint8_t byte, std::int64_t bytes, std::uint64_t seed, Stream stream) {
  if (bytes <= 0) return;
  fill_some_kernel<<<kFilledStretches, kStretchBytes, 0, stream>>>(static_cast<unsigned char*>(data), byte, bytes,
                                                                   seed);
}

void launch_write(void* data, std::int64_t bytes, unsigned value, int blocks, Stream stream) {
  write_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<uint4*>(data), bytes / 16, value);
}

void launch_read(const void* data, std::int64_t bytes, unsigned* sink, int blocks, Stream stream) {
  read_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint4*>(data), bytes / 16, sink);
}

void launch_empty(Stream stream) { empty_kernel<<<1, 1, 0, stream>>>(); }

void launch_delay(double us, Stream stream) { delay_kernel<<<1, 1, 0, stream>>>(ns_of(us)); }

void launch_hold(const unsigned* released, unsigned ticket, unsigned* timed_out, double timeout_us, Stream stream) {
  hold_kernel<<<1, 1, 0, stream>>>(released, ticket, timed_out, ns_of(timeout_us));
}

void launch_stamp(ClockStamp* stamps, int multiprocessors, double spin_us, Stream stream) {
  stamp_kernel<<<multiprocessors, 1, 0, stream>>>(stamps, ns_of(spin_us));
}

}  // namespace fusebench
