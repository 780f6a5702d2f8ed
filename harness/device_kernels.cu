#include <cuda_runtime.h>

#include "harness/device_kernels.h"
#include "harness/mix.h"

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

}  // namespace

void launch_checksum(const void* data, std::int64_t bytes, unsigned long long* sum, int blocks, Stream stream) {
  checksum_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const unsigned char*>(data), bytes, sum);
}

void launch_write(void* data, std::int64_t bytes, unsigned value, int blocks, Stream stream) {
  write_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<uint4*>(data), bytes / 16, value);
}

void launch_read(const void* data, std::int64_t bytes, unsigned* sink, int blocks, Stream stream) {
  read_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint4*>(data), bytes / 16, sink);
}

}  // namespace fusebench
