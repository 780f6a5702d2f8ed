// bench_gemm_tiles: tiles of the Hopper product against each other, and against cuBLAS's first choice, on the products
// of the seed's block under sustained load. What to choose in launch_hopper is seen here; what users see is in the
// sweeps.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/nvml.h"
#include "harness/statistics.h"
#include "kernels/fused.h"
#include "kernels/gemm_hopper.cuh"
#include "tests/gpu/device.h"
#include "tests/gpu/plain_tile.h"

namespace {

using namespace fusebench;
using namespace fusebench::kernels;
using namespace fusebench::kernels::cuda;
using testing::DeviceBuffer;
using testing::PlainTile;

constexpr double kTurnSeconds = 0.4;  // of which the first half settles the clock
constexpr int kRounds = 5;

struct Contender {
  std::string name;
  std::function<void()> launch;
  std::vector<double> us = {}, mj = {}, mhz = {};  ///< a round's means, for one launch
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Means over launches on end, which is what a power limit leaves.
void add_sustained(const Nvml& nvml, Contender& contender) {
  constexpr int kBatch = 20;
  cudaEvent_t begin{}, end{};
  FUSEBENCH_CUDA_CHECK(cudaEventCreate(&begin));
  FUSEBENCH_CUDA_CHECK(cudaEventCreate(&end));
  const double start = seconds();
  double total_us = 0, mhz = 0, first_mj = 0;
  int launches = 0, batches = 0;
  while (seconds() - start < kTurnSeconds) {
    const bool counts = seconds() - start > kTurnSeconds / 2;
    if (counts && launches == 0) first_mj = nvml.energy_mj().value.value_or(0);
    FUSEBENCH_CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < kBatch; ++i) contender.launch();
    FUSEBENCH_CUDA_CHECK(cudaEventRecord(end));
    if (counts) mhz += nvml.sm_mhz().value.value_or(0);
    FUSEBENCH_CUDA_CHECK(cudaEventSynchronize(end));
    float ms = 0;
    FUSEBENCH_CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (!counts) continue;
    total_us += 1e3 * ms;
    launches += kBatch;
    ++batches;
  }
  contender.us.push_back(total_us / launches);
  contender.mhz.push_back(mhz / batches);
  contender.mj.push_back((nvml.energy_mj().value.value_or(0) - first_mj) / launches);
  FUSEBENCH_CUDA_CHECK(cudaEventDestroy(begin));
  FUSEBENCH_CUDA_CHECK(cudaEventDestroy(end));
}

/// c = a . weightT by the fastest of cuBLASLt's heuristics, each timed over launches on end.
class BestOfLibrary {
 public:
  BestOfLibrary(const __half* a, const __half* weight, __half* c, std::int64_t m, std::int64_t n, std::int64_t k)
      : a_(a), weight_(weight), c_(c) {
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&workspace_, kWorkspaceBytes));
    cublasLtCreate(&lt_);
    cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    const auto layout = [](std::int64_t rows, std::int64_t cols) {
      cublasLtMatrixLayout_t made{};
      cublasLtMatrixLayoutCreate(&made, CUDA_R_16F, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols),
                                 rows);
      return made;
    };
    weight_layout_ = layout(k, n);
    a_layout_ = layout(k, m);
    c_layout_ = layout(n, m);
    cublasLtMatmulPreference_t preference{};
    cublasLtMatmulPreferenceCreate(&preference);
    const std::size_t limit = kWorkspaceBytes;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit);
    std::array<cublasLtMatmulHeuristicResult_t, 16> found;
    int count = 0;
    cublasLtMatmulAlgoGetHeuristic(lt_, product_, weight_layout_, a_layout_, c_layout_, c_layout_, preference,
                                   static_cast<int>(found.size()), found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    double best_ms = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (int i = 0; i < count; ++i) {
        const cublasLtMatmulAlgo_t before = algo_;
        algo_ = found[static_cast<std::size_t>(i)].algo;
        const double ms = time_ms();
        if (ms < best_ms) {
          best_ms = ms;
        } else {
          algo_ = before;
        }
      }
    }
  }

  void launch() const {
    const float one = 1, zero = 0;
    cublasLtMatmul(lt_, product_, &one, weight_, weight_layout_, a_, a_layout_, &zero, c_, c_layout_, c_, c_layout_,
                   &algo_, workspace_, kWorkspaceBytes, nullptr);
  }

 private:
  static constexpr std::size_t kWorkspaceBytes = 32 << 20;

  double time_ms() const {
    constexpr int kLaunches = 30;
    cudaEvent_t begin{}, end{};
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    launch();
    cudaEventRecord(begin);
    for (int i = 0; i < kLaunches; ++i) launch();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return ms;
  }

  const __half* a_;
  const __half* weight_;
  __half* c_;
  cublasLtHandle_t lt_{};
  cublasLtMatmulDesc_t product_{};
  cublasLtMatrixLayout_t weight_layout_{}, a_layout_{}, c_layout_{};
  cublasLtMatmulAlgo_t algo_{};
  void* workspace_ = nullptr;
};

/// The products of the block as they are launched there, each on the shape that it has there.
void add_epilogues(std::vector<Contender>& contenders, const __half* a, const __half* weight, __half* c, std::int64_t m,
                   std::int64_t n, std::int64_t k) {
  constexpr std::int64_t dim = 4096, seq = 2048, head_dim = 128, parts = dim / kSquaresColumns;
  static const DeviceBuffer<float> squares(std::vector<float>(static_cast<std::size_t>(m * parts), 128.0f));
  static const DeviceBuffer<float> phases(std::vector<float>(static_cast<std::size_t>(seq * head_dim / 2), 0.7f));
  static const DeviceBuffer<float> fold(std::vector<float>{1.0f});
  static const DeviceBuffer<__half> residual(testing::draw<__half>(m * dim, 3));
  static DeviceBuffer<float> sums(m * parts);
  const Exec exec{Backend::cuda, nullptr};
  const Fused& fused = cuda_fused();
  const DeferredNorm norm{.squares = squares.data(), .parts = parts, .eps = 1e-5f, .fold = fold.data()};
  if (n == 3 * dim) {
    QkvShape shape;
    shape.rows = m;
    shape.dim = dim;
    shape.heads = shape.kv_heads = dim / head_dim;
    shape.head_dim = head_dim;
    shape.seq = shape.kv_rows.seq = shape.kv_rows.capacity = seq;
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      shape.pairing = pairing;
      contenders.push_back({"norm, rope " + std::string(name_of(pairing)), [=, &fused] {
                              fused.product_rope(exec, GemmKernel::hopper, DType::fp16, a, weight, phases.data(),
                                                 phases.data(), c, c + m * dim, c + 2 * m * dim, shape, norm);
                            }});
    }
  } else if (n == dim) {
    for (float* squares_of_row : {static_cast<float*>(nullptr), sums.data()}) {
      contenders.push_back({squares_of_row == nullptr ? "residual" : "residual, squares", [=, &fused] {
                              fused.product_residual(exec, GemmKernel::hopper, DType::fp16, a, weight, residual.data(),
                                                     c, m, n, k, squares_of_row);
                            }});
    }
  } else {
    contenders.push_back({"norm, swiglu", [=, &fused] {
                            fused.product_swiglu(exec, GemmKernel::hopper, DType::fp16, a, weight, c, m, n / 2, k,
                                                 norm);
                          }});
  }
}

void compare(std::int64_t m, std::int64_t n, std::int64_t k, cublasHandle_t cublas, const Nvml& nvml, bool once) {
  const DeviceBuffer<__half> a(testing::draw<__half>(m * k, 1)), weight(testing::draw<__half>(n * k, 2));
  DeviceBuffer<__half> c(m * n);
  std::vector<Contender> contenders;
  const auto add = [&]<typename Tile>(std::string name) {
    contenders.push_back({std::move(name), [&] {
                            launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, a.data(), weight.data(), m, n, k,
                                                      PlainTile{output_map(DType::fp16, c.data(), m, n)});
                          }});
  };
  add.operator()<HopperLargeTile>("128x256 together");
  add.operator()<HopperWideTile>("128x192 by turns");
  add.operator()<HopperMediumTile>("128x128 by turns");
  add.operator()<HopperTile<192, 5, Consumers::by_turns, 1>>("128x192 no cluster");
  contenders.push_back({"cublasGemmEx", [&] {
                          const float one = 1, zero = 0;
                          cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(m),
                                       static_cast<int>(k), &one, weight.data(), CUDA_R_16F, static_cast<int>(k),
                                       a.data(), CUDA_R_16F, static_cast<int>(k), &zero, c.data(), CUDA_R_16F,
                                       static_cast<int>(n), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
                        }});
  add_epilogues(contenders, a.data(), weight.data(), c.data(), m, n, k);
  BestOfLibrary best(a.data(), weight.data(), c.data(), m, n, k);
  contenders.push_back({"cublasLt's best", [&] { best.launch(); }});
  if (once) {
    for (const Contender& contender : contenders) contender.launch();
    return;
  }
  std::mt19937 order(42);
  for (int round = 0; round < kRounds; ++round) {
    std::shuffle(contenders.begin(), contenders.end(), order);  // who runs behind whom matters
    for (Contender& contender : contenders) add_sustained(nvml, contender);
  }
  std::sort(contenders.begin(), contenders.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  for (const Contender& contender : contenders) {
    const double us = median(contender.us);
    std::printf("%lld x %lld x %lld  %-20s %8.1f us [%.1f, %.1f]  %5.0f TFLOP/s  %5.0f MHz  %6.1f mJ\n",
                static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k), contender.name.c_str(),
                us, *std::min_element(contender.us.begin(), contender.us.end()),
                *std::max_element(contender.us.begin(), contender.us.end()), flops / us / 1e6, median(contender.mhz),
                median(contender.mj));
  }
}

}  // namespace

int main(int argc, char**) {
  const bool once = argc > 1;
  if (!testing::has_device() || !testing::has_hopper()) {
    std::puts("needs a device of compute capability 9.0");
    return 0;
  }
  const Nvml nvml(open_cuda_device(0)->facts().uuid);
  cublasHandle_t cublas{};
  cublasCreate(&cublas);
  compare(4096, 12288, 4096, cublas, nvml, once);
  compare(4096, 4096, 4096, cublas, nvml, once);
  compare(4096, 28672, 4096, cublas, nvml, once);
  compare(4096, 4096, 14336, cublas, nvml, once);
  cublasDestroy(cublas);
}
