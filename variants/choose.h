// The one place where a kernel is chosen by device and shape.
#pragma once

#include "harness/plan.h"
#include "kernels/elementwise.h"
#include "kernels/fused.h"
#include "kernels/primitives.h"

namespace fusebench {

const kernels::Primitives& primitives(Backend backend);
const kernels::Elementwise& elementwise(Backend backend);
const kernels::Fused& fused(Backend backend);

/// A product a[m, k] · b[n, k]ᵀ of the fused variant. Throws Unsupported where no kernel takes the dtype or device.
kernels::GemmKernel choose_gemm(const Target& target, DType dtype, std::int64_t m, std::int64_t n, std::int64_t k);
kernels::AttentionKernel choose_attention(const Target& target, DType dtype, const AttentionShape& shape);

std::string_view name_of(kernels::GemmKernel kernel);
std::string_view name_of(kernels::AttentionKernel kernel);

}  // namespace fusebench
