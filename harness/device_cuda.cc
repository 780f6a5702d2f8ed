#include <cublas_api.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "harness/attached_tools.h"
#include "harness/counters_cuda.h"
#include "harness/device.h"
#include "harness/device_kernels.h"
#include "harness/nvml.h"
#include "harness/stopwatch_cuda.h"
#include "kernels/cuda_check.h"

namespace fusebench {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    FUSEBENCH_CUDA_CHECK(cudaSetDevice(index));
    FUSEBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    read_facts(index);
    nvml_ = std::make_unique<Nvml>(facts_.uuid);
    stopwatch_ = std::make_unique<Stopwatch>(stream_, facts_.multiprocessors);
    facts_.watched_by = attached_tool();
    if (!facts_.watched_by.empty()) {
      facts_.warnings.push_back(facts_.watched_by +
                                " is attached: times hold the host's part of launches, and its own");
    }
    flush_bytes_ = 2 * std::max<std::int64_t>(facts_.l2_bytes, 1 << 20);
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&dirty_, static_cast<std::size_t>(flush_bytes_)));
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&clean_, static_cast<std::size_t>(flush_bytes_)));
    FUSEBENCH_CUDA_CHECK(cudaMemset(clean_, 0, static_cast<std::size_t>(flush_bytes_)));
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&sum_, sizeof(unsigned long long)));
  }
  ~CudaDevice() override {
    cudaFree(dirty_);
    cudaFree(clean_);
    cudaFree(sum_);
    stopwatch_.reset();
    cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceFacts& facts() const override { return facts_; }
  Exec exec() const override { return {.backend = Backend::cuda, .stream = stream_}; }

  std::int64_t free_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    FUSEBENCH_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<std::int64_t>(free);
  }
  void* allocate(std::int64_t bytes) override {
    void* memory = nullptr;
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }
  void copy_in(void* device, const void* host, std::int64_t bytes) override {
    FUSEBENCH_CUDA_CHECK(
        cudaMemcpyAsync(device, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_));
    synchronize();
  }
  void copy_out(void* host, const void* device, std::int64_t bytes) override {
    FUSEBENCH_CUDA_CHECK(
        cudaMemcpyAsync(host, device, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_));
    synchronize();
  }
  void fill(void* device, std::uint8_t byte, std::int64_t bytes) override {
    FUSEBENCH_CUDA_CHECK(cudaMemsetAsync(device, byte, static_cast<std::size_t>(bytes), stream_));
  }
  void fill_some(void* device, std::uint8_t byte, std::int64_t bytes, std::uint64_t seed) override {
    launch_fill_some(device, byte, bytes, seed, stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
  }
  std::uint64_t checksum(const void* device, std::int64_t bytes) override {
    FUSEBENCH_CUDA_CHECK(cudaMemsetAsync(sum_, 0, sizeof(unsigned long long), stream_));
    launch_checksum(device, bytes, sum_, grid(), stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
    unsigned long long sum = 0;
    copy_out(&sum, sum_, sizeof(sum));
    return sum;
  }

  void flush_cache() override {
    FUSEBENCH_CUDA_CHECK(cudaCtxResetPersistingL2Cache());
    launch_write(dirty_, flush_bytes_, ++flushes_, grid(), stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
    drain_cache();
  }
  void drain_cache() override {
    launch_read(clean_, flush_bytes_, reinterpret_cast<unsigned*>(sum_), grid(), stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
  }
  void synchronize() override { FUSEBENCH_CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  Times time(const std::vector<std::function<void()>>& works, bool hold) override {
    return stopwatch_->time(works, hold);
  }
  void transfer(Transfer kind, void* to, const void* from, std::int64_t bytes) override {
    if (kind == Transfer::copy) {
      FUSEBENCH_CUDA_CHECK(
          cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_));
    }
    if (kind == Transfer::read) launch_read(from, bytes, reinterpret_cast<unsigned*>(sum_), grid(), stream_);
    if (kind == Transfer::write) launch_write(to, bytes, ++flushes_, grid(), stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
  }
  void launch_empty() override {
    fusebench::launch_empty(stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
  }
  void launch_delay(double us) override {
    fusebench::launch_delay(us, stream_);
    FUSEBENCH_CUDA_CHECK(cudaGetLastError());
  }
  DeviceState state() const override {
    return {nvml_->power_w(), nvml_->power_limit_w(), nvml_->temperature_c(), nvml_->clock_events()};
  }
  std::unique_ptr<Counters> open_counters() override {
    return open_cupti_counters(index_, [this] { synchronize(); });
  }
  void profiler_start() override { FUSEBENCH_CUDA_CHECK(cudaProfilerStart()); }
  void profiler_stop() override { FUSEBENCH_CUDA_CHECK(cudaProfilerStop()); }
  std::function<void()> capture(const std::function<void()>& work) override {
    cudaGraph_t graph = nullptr;
    FUSEBENCH_CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    FUSEBENCH_CUDA_CHECK(cudaStreamEndCapture(stream_, &graph));
    cudaGraphExec_t replay = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&replay, graph, 0);
    cudaGraphDestroy(graph);
    kernels::cuda_check(status, "cudaGraphInstantiate", __FILE__, __LINE__);
    const std::shared_ptr<CUgraphExec_st> owned(replay, [](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); });
    return [owned, stream = stream_] { FUSEBENCH_CUDA_CHECK(cudaGraphLaunch(owned.get(), stream)); };
  }

 private:
  void read_facts(int index) {
    cudaDeviceProp p{};
    FUSEBENCH_CUDA_CHECK(cudaGetDeviceProperties(&p, index));
    int driver = 0;
    int runtime = 0;
    FUSEBENCH_CUDA_CHECK(cudaDriverGetVersion(&driver));
    FUSEBENCH_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    facts_.backend = Backend::cuda;
    facts_.name = p.name;
    facts_.uuid = "GPU";
    for (int i = 0; i < 16; ++i) {
      const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
      facts_.uuid += fmt::format("{}{:02x}", dash ? "-" : "", static_cast<unsigned char>(p.uuid.bytes[i]));
    }
    facts_.driver = fmt::format("{}.{}", driver / 1000, driver % 1000 / 10);
    facts_.runtime = fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10);
    facts_.libraries = {{"cuda_runtime", facts_.runtime},
                        {"cublas", fmt::format("{}.{}.{}", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH)}};
    facts_.compute_capability = 10 * p.major + p.minor;
    facts_.multiprocessors = p.multiProcessorCount;
    facts_.l2_bytes = p.l2CacheSize;
    facts_.memory_bytes = static_cast<std::int64_t>(p.totalGlobalMem);
    if (facts_.name.find("MIG") != std::string::npos) {
      facts_.warnings.emplace_back("the device is a MIG slice: its bandwidth and caches are a part of the card's");
    }
    // Without NVML, memory that is in use before we allocate is what tells of another process. The driver and our
    // own context take some hundred MiB.
    const std::int64_t used = facts_.memory_bytes - free_bytes();
    if (used > (std::int64_t{2} << 30)) {
      facts_.warnings.push_back(
          fmt::format("the GPU is in use: {:.1f} GiB are taken by others; timings may be disturbed",
                      static_cast<double>(used) / (1 << 30)));
    }
  }
  int grid() const { return 4 * facts_.multiprocessors; }

  int index_;
  DeviceFacts facts_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<Stopwatch> stopwatch_;
  std::int64_t flush_bytes_ = 0;
  void* dirty_ = nullptr;
  void* clean_ = nullptr;
  unsigned long long* sum_ = nullptr;
  unsigned flushes_ = 0;
};

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index) {
  const int count = cuda_device_count();
  if (count == 0) throw std::runtime_error("no CUDA device is available; use --backend cpu, or see `nvidia-smi`");
  if (index < 0 || index >= count) {
    throw std::runtime_error(fmt::format("--device {}: there are {} CUDA devices, numbered from 0", index, count));
  }
  return std::make_unique<CudaDevice>(index);
}

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver is an answer, not a failure
    return 0;
  }
  return count;
}

std::string why_no_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count > 0 ? "" : "the driver shows no device";
  cudaGetLastError();
  return fmt::format("{}: {}", cudaGetErrorName(status), cudaGetErrorString(status));
}

}  // namespace fusebench
