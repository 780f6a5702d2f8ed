// The variants that every op has, from one function each.
#pragma once

#include <vector>

#include "variants/pieces.h"
#include "variants/registry.h"

namespace fusebench {

/// Appends an op's steps, on the op's own tensors.
using Append = void (*)(const Planning& p);

struct StandardOp {
  Op op;
  bool has_product;  ///< or attention: `fused` then takes no fp32 on CUDA, and `fused.portable` exists
  Append naive;
  Append library;
  Append fused;
  Append library_flash = nullptr;  ///< the library's, around fused attention; takes the dtypes of `fused`
};

/// naive, eigen, eigen_flash where there is one, and fused on the CPU; naive, cublas, cublas_flash, fused and, where
/// they differ, fused.portable on CUDA.
std::vector<Variant> standard_variants(const StandardOp& op);

}  // namespace fusebench
