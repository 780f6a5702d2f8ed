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
  bool
      has_product;  ///< or attention: `fused` then takes no fp32 on CUDA, and `fused.portable` and `fused.hopper` exist
  Append naive;
  Append library;
  Append fused;
};

/// naive, eigen and fused on the CPU; naive, cublas, fused and, where they differ, fused.portable and fused.hopper on
/// CUDA.
std::vector<Variant> standard_variants(const StandardOp& op);

}  // namespace fusebench
