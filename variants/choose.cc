#include "variants/choose.h"

#include <fmt/format.h>

#include <algorithm>

#include "variants/product.h"

namespace fusebench {
namespace {

constexpr std::int64_t kVectorBytes = 16;  // what cp.async and vector loads move at once
constexpr std::int64_t kMaxHeadDim = 256;

#if FUSEBENCH_HAS_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;  // what the branches for CUDA name is then not linked
#endif

[[noreturn]] void throw_not_built(Backend backend) {
  throw Unsupported(fmt::format("this build has no {} backend", name_of(backend)));
}

/// Tensor cores of sm_80 and later, in half precision.
void require_tensor_cores(const Target& target, DType dtype) {
  if (target.compute_capability < 80) {
    throw Unsupported(fmt::format("fused products need compute capability 8.0, the device has {}.{}",
                                  target.compute_capability / 10, target.compute_capability % 10));
  }
  if (dtype == DType::fp32) throw Unsupported("fused products take fp16 and bf16, not fp32");
}

/// Whether rows of `cols` elements all begin at a multiple of 16 bytes.
bool has_vector_rows(const Target& target, DType dtype, std::int64_t cols) {
  return target.alignment_bytes % kVectorBytes == 0 && cols * bytes_of(dtype) % kVectorBytes == 0;
}

}  // namespace

bool is_built(Backend backend) { return backend == Backend::cpu || kHasCuda; }

const kernels::Primitives& primitives(Backend backend) {
  if (backend == Backend::cpu) return kernels::cpu_primitives();
  if constexpr (kHasCuda) return kernels::cuda_primitives();
  throw_not_built(backend);
}

const kernels::Elementwise& elementwise(Backend backend) {
  if (backend == Backend::cpu) return kernels::cpu_elementwise();
  if constexpr (kHasCuda) return kernels::cuda_elementwise();
  throw_not_built(backend);
}

const kernels::Fused& fused(Backend backend) {
  if (backend == Backend::cpu) return kernels::cpu_fused();
  if constexpr (kHasCuda) return kernels::cuda_fused();
  throw_not_built(backend);
}

const kernels::DeferredNormKernels& deferred_norm(Backend backend) {
  if constexpr (kHasCuda) {
    if (backend == Backend::cuda) return kernels::cuda_deferred_norm();
  }
  throw_not_built(backend);
}

ImplementProduct library_product(Backend backend) {
  if (backend == Backend::cpu) return implement_eigen_product;
  if constexpr (kHasCuda) return implement_cublas_product;
  throw_not_built(backend);
}

std::string_view library_name(Backend backend) { return backend == Backend::cpu ? "eigen" : "cublas"; }

kernels::GemmKernel choose_gemm(const Target& target, KernelChoice choice, DType dtype, std::int64_t m, std::int64_t n,
                                std::int64_t k, bool hopper_stores) {
  if (target.backend == Backend::cpu) return kernels::GemmKernel::cpu;
  require_tensor_cores(target, dtype);
  if (!has_vector_rows(target, dtype, k)) return kernels::GemmKernel::portable_unaligned;
  const bool fits = hopper_stores && n % 32 == 0 && std::max({m, n, k}) <= kernels::kHopperExtent;
  // Its tiles have 128 rows: for few the portable kernel, with smaller ones, is faster (docs/performance-log.md).
  const bool pays = m > 32;
  const bool hopper = choice == KernelChoice::best && target.compute_capability == 90 && fits && pays;
  return hopper ? kernels::GemmKernel::hopper : kernels::GemmKernel::portable;
}

kernels::AttentionKernel choose_attention(const Target& target, KernelChoice choice, DType dtype,
                                          const AttentionShape& shape, std::int64_t value_offset) {
  if (shape.head_dim > kMaxHeadDim) {
    throw Unsupported(fmt::format("fused attention takes head_dim up to {}, not {}", kMaxHeadDim, shape.head_dim));
  }
  if (target.backend == Backend::cpu) return kernels::AttentionKernel::cpu;
  require_tensor_cores(target, dtype);
  for (const std::int64_t step : {shape.head_dim, shape.resolved_value_stride(), value_offset}) {
    if (!has_vector_rows(target, dtype, step)) return kernels::AttentionKernel::portable_unaligned;
  }
  const bool fits = (shape.head_dim == 64 || shape.head_dim == 128) &&
                    std::max({shape.batch * shape.heads, shape.seq, shape.keys}) <= INT32_MAX / 2;
  // A tile holds 128 positions of one head; the portable kernel's can hold several heads of fewer.
  const bool pays = shape.seq >= 64;
  const bool hopper = choice == KernelChoice::best && target.compute_capability == 90 && fits && pays;
  return hopper ? kernels::AttentionKernel::hopper : kernels::AttentionKernel::portable;
}

std::string_view name_of(kernels::GemmKernel kernel) {
  switch (kernel) {
    case kernels::GemmKernel::cpu:
      return "gemm_cpu";
    case kernels::GemmKernel::portable:
      return "gemm_portable";
    case kernels::GemmKernel::portable_unaligned:
      return "gemm_portable_unaligned";
    case kernels::GemmKernel::hopper:
      return "gemm_hopper";
  }
  throw std::logic_error("no such product kernel");
}

std::string_view name_of(kernels::AttentionKernel kernel) {
  switch (kernel) {
    case kernels::AttentionKernel::cpu:
      return "attention_cpu";
    case kernels::AttentionKernel::portable:
      return "attention_portable";
    case kernels::AttentionKernel::portable_unaligned:
      return "attention_portable_unaligned";
    case kernels::AttentionKernel::hopper:
      return "attention_hopper";
  }
  throw std::logic_error("no such attention kernel");
}

}  // namespace fusebench
