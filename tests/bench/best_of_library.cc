#include "tests/bench/best_of_library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "variants/cublas.h"

namespace fusebench::bench {
namespace {

struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};

/// c[m, n] = a[m, k] · weight[n, k]ᵀ in fp16 by the fastest of cuBLASLt's heuristics, each timed over launches on end.
class BestOfLibrary {
 public:
  BestOfLibrary(const void* a, const void* weight, void* c, std::int64_t m, std::int64_t n, std::int64_t k)
      : a_(a), weight_(weight), c_(c), weight_layout_(layout(k, n)), a_layout_(layout(k, m)), c_layout_(layout(n, m)) {
    void* workspace = nullptr;
    FUSEBENCH_CUDA_CHECK(cudaMalloc(&workspace, kCublasWorkspaceBytes));
    workspace_.reset(workspace);
    cublasLtMatmulDesc_t product = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    product_.reset(product);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    FUSEBENCH_CUBLAS_CHECK(
        cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    double best_ms = INFINITY;
    const std::vector<cublasLtMatmulAlgo_t> algos = heuristics();
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (const cublasLtMatmulAlgo_t& algo : algos) {
        const double ms = time_ms(algo);
        if (ms < best_ms) algo_ = algo;
        best_ms = std::min(best_ms, ms);
      }
    }
  }

  void launch() const { launch(algo_); }

 private:
  static Owned<cublasLtMatrixLayout_t> layout(std::int64_t rows, std::int64_t cols) {
    cublasLtMatrixLayout_t created = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&created, CUDA_R_16F, static_cast<std::uint64_t>(rows),
                                                      static_cast<std::uint64_t>(cols), rows));
    return Owned<cublasLtMatrixLayout_t>(created);
  }

  std::vector<cublasLtMatmulAlgo_t> heuristics() const {
    cublasLtMatmulPreference_t created = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&created));
    const Owned<cublasLtMatmulPreference_t> preference(created);
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                                &kCublasWorkspaceBytes, sizeof kCublasWorkspaceBytes));
    std::array<cublasLtMatmulHeuristicResult_t, 16> found{};
    int count = 0;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(handle_.get(), product_.get(), weight_layout_.get(),
                                                          a_layout_.get(), c_layout_.get(), c_layout_.get(), created,
                                                          static_cast<int>(found.size()), found.data(), &count));
    if (count == 0) throw std::runtime_error("cuBLASLt has no algorithm for this product");
    std::vector<cublasLtMatmulAlgo_t> algos;
    for (int i = 0; i < count; ++i) algos.push_back(found.at(static_cast<std::size_t>(i)).algo);
    return algos;
  }

  void launch(const cublasLtMatmulAlgo_t& algo) const {
    const float one = 1, zero = 0;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmul(handle_.get(), product_.get(), &one, weight_, weight_layout_.get(), a_,
                                          a_layout_.get(), &zero, c_, c_layout_.get(), c_, c_layout_.get(), &algo,
                                          workspace_.get(), kCublasWorkspaceBytes, nullptr));
  }

  double time_ms(const cublasLtMatmulAlgo_t& algo) const {
    constexpr int kLaunches = 30;
    const Owned<cudaEvent_t> begin = make_event(), end = make_event();
    launch(algo);
    FUSEBENCH_CUDA_CHECK(cudaEventRecord(begin.get()));
    for (int i = 0; i < kLaunches; ++i) launch(algo);
    FUSEBENCH_CUDA_CHECK(cudaEventRecord(end.get()));
    FUSEBENCH_CUDA_CHECK(cudaEventSynchronize(end.get()));
    float ms = 0;
    FUSEBENCH_CUDA_CHECK(cudaEventElapsedTime(&ms, begin.get(), end.get()));
    return ms;
  }

  const void* a_;
  const void* weight_;
  void* c_;
  Owned<cublasLtHandle_t> handle_ = make_cublas();
  Owned<cublasLtMatmulDesc_t> product_;
  Owned<cublasLtMatrixLayout_t> weight_layout_, a_layout_, c_layout_;
  cublasLtMatmulAlgo_t algo_{};
  std::unique_ptr<void, FreeDevice> workspace_;
};

}  // namespace

std::function<void()> best_of_library(const void* a, const void* weight, void* c, std::int64_t m, std::int64_t n,
                                      std::int64_t k) {
  return [best = std::make_shared<BestOfLibrary>(a, weight, c, m, n, k)] { best->launch(); };
}

}  // namespace fusebench::bench
