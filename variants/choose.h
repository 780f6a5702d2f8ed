// The one place where a kernel is chosen by device and shape, and the only one that knows what this build has.
#pragma once

#include "harness/plan.h"
#include "kernels/deferred_norm.h"
#include "kernels/elementwise.h"
#include "kernels/fused.h"
#include "kernels/primitives.h"

namespace fusebench {

struct ProductSpec;

bool is_built(Backend backend);

// Throw Unsupported where the build lacks the backend.
const kernels::Primitives& primitives(Backend backend);
const kernels::Elementwise& elementwise(Backend backend);
const kernels::Fused& fused(Backend backend);
const kernels::DeferredNormKernels& deferred_norm(Backend backend);  ///< CUDA alone has them

/// Fills a step's kernel, launch and tune with the library's product (variants/product.h); its ledger is there already.
using ImplementProduct = void (*)(Plan& plan, const ProductSpec& spec, Step& step);
ImplementProduct library_product(Backend backend);
std::string_view library_name(Backend backend);  ///< cublas or eigen: the variant whose products are a library's

enum class KernelChoice : std::uint8_t {
  best,      ///< for the device and shape: sm_90a's own where they take it
  portable,  ///< sm_80 and later, whatever the device has beyond that
};

/// A product a[m, k] · b[n, k]ᵀ of the fused variant; `hopper_stores` says whether its results are what the Hopper
/// kernel can store. Throws Unsupported where no kernel takes the dtype or device.
kernels::GemmKernel choose_gemm(const Target& target, KernelChoice choice, DType dtype, std::int64_t m, std::int64_t n,
                                std::int64_t k, bool hopper_stores = true);
/// The values start `value_offset` elements into their tensor.
kernels::AttentionKernel choose_attention(const Target& target, KernelChoice choice, DType dtype,
                                          const AttentionShape& shape, std::int64_t value_offset = 0);

std::string_view name_of(kernels::GemmKernel kernel);
std::string_view name_of(kernels::AttentionKernel kernel);

}  // namespace fusebench
