// See kernels/l2_partitions.h. Blocks, one to a multiprocessor, time atomics one behind the other, since others' would
// disturb them.
#include "kernels/l2_partitions.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <random>

#include "kernels/device.cuh"
#include "kernels/hopper.cuh"

namespace fusebench::kernels {
namespace {

constexpr int kLines = 64, kTries = 4, kCounters = 1024;
constexpr unsigned kMemoryWords = 1u << 21, kLineWords = 32;
constexpr int kSharedBytes = 128 * 1024;  // over half of a multiprocessor's, so that it takes one block

__device__ LaunchCounters launch_counters[kCounters];

struct Probe {
  unsigned* memory;       ///< zeros
  const unsigned* lines;  ///< [kLines], words
  unsigned* turn;         ///< zero
  int* ids;               ///< [gridDim.x]: of the multiprocessor where a block ran
  float* cycles;          ///< [gridDim.x, kLines]: the shortest latency
};

__global__ void time_atomics(Probe probe) {
  if (threadIdx.x != 0) return;
  while (*static_cast<volatile unsigned*>(probe.turn) != blockIdx.x) __nanosleep(500);
  for (int line = 0; line < kLines; ++line) {
    unsigned* word = probe.memory + probe.lines[line];
    long long shortest = INT32_MAX;
    for (int i = 0; i <= kTries; ++i) {  // the first brings the line
      const long long start = clock64();
      if (atomicAdd(word, 0u) != 0) break;  // never: words are zero; but the clock is read when that is known
      if (i > 0) shortest = min(shortest, clock64() - start);
    }
    probe.cycles[blockIdx.x * kLines + line] = static_cast<float>(shortest);
  }
  probe.ids[blockIdx.x] = cuda::hopper::multiprocessor_id();
  __threadfence();
  atomicAdd(probe.turn, 1u);
}

/// While it lives the calling thread may allocate and synchronise though it captures a stream, in its default mode.
class WhileCapturing {
 public:
  WhileCapturing() { FUSEBENCH_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  WhileCapturing(const WhileCapturing&) = delete;
  WhileCapturing& operator=(const WhileCapturing&) = delete;
  ~WhileCapturing() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// A stream that belongs to no capture.
class Stream {
 public:
  Stream() { FUSEBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_{};
};

/// Device memory for the probe, of zeros or of given values.
template <typename T>
class Memory {
 public:
  Memory(cudaStream_t stream, std::size_t count) : stream_(stream), count_(count) {
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T)));
    FUSEBENCH_CUDA_CHECK(cudaMemsetAsync(data_, 0, count * sizeof(T), stream));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }

  T* data() const { return data_; }
  void write(const std::vector<T>& values) {
    FUSEBENCH_CUDA_CHECK(cudaMemcpyAsync(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice, stream_));
  }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    FUSEBENCH_CUDA_CHECK(cudaMemcpyAsync(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream_));
    FUSEBENCH_CUDA_CHECK(cudaStreamSynchronize(stream_));
    return values;
  }

 private:
  cudaStream_t stream_;
  std::size_t count_;
  T* data_ = nullptr;
};

std::vector<std::vector<double>> measure_latencies(cudaStream_t stream) {
  const auto blocks = static_cast<std::size_t>(multiprocessors());
  Memory<unsigned> memory(stream, kMemoryWords), lines(stream, kLines), turn(stream, 1);
  Memory<int> multiprocessor_ids(stream, blocks);
  Memory<float> cycles(stream, blocks * kLines);
  std::mt19937 random(1);
  std::vector<unsigned> words(kLines);
  for (unsigned& word : words) word = static_cast<unsigned>(random()) % (kMemoryWords / kLineWords) * kLineWords;
  lines.write(words);
  FUSEBENCH_CUDA_CHECK(cudaFuncSetAttribute(time_atomics, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  time_atomics<<<static_cast<unsigned>(blocks), 32, kSharedBytes, stream>>>(
      {memory.data(), lines.data(), turn.data(), multiprocessor_ids.data(), cycles.data()});
  FUSEBENCH_LAUNCH_CHECK(time_atomics);
  const std::vector<float> measured = cycles.read();
  const std::vector<int> ids = multiprocessor_ids.read();
  std::vector<std::vector<double>> latencies(blocks);
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto id = static_cast<std::size_t>(ids[block]);
    if (id >= blocks) return {};  // ids need not be contiguous
    const auto first = measured.begin() + static_cast<std::ptrdiff_t>(block * kLines);
    latencies[id].assign(first, first + kLines);
  }
  return latencies;
}

/// What is found out once for each device.
struct OfDevice {
  std::optional<L2Partitions> partitions;
  LaunchCounters* counters;
};

OfDevice find_out() {
  const WhileCapturing relaxed;
  const Stream stream;
  OfDevice found{};
  for (int i = 0; i < 3 && !found.partitions; ++i) found.partitions = partitions_by(measure_latencies(stream.get()));
  void* counters = nullptr;
  FUSEBENCH_CUDA_CHECK(cudaGetSymbolAddress(&counters, launch_counters));
  found.counters = static_cast<LaunchCounters*>(counters);
  return found;
}

OfDevice of_current_device() {
  static std::mutex mutex;
  static std::map<int, OfDevice> known;
  int device = 0;
  FUSEBENCH_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  const auto found = known.find(device);
  return found != known.end() ? found->second : known[device] = find_out();
}

}  // namespace

std::optional<L2Partitions> partitions_by(const std::vector<std::vector<double>>& latencies) {
  constexpr double kAlike = 0.5;  // of a correlation; 0.95 was the least seen
  L2Partitions partitions;
  if (latencies.empty() || latencies.size() > 64 * partitions.second.size()) return {};
  const std::size_t count = latencies.size(), lines = latencies[0].size();
  std::vector<double> line_means(lines);
  for (const std::vector<double>& of_one : latencies) {
    if (of_one.size() != lines || lines == 0) return {};
    for (std::size_t i = 0; i < lines; ++i) line_means[i] += of_one[i] / static_cast<double>(count);
  }
  std::vector<std::vector<double>> above = latencies;  // what is a line's own, and a multiprocessor's own, taken off
  for (std::vector<double>& of_one : above) {
    double mean = 0.0, norm = 0.0;
    for (std::size_t i = 0; i < lines; ++i) {
      of_one[i] -= line_means[i];
      mean += of_one[i] / static_cast<double>(lines);
    }
    for (double& value : of_one) {
      value -= mean;
      norm += value * value;
    }
    for (double& value : of_one) value /= std::sqrt(norm);
  }
  std::size_t seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double alike = 0.0;
    for (std::size_t line = 0; line < lines; ++line) alike += above[0][line] * above[i][line];
    if (!(std::abs(alike) > kAlike)) return {};
    if (alike > 0.0) continue;
    partitions.second[i / 64] |= std::uint64_t{1} << i % 64;
    ++seconds;
  }
  // Of the smaller one's half over a quarter would be the other's.
  if (8 * std::min(seconds, count - seconds) < 3 * count) return {};
  return partitions;
}

std::optional<L2Partitions> l2_partitions() { return of_current_device().partitions; }

LaunchCounters* next_launch_counters() {
  static std::atomic<unsigned> next{0};
  return of_current_device().counters + next++ % kCounters;
}

}  // namespace fusebench::kernels
