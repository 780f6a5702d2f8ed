// bench_few_tiles [tokens ..]: the products of a LLaMA-3-8B block with few tokens, bf16, cold L2, in bursts. Every plan
// of the Hopper product that there is room for, with its cost by cost_plan, beside the portable kernel and the best of
// cuBLASLt's heuristics; and what the block's epilogue adds. An empty launch says what a launch takes by itself.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/device.h"
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
using T = __nv_bfloat16;

constexpr int kRounds = 15;
constexpr std::int64_t kDim = 4096, kHidden = 14336, kHeadDim = 128, kFlushBytes = std::int64_t{512} << 20;

__global__ void empty() {}

struct Contender {
  std::string name;
  std::function<void()> launch;
  std::vector<double> us = {};
};

struct Task {
  const char* name;
  std::int64_t m, n, k;
};

/// A task's operands, and those of its epilogue.
struct Buffers {
  explicit Buffers(Task task)
      : a(testing::draw<T>(task.m * task.k, 1)),
        weight(testing::draw<T>(task.n * task.k, 2)),
        residual(testing::draw<T>(task.m * kDim, 3)),
        c(task.m * task.n),
        phases(std::vector<float>(task.m * kHeadDim / 2, 0.7f)),
        squares(std::vector<float>(task.m, 4096.0f)),
        fold(std::vector<float>{1.0f}),
        part_sums(testing::part_sums_buffer()) {}

  DeviceBuffer<T> a, weight, residual, c;
  DeviceBuffer<float> phases, squares, fold;
  DeviceBuffer<float> part_sums;
};

template <typename Tile>
void add_plan(std::vector<Contender>& contenders, const std::string& tile, Task task, Buffers& of, bool beside,
              int parts) {
  const HopperDevice device = hopper_device();
  const auto [rows, columns] = tile_extents<Tile>(task.m, task.n);
  const CostedPlan costed = cost_plan<Tile>(rows, columns, task.k, beside, parts, device);
  HopperPlan plan = costed.plan;
  if (parts > 1 && pair_tiles<Tile>(rows, plan) * parts > device.pairs) return;
  if (parts > 1) plan.part_sums = {of.part_sums.data(), next_launch_counters()->finished};
  const std::string name = tile + (beside ? ", beside" : "") + ", " + std::to_string(parts) + " parts, cost " +
                           std::to_string(static_cast<int>(costed.cost));
  contenders.push_back({name, [task, plan, &of] {
                          launch_hopper_tiles<Tile>({Backend::cuda, nullptr}, of.a.data(), of.weight.data(), task.m,
                                                    task.n, task.k,
                                                    plain_tile_of(DType::bf16, of.c.data(), task.m, task.n), plan);
                        }});
}

/// The product with the epilogue that the block gives it.
void launch_fused(GemmKernel gemm, Task task, Buffers& of) {
  const Exec exec{Backend::cuda, nullptr};
  const ProductKernel kernel{gemm, of.part_sums.data()};
  const Fused& fused = cuda_fused();
  DeferredNorm norm;
  if (gemm == GemmKernel::hopper) {
    norm = {.squares = of.squares.data(), .parts = 1, .eps = 1e-5f, .fold = of.fold.data()};
  }
  if (task.n == 2 * kHidden) {
    fused.product_swiglu(exec, kernel, DType::bf16, of.a.data(), of.weight.data(), of.c.data(), task.m, kHidden, task.k,
                         norm);
  } else if (task.n == kDim) {
    fused.product_residual(exec, kernel, DType::bf16, of.a.data(), of.weight.data(), of.residual.data(), of.c.data(),
                           task.m, task.n, task.k, nullptr);
  } else {
    QkvShape shape;
    shape.rows = shape.seq = task.m;
    shape.dim = kDim;
    shape.heads = 32;
    shape.kv_heads = 8;
    shape.head_dim = kHeadDim;
    shape.kv_rows = {.seq = task.m, .capacity = task.m, .past = 0};
    T* const k = of.c.data() + task.m * shape.heads * kHeadDim;
    fused.product_rope(exec, kernel, DType::bf16, of.a.data(), of.weight.data(), of.phases.data(), of.phases.data(),
                       of.c.data(), k, k + task.m * shape.kv_heads * kHeadDim, shape, norm);
  }
}

void compare(Task task, Device& device, DeviceBuffer<char>& flushed) {
  Buffers of(task);
  std::vector<Contender> contenders{
      {"empty launch", [] { empty<<<static_cast<unsigned>(multiprocessors()), 384>>>(); }}};
  for (const bool beside : {false, true}) {
    add_plan<HopperLargeTile>(contenders, "256 together", task, of, beside, 1);
    add_plan<HopperTurnTile>(contenders, "192, 128 by turns", task, of, beside, 1);
    add_plan<HopperTokenTurnTile>(contenders, "160 tokens by turns", task, of, beside, 1);
    for (const int parts : {1, 2, 3, 4, 6, 8}) {
      add_plan<HopperTokenPartTile>(contenders, "160 tokens on parts", task, of, beside, parts);
      add_plan<HopperPartTile>(contenders, "256, 192 on parts", task, of, beside, parts);
      add_plan<HopperMediumPartTile>(contenders, "128 on parts", task, of, beside, parts);
      add_plan<HopperSmallPartTile>(contenders, "64 on parts", task, of, beside, parts);
    }
  }
  contenders.push_back({"its epilogue", [&] { launch_fused(GemmKernel::hopper, task, of); }});
  contenders.push_back({"its epilogue, portable", [&] { launch_fused(GemmKernel::portable, task, of); }});
  contenders.push_back({"cublasLt's best", testing::best_of_library(device, DType::bf16, of.a.data(), of.weight.data(),
                                                                    of.c.data(), task.m, task.n, task.k)});
  cudaEvent_t begin{}, end{};
  FUSEBENCH_CUDA_CHECK(cudaEventCreate(&begin));
  FUSEBENCH_CUDA_CHECK(cudaEventCreate(&end));
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& contender : contenders) {
      FUSEBENCH_CUDA_CHECK(cudaMemsetAsync(flushed.data(), round, kFlushBytes));
      FUSEBENCH_CUDA_CHECK(cudaEventRecord(begin));
      contender.launch();
      FUSEBENCH_CUDA_CHECK(cudaEventRecord(end));
      FUSEBENCH_CUDA_CHECK(cudaEventSynchronize(end));
      float ms = 0;
      FUSEBENCH_CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
      contender.us.push_back(1e3 * ms);
    }
  }
  FUSEBENCH_CUDA_CHECK(cudaEventDestroy(begin));
  FUSEBENCH_CUDA_CHECK(cudaEventDestroy(end));
  for (const Contender& contender : contenders) {
    std::printf("%5lld %-8s %-46s %7.1f us\n", static_cast<long long>(task.m), task.name, contender.name.c_str(),
                median(contender.us));
  }
}

}  // namespace

int main(int count, char** tokens) {
  if (!testing::has_device() || !testing::has_hopper()) {
    std::puts("needs a device of compute capability 9.0");
    return 0;
  }
  const std::unique_ptr<Device> device = open_cuda_device(0);
  DeviceBuffer<char> flushed(kFlushBytes);
  std::vector<std::int64_t> lengths{64, 128, 192, 256, 384, 512, 768, 1024};
  if (count > 1) lengths.clear();
  for (int i = 1; i < count; ++i) lengths.push_back(std::stoll(tokens[i]));
  for (const std::int64_t m : lengths) {
    compare({"qkv", m, 48 * kHeadDim, kDim}, *device, flushed);
    compare({"o", m, kDim, kDim}, *device, flushed);
    compare({"gate, up", m, 2 * kHidden, kDim}, *device, flushed);
    compare({"down", m, kDim, kHidden}, *device, flushed);
  }
}
