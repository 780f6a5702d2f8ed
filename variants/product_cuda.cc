// Products by cuBLASLt: fp32 arithmetic without TF32, no reduction in the output's dtype, true alignments. Which of the
// library's kernels is best is timed once, on the tensors that the plan is bound to.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "kernels/cuda_check.h"
#include "variants/product.h"

namespace fusebench {
namespace {

void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("{}: {} ({}:{})", call, cublasLtGetStatusName(status), file, line));
}
#define FUSEBENCH_CUBLAS_CHECK(call) check((call), #call, __FILE__, __LINE__)

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;  // what NVIDIA recommends for Hopper
constexpr int kHeuristics = 16;                                   // candidates asked of cuBLASLt for each form
constexpr int kTimings = 5;                                       // of a candidate; fewer when one takes long
constexpr float kLongMs = 5;
// Those that come near the best are timed again by turns. Between those that come out equal the choice must not be
// chance, or another process compares another kernel.
constexpr std::size_t kFinalists = 6;
constexpr float kNear = 1.1F;
constexpr int kFinalTimings = 15;
constexpr float kEqual = 1.005F;
constexpr bool kHasPointerArrays = CUBLAS_VER_MAJOR >= 13;  // before, batches that no stride reaches take several calls

struct Destroy {
  void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayout_t d) const { cublasLtMatrixLayoutDestroy(d); }
  void operator()(cublasLtMatmulPreference_t d) const { cublasLtMatmulPreferenceDestroy(d); }
  void operator()(cublasLtHandle_t d) const { cublasLtDestroy(d); }
  void operator()(cudaEvent_t d) const { cudaEventDestroy(d); }
};
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

cublasLtHandle_t handle() {
  static const Owned<cublasLtHandle_t> instance = [] {
    cublasLtHandle_t created = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtCreate(&created));
    return Owned<cublasLtHandle_t>(created);
  }();
  return instance.get();
}

Owned<cudaEvent_t> make_event() {
  cudaEvent_t event = nullptr;
  FUSEBENCH_CUDA_CHECK(cudaEventCreate(&event));
  return Owned<cudaEvent_t>(event);
}

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::fp16 ? CUDA_R_16F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// Element offsets of the first matrix of one call.
struct Offsets {
  std::int64_t a = 0, b = 0, c = 0;
};

/// How the matrices of a product are handed over.
enum class Batching : std::uint8_t { strided, pointers };

/// One way to ask cuBLASLt for the product: its descriptors, and the calls that cover every matrix.
struct Form {
  Batching batching = Batching::strided;
  BatchLevel level;            ///< of the strided batch
  std::vector<Offsets> calls;  ///< one for each call
  bool adds_after = false;     ///< the residual is added by a kernel of its own, not by beta = 1
  Owned<cublasLtMatmulDesc_t> op;
  Owned<cublasLtMatrixLayout_t> a, b, c;
};

struct Choice {
  std::size_t form = 0;
  cublasLtMatmulAlgo_t algo = {};
};

struct Candidate {
  Choice choice;
  std::size_t rank = 0;  ///< in the library's order of preference
  std::vector<float> times_ms = {};

  float median_ms() const {
    std::vector<float> times = times_ms;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }
};

std::uint32_t alignment_of(const void* address, std::int64_t stride_bytes) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | static_cast<std::uintptr_t>(stride_bytes) | 256U;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

class CublasProduct {
 public:
  CublasProduct(const Plan& plan, const ProductSpec& spec, TensorId workspace, TensorId pointers)
      : spec_(spec),
        in_(plan.tensor(spec.a.tensor).dtype),
        out_(plan.tensor(spec.c.tensor).dtype),
        workspace_(workspace),
        pointers_(pointers) {
    const std::vector<BatchLevel> levels = batch_levels(spec);
    add_form(Batching::strided, levels, false);
    if (spec.residual) add_form(Batching::strided, levels, true);
    if (needs_pointers(spec)) add_form(Batching::pointers, levels, false);
  }

  static bool needs_pointers(const ProductSpec& spec) { return kHasPointerArrays && batch_levels(spec).size() > 1; }

  /// Every candidate of every form, timed; the fastest is kept, of equals the one that the library prefers.
  void tune(Step& step, const Exec& exec, const Bindings& bound, const std::function<void()>& before_each) {
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < forms_.size(); ++i) {
      for (const cublasLtMatmulHeuristicResult_t& found : heuristics(forms_[i], bound)) {
        Candidate candidate{.choice = {.form = i, .algo = found.algo}, .rank = candidates.size()};
        if (time(candidate, kTimings, exec, bound, before_each)) candidates.push_back(std::move(candidate));
      }
    }
    if (candidates.empty()) throw Unsupported(no_kernel());
    choice_ = best_of(std::move(candidates), exec, bound, before_each);
    enter(step);
  }

  void launch(const Exec& exec, const Bindings& bound) {
    if (!choice_) choice_ = first(bound);
    check(run(*choice_, exec, bound), "cublasLtMatmul", __FILE__, __LINE__);
  }

  /// Writes each matrix's address into the pointer arrays: all of a's, then b's, then c's.
  void fill_pointers(const Exec& exec, const Bindings& bound) const {
    std::vector<const void*> addresses;
    for (const Operand* operand : {&spec_.a, &spec_.b, &spec_.c}) {
      for (std::int64_t b = 0; b < spec_.batches; ++b) {
        for (std::int64_t h = 0; h < spec_.heads; ++h) {
          addresses.push_back(
              address(*operand, bound, b * operand->batch_stride + h / operand->group * operand->head_stride));
        }
      }
    }
    FUSEBENCH_CUDA_CHECK(cudaMemcpyAsync(bound.at(pointers_), addresses.data(), addresses.size() * sizeof(void*),
                                         cudaMemcpyHostToDevice, exec.stream));
    FUSEBENCH_CUDA_CHECK(cudaStreamSynchronize(exec.stream));
  }

 private:
  std::int64_t matrices() const { return spec_.batches * spec_.heads; }
  DType dtype_of(const Operand& operand) const { return &operand == &spec_.c ? out_ : in_; }

  std::byte* address(const Operand& operand, const Bindings& bound, std::int64_t offset) const {
    return bound.at<std::byte>(operand.tensor) + (operand.offset + offset) * bytes_of(dtype_of(operand));
  }

  // cuBLASLt is asked for the transposed product, since its matrices are column-major: cᵀ[n, m] = b · aᵀ.
  void add_form(Batching batching, const std::vector<BatchLevel>& levels, bool adds_after) {
    Form form{.batching = batching, .adds_after = adds_after};
    std::vector<BatchLevel> outer = levels;
    if (batching == Batching::pointers) {
      outer.clear();
    } else if (!levels.empty()) {
      const auto widest = std::max_element(
          outer.begin(), outer.end(), [](const BatchLevel& l, const BatchLevel& r) { return l.extent < r.extent; });
      form.level = *widest;
      outer.erase(widest);
    }
    form.calls = {Offsets{}};
    for (const BatchLevel& level : outer) {
      std::vector<Offsets> calls;
      for (const Offsets& base : form.calls) {
        for (std::int64_t i = 0; i < level.extent; ++i) {
          calls.push_back({base.a + i * level.a_stride, base.b + i * level.b_stride, base.c + i * level.c_stride});
        }
      }
      form.calls = std::move(calls);
    }
    describe(form);
    forms_.push_back(std::move(form));
  }

  void describe(Form& form) const {
    cublasLtMatmulDesc_t op = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    form.op.reset(op);
    const cublasOperation_t transpose_b = spec_.rhs == Rhs::n_by_k ? CUBLAS_OP_T : CUBLAS_OP_N;
    FUSEBENCH_CUBLAS_CHECK(
        cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_b, sizeof(transpose_b)));
    const bool n_by_k = spec_.rhs == Rhs::n_by_k;
    form.b = layout(form, in_, n_by_k ? spec_.k : spec_.n, n_by_k ? spec_.n : spec_.k, spec_.b, form.level.b_stride);
    form.a = layout(form, in_, spec_.k, spec_.m, spec_.a, form.level.a_stride);
    form.c = layout(form, out_, spec_.n, spec_.m, spec_.c, form.level.c_stride);
  }

  Owned<cublasLtMatrixLayout_t> layout(const Form& form, DType dtype, std::int64_t rows, std::int64_t cols,
                                       const Operand& operand, std::int64_t batch_stride) const {
    cublasLtMatrixLayout_t created = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&created, type_of(dtype), static_cast<std::uint64_t>(rows),
                                                      static_cast<std::uint64_t>(cols), operand.stride));
    Owned<cublasLtMatrixLayout_t> owned(created);
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      FUSEBENCH_CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(created, attribute, &value, sizeof(value)));
    };
    const bool pointers = form.batching == Batching::pointers;
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(pointers ? matrices() : form.level.extent));
#if CUBLAS_VER_MAJOR >= 13
    if (pointers) {
      set(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, static_cast<std::uint32_t>(CUBLASLT_BATCH_MODE_POINTER_ARRAY));
      return owned;
    }
#endif
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
    return owned;
  }

  // What cuBLASLt proposes, best guess first; none where it has no kernel.
  std::vector<cublasLtMatmulHeuristicResult_t> heuristics(const Form& form, const Bindings& bound) const {
    cublasLtMatmulPreference_t created = nullptr;
    FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&created));
    const Owned<cublasLtMatmulPreference_t> preference(created);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      FUSEBENCH_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(created, attribute, &value, sizeof(value)));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    const std::uint32_t c = alignment(spec_.c, form, bound);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(spec_.b, form, bound));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(spec_.a, form, bound));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, spec_.residual ? std::min(c, residual_alignment(bound)) : c);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c);

    std::vector<cublasLtMatmulHeuristicResult_t> found(kHeuristics);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle(), form.op.get(), form.b.get(), form.a.get(), form.c.get(), form.c.get(),
                                       created, kHeuristics, found.data(), &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
    check(status, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  // Of an operand's base and of every step that is taken from it: matrices need not be as aligned as the tensor.
  std::uint32_t alignment(const Operand& operand, const Form&, const Bindings& bound) const {
    const std::int64_t element = bytes_of(dtype_of(operand));
    const std::int64_t steps =
        (spec_.batches > 1 ? operand.batch_stride : 0) | (spec_.heads > 1 ? operand.head_stride : 0);
    return alignment_of(address(operand, bound, 0), steps * element);
  }
  std::uint32_t residual_alignment(const Bindings& bound) const { return alignment_of(bound.at(*spec_.residual), 0); }

  Choice first(const Bindings& bound) const {
    for (std::size_t i = 0; i < forms_.size(); ++i) {
      const auto found = heuristics(forms_[i], bound);
      if (!found.empty()) return {.form = i, .algo = found.front().algo};
    }
    throw Unsupported(no_kernel());
  }

  std::string no_kernel() const {
    return fmt::format("cuBLASLt has no kernel for {} products of {} x {} x {} in {}", matrices(), spec_.m, spec_.n,
                       spec_.k, name_of(in_));
  }

  cublasStatus_t run(const Choice& choice, const Exec& exec, const Bindings& bound) const {
    const Form& form = forms_[choice.form];
    const float beta = spec_.residual && !form.adds_after ? 1.0F : 0.0F;
    for (const Offsets& call : form.calls) {
      const void* a = address(spec_.a, bound, call.a);
      const void* b = address(spec_.b, bound, call.b);
      void* d = address(spec_.c, bound, call.c);
      if (form.batching == Batching::pointers) {
        auto* arrays = bound.at<void*>(pointers_);
        a = arrays;
        b = arrays + matrices();
        d = arrays + 2 * matrices();
      }
      const void* c = beta != 0 ? static_cast<const void*>(bound.at<std::byte>(*spec_.residual) +
                                                           (spec_.c.offset + call.c) * bytes_of(out_))
                                : d;
      const cublasStatus_t status = cublasLtMatmul(
          handle(), form.op.get(), &spec_.alpha, b, form.b.get(), a, form.a.get(), &beta, c, form.c.get(), d,
          form.c.get(), &choice.algo, bound.at(workspace_), static_cast<std::size_t>(kWorkspaceBytes), exec.stream);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    if (form.adds_after) {
      void* out = bound.at(spec_.c.tensor);
      elementwise(Backend::cuda).add(exec, out_, out, bound.at(*spec_.residual), out, spec_.m * spec_.n);
    }
    return CUBLAS_STATUS_SUCCESS;
  }

  // Times a few more runs of a candidate, behind a warm-up where there are none yet. False where it does not run.
  bool time(Candidate& candidate, int runs, const Exec& exec, const Bindings& bound,
            const std::function<void()>& before_each) const {
    const Owned<cudaEvent_t> start = make_event();
    const Owned<cudaEvent_t> stop = make_event();
    std::vector<float>& times = candidate.times_ms;
    if (times.empty()) {
      const cublasStatus_t status = run(candidate.choice, exec, bound);
      if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
      check(status, "cublasLtMatmul", __FILE__, __LINE__);
    }
    for (int i = 0; i < runs && (i == 0 || times.back() < kLongMs); ++i) {
      before_each();
      FUSEBENCH_CUDA_CHECK(cudaEventRecord(start.get(), exec.stream));
      check(run(candidate.choice, exec, bound), "cublasLtMatmul", __FILE__, __LINE__);
      FUSEBENCH_CUDA_CHECK(cudaEventRecord(stop.get(), exec.stream));
      FUSEBENCH_CUDA_CHECK(cudaEventSynchronize(stop.get()));
      FUSEBENCH_CUDA_CHECK(cudaEventElapsedTime(&times.emplace_back(), start.get(), stop.get()));
    }
    return true;
  }

  Choice best_of(std::vector<Candidate> candidates, const Exec& exec, const Bindings& bound,
                 const std::function<void()>& before_each) const {
    const auto faster = [](const Candidate& a, const Candidate& b) { return a.median_ms() < b.median_ms(); };
    std::sort(candidates.begin(), candidates.end(), faster);
    const float near_ms = kNear * candidates.front().median_ms();
    std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.median_ms() > near_ms; });
    candidates.resize(std::min(candidates.size(), kFinalists));
    const int timings = candidates.front().median_ms() < kLongMs ? kFinalTimings : 1;
    for (Candidate& candidate : candidates) candidate.times_ms.resize(1);  // it has warmed up; the others come by turns
    for (int i = 0; i < timings && candidates.size() > 1; ++i) {
      for (Candidate& candidate : candidates) time(candidate, 1, exec, bound, before_each);
    }
    const float equal_ms = kEqual * std::min_element(candidates.begin(), candidates.end(), faster)->median_ms();
    std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.median_ms() > equal_ms; });
    const auto preferred = [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; };
    return std::min_element(candidates.begin(), candidates.end(), preferred)->choice;
  }

  // What was chosen, for the record: cublas_algo66_tile36_stages35_splitk1.
  void enter(Step& step) const {
    const Form& form = forms_[choice_->form];
    const auto of = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
      std::uint32_t value = 0;
      std::size_t written = 0;
      const cublasStatus_t status =
          cublasLtMatmulAlgoConfigGetAttribute(&choice_->algo, attribute, &value, sizeof(value), &written);
      return status == CUBLAS_STATUS_SUCCESS ? value : 0;
    };
    step.kernel = fmt::format("cublas_algo{}_tile{}_stages{}_splitk{}", of(CUBLASLT_ALGO_CONFIG_ID),
                              of(CUBLASLT_ALGO_CONFIG_TILE_ID), of(CUBLASLT_ALGO_CONFIG_STAGES_ID),
                              std::max(of(CUBLASLT_ALGO_CONFIG_SPLITK_NUM), 1U));
    if (form.batching == Batching::pointers) step.kernel += "_pointers";
    step.launches = static_cast<int>(form.calls.size());
    if (form.adds_after) {
      step.kernel += "_then_add";
      ++step.launches;
      const Access product = step.writes.front();  // goes out and in once more
      step.reads.push_back(product);
      step.writes.push_back(product);
    }
  }

  ProductSpec spec_;
  DType in_;
  DType out_;
  TensorId workspace_;
  TensorId pointers_;
  std::vector<Form> forms_;
  std::optional<Choice> choice_;
};

}  // namespace

void implement_cublas_product(Plan& plan, const ProductSpec& spec, Step& step) {
  const TensorId workspace = plan.workspace(spec.name + " cublas workspace", DType::fp32, 1, kWorkspaceBytes / 4);
  step.writes.push_back(Plan::part(workspace, 0));  // lives in this step; what split-K moves through it is not modelled
  TensorId pointers = workspace;
  const bool needs_pointers = CublasProduct::needs_pointers(spec);
  if (needs_pointers) {
    constexpr std::int64_t kFloatsInPointer = sizeof(void*) / sizeof(float);
    pointers = plan.prepared(spec.name + " pointers", DType::fp32, 3, spec.batches * spec.heads * kFloatsInPointer);
  }
  const auto product = std::make_shared<CublasProduct>(plan, spec, workspace, pointers);
  step.kernel = "cublas";
  step.launch = [product](const Exec& exec, const Bindings& bound) { product->launch(exec, bound); };
  step.tune = [product](Step& own, const Exec& exec, const Bindings& bound, const std::function<void()>& before_each) {
    product->tune(own, exec, bound, before_each);
  };
  if (needs_pointers) {
    plan.add_prepare(
        {.name = spec.name + " pointers",
         .kernel = "copy",
         .writes = {plan.all(pointers)},
         .launch = [product](const Exec& exec, const Bindings& bound) { product->fill_pointers(exec, bound); }});
  }
}

}  // namespace fusebench
