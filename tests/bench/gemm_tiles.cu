// bench_gemm_tiles: tiles of the Hopper product against each other, against cuBLAS's first choice and the best of its
// heuristics, and with the epilogues of the block, on the products of the seed's block under sustained load. With any
// argument each is launched once, for ncu. What to choose in choose_plan is seen here; what users see is in the
// sweeps.
#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/nvml.h"
#include "harness/statistics.h"
#include "kernels/fused.h"
#include "kernels/gemm_hopper.cuh"
#include "tests/bench/library_product.h"
#include "tests/gpu/device.h"
#include "tests/gpu/plain_tile.h"

namespace {

using namespace fusebench;
using namespace fusebench::kernels;
using namespace fusebench::kernels::cuda;
using testing::DeviceBuffer;
using testing::plain_tile_of;

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

/// What the block's epilogues read and write besides, for kRows tokens.
struct EpilogueOperands {
  static constexpr std::int64_t kRows = 4096, kDim = 4096, kSeq = 2048, kHeadDim = 128, kParts = kDim / kSquaresColumns;

  DeviceBuffer<float> squares = DeviceBuffer<float>(std::vector<float>(kRows * kParts, 128.0f));
  DeviceBuffer<float> phases = DeviceBuffer<float>(std::vector<float>(kSeq * kHeadDim / 2, 0.7f));
  DeviceBuffer<float> fold = DeviceBuffer<float>(std::vector<float>{1.0f});
  DeviceBuffer<float> squares_out = DeviceBuffer<float>(kRows * kParts);
  DeviceBuffer<__half> residual = DeviceBuffer<__half>(testing::draw<__half>(kRows * kDim, 3));
};

/// The block's products with their epilogues. Those onto a residual are timed with and without the sums of squares,
/// which the block takes of o and not of down.
void add_epilogues(std::vector<Contender>& contenders, EpilogueOperands& of, const __half* a, const __half* weight,
                   __half* c, std::int64_t m, std::int64_t n, std::int64_t k) {
  using Of = EpilogueOperands;
  const Exec exec{Backend::cuda, nullptr};
  const Fused& fused = cuda_fused();
  const DeferredNorm norm{.squares = of.squares.data(), .parts = Of::kParts, .eps = 1e-5f, .fold = of.fold.data()};
  if (n == 3 * Of::kDim) {
    QkvShape shape;
    shape.rows = m;
    shape.dim = Of::kDim;
    shape.heads = shape.kv_heads = Of::kDim / Of::kHeadDim;
    shape.head_dim = Of::kHeadDim;
    shape.seq = shape.kv_rows.seq = shape.kv_rows.capacity = Of::kSeq;
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      shape.pairing = pairing;
      contenders.push_back({"norm, rope " + std::string(name_of(pairing)), [=, &of, &fused] {
                              fused.product_rope(exec, GemmKernel::hopper, DType::fp16, a, weight, of.phases.data(),
                                                 of.phases.data(), c, c + m * Of::kDim, c + 2 * m * Of::kDim, shape,
                                                 norm);
                            }});
    }
  } else if (n == Of::kDim) {
    for (float* squares_out : {static_cast<float*>(nullptr), of.squares_out.data()}) {
      contenders.push_back({squares_out == nullptr ? "residual" : "residual, squares", [=, &of, &fused] {
                              fused.product_residual(exec, GemmKernel::hopper, DType::fp16, a, weight,
                                                     of.residual.data(), c, m, n, k, squares_out);
                            }});
    }
  } else {
    contenders.push_back({"norm, swiglu", [=, &fused] {
                            fused.product_swiglu(exec, GemmKernel::hopper, DType::fp16, a, weight, c, m, n / 2, k,
                                                 norm);
                          }});
  }
}

void compare(std::int64_t m, std::int64_t n, std::int64_t k, Device& device, cublasHandle_t cublas, const Nvml& nvml,
             EpilogueOperands& operands, bool once) {
  DeviceBuffer<__half> a(testing::draw<__half>(m * k, 1)), weight(testing::draw<__half>(n * k, 2));
  DeviceBuffer<__half> c(m * n);
  std::vector<Contender> contenders;
  const auto add = [&]<typename Tile>(std::string name, ColumnPlan columns) {
    for (const bool halves : {false, true}) {
      const auto partitions = l2_partitions();
      if (halves && !(partitions && can_halve_rows<Tile>(m, columns, hopper_device()))) continue;
      contenders.push_back(
          {name + (halves ? ", rows halved" : ""), [&, columns, halves, partitions] {
             const RowPlan rows = halves ? RowPlan{&next_launch_counters()->arrivals, *partitions} : RowPlan{};
             launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, a.data(), weight.data(), m, n, k,
                                       plain_tile_of(DType::fp16, c.data(), m, n), {.columns = columns, .rows = rows});
           }});
    }
  };
  using Turns = HopperTurnTile;
  add.operator()<HopperLargeTile>(
      "256 together", choose_columns<HopperLargeTile>(tall_tiles<HopperLargeTile>(m), n, hopper_device().pairs));
  add.operator()<Turns>("192 by turns", columns_of<Turns>(n, ceil_div<std::int64_t>(n, Turns::n)));
  add.operator()<Turns>("128 by turns", columns_of<Turns>(n, 0));
  add.operator()<Turns>("192, 128 by turns", choose_columns<Turns>(tall_tiles<Turns>(m), n, hopper_device().pairs));
  contenders.push_back({"cublasGemmEx", [&] {
                          const float one = 1, zero = 0;
                          cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(m),
                                       static_cast<int>(k), &one, weight.data(), CUDA_R_16F, static_cast<int>(k),
                                       a.data(), CUDA_R_16F, static_cast<int>(k), &zero, c.data(), CUDA_R_16F,
                                       static_cast<int>(n), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
                        }});
  add_epilogues(contenders, operands, a.data(), weight.data(), c.data(), m, n, k);
  contenders.push_back(
      {"cublasLt's best", testing::best_of_library(device, DType::fp16, a.data(), weight.data(), c.data(), m, n, k)});
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
    std::printf("%lld x %lld x %lld  %-30s %8.1f us [%.1f, %.1f]  %5.0f TFLOP/s  %5.0f MHz  %6.1f mJ\n",
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
  const std::unique_ptr<Device> device = open_cuda_device(0);
  const Nvml nvml(device->facts().uuid);
  cublasHandle_t cublas{};
  cublasCreate(&cublas);
  EpilogueOperands operands;
  compare(4096, 12288, 4096, *device, cublas, nvml, operands, once);
  compare(4096, 4096, 4096, *device, cublas, nvml, operands, once);
  compare(4096, 28672, 4096, *device, cublas, nvml, operands, once);
  compare(4096, 4096, 14336, *device, cublas, nvml, operands, once);
  cublasDestroy(cublas);
}
