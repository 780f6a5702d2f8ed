// What tests on a device share: whether there is one, buffers whose surroundings are watched, and 16-bit values on the
// host. A test begins with `if (skip_without_device()) return;`, and the program says at its end how many did.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/device.cuh"
#include "kernels/fused.h"
#include "tests/skip.h"

namespace fusebench::testing {

/// False where there is no GPU or no driver for it; any other trouble throws.
inline bool has_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  FUSEBENCH_CUDA_CHECK(status);
  return count > 0;
}

/// True, said and counted, where a test cannot run.
inline bool skip_without_device() { return !has_device() && skip("no CUDA device"); }

/// What is built for sm_90a runs on compute capability 9.0 alone.
inline bool has_hopper() {
  cudaDeviceProp properties{};
  FUSEBENCH_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return properties.major == 9 && properties.minor == 0;
}

inline bool skip_without_hopper() {
  return skip_without_device() || (!has_hopper() && skip("no device of compute capability 9.0"));
}

inline bool skip_without_memory(std::int64_t bytes) {
  std::size_t free = 0, total = 0;
  FUSEBENCH_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free < static_cast<std::size_t>(bytes) && skip("too little device memory");
}

/// `count` elements in an allocation of their own. They start `offset` elements past a 256-byte boundary; `guard`
/// elements lie before and after. All of it begins as 0xff bytes: NaN in every floating-point type. Inputs take no
/// guard, so that compute-sanitizer sees the first element read past the end.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::int64_t count, std::int64_t offset = 0, std::int64_t guard = 0)
      : count_(count), lead_(offset + guard), tail_(guard) {
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&base_, bytes()));
    FUSEBENCH_CUDA_CHECK(cudaMemset(base_, 0xff, bytes()));
  }
  explicit DeviceBuffer(const std::vector<T>& values, std::int64_t offset = 0, std::int64_t guard = 0)
      : DeviceBuffer(static_cast<std::int64_t>(values.size()), offset, guard) {
    FUSEBENCH_CUDA_CHECK(cudaMemcpy(data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), count_(other.count_), lead_(other.lead_), tail_(other.tail_) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() { static_cast<void>(cudaFree(base_)); }

  T* data() { return static_cast<T*>(base_) + lead_; }
  const T* data() const { return static_cast<const T*>(base_) + lead_; }
  std::int64_t count() const { return count_; }

  /// The elements, after all work on the device has ended.
  std::vector<T> read() const {
    const std::vector<T> all = read_all();
    return std::vector<T>(all.begin() + lead_, all.begin() + lead_ + count_);
  }

  /// Elements first to first + n - 1, after all work on the device has ended.
  std::vector<T> read(std::int64_t first, std::int64_t n) const {
    std::vector<T> part(static_cast<std::size_t>(n));
    FUSEBENCH_CUDA_CHECK(cudaDeviceSynchronize());
    FUSEBENCH_CUDA_CHECK(cudaMemcpy(part.data(), data() + first, part.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return part;
  }

  /// Sets every element to zero bits.
  void clear() { FUSEBENCH_CUDA_CHECK(cudaMemset(data(), 0, static_cast<std::size_t>(count_) * sizeof(T))); }

  /// Whether nothing around the elements has changed.
  bool guards_intact() const {
    const std::vector<T> all = read_all();
    return untouched(all.data(), lead_) && untouched(all.data() + lead_ + count_, tail_);
  }

  /// Whether `n` elements from `values` still are as a fresh buffer's.
  static bool untouched(const T* values, std::int64_t n) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values);
    for (std::int64_t i = 0; i < n * static_cast<std::int64_t>(sizeof(T)); ++i) {
      if (bytes[i] != 0xff) return false;
    }
    return true;
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(lead_ + count_ + tail_) * sizeof(T); }

  std::vector<T> read_all() const {
    std::vector<T> all(static_cast<std::size_t>(lead_ + count_ + tail_));
    FUSEBENCH_CUDA_CHECK(cudaDeviceSynchronize());
    FUSEBENCH_CUDA_CHECK(cudaMemcpy(all.data(), base_, bytes(), cudaMemcpyDeviceToHost));
    return all;
  }

  void* base_ = nullptr;
  std::int64_t count_;
  std::int64_t lead_;
  std::int64_t tail_;
};

/// Memory for the part sums of any product that may split k.
inline DeviceBuffer<float> part_sums_buffer() {
  return DeviceBuffer<float>(kernels::part_sums_bytes(kernels::multiprocessors(), 1, 1) / sizeof(float));
}

constexpr std::int64_t output_guard = 128;  ///< elements: 256 bytes of a 16-bit type, so that alignment is kept

template <typename T>
struct Format;
template <>
struct Format<__half> {
  static constexpr DType dtype = DType::fp16;
  static constexpr double unit_roundoff = 0x1p-11, smallest = 0x1p-24;
};
template <>
struct Format<__nv_bfloat16> {
  static constexpr DType dtype = DType::bf16;
  static constexpr double unit_roundoff = 0x1p-8, smallest = 0x1p-133;
};
template <>
struct Format<float> {
  static constexpr DType dtype = DType::fp32;
  static constexpr double unit_roundoff = 0x1p-24, smallest = 0x1p-149;
};

inline double to_double(float x) { return x; }
inline double to_double(__half x) { return __half2float(x); }
inline double to_double(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __double2half(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __double2bfloat16(x);
  } else {
    return static_cast<T>(x);
  }
}

/// Whether `got` is `expected` within one rounding to T and `slack` before it. NaN never passes, and an infinity only
/// where `expected` rounds to the same one.
template <typename T>
bool matches(T got, double expected, double slack) {
  const double value = to_double(got), target = to_double(rounded<T>(expected));
  if (std::isinf(value) || std::isinf(target)) return value == target;
  return std::abs(value - expected) <= slack + std::abs(expected) * Format<T>::unit_roundoff + Format<T>::smallest;
}

/// Empty where every element matches, otherwise a line about the first that does not: for CHECK(mismatch(...) == "").
template <typename T>
std::string mismatch(const std::vector<T>& got, const std::vector<double>& expected, const std::vector<double>& slack) {
  if (got.size() != expected.size()) return "sizes differ";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (matches(got[i], expected[i], slack[i])) continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(to_double(got[i])) + ", expected " +
           std::to_string(expected[i]) + " +- " + std::to_string(slack[i]);
  }
  return "";
}

/// f.operator()<T>() for each type.
template <typename... Types, typename F>
void for_types(F&& f) {
  (f.template operator()<Types>(), ...);
}

/// Values drawn uniformly from (-scale, scale), rounded to T: a linear congruential generator's upper bits.
template <typename T>
std::vector<T> draw(std::int64_t count, std::uint64_t seed, double scale = 1.0) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (T& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = rounded<T>((static_cast<double>(state >> 11) * 0x1p-52 - 1.0) * scale);
  }
  return values;
}

}  // namespace fusebench::testing
