// A matrix product by the naive variant's plain kernel.
#pragma once

#include "variants/planning.h"

namespace fusebench {

/// c[c_rows(i), :] = a[m, k] · b[n, k]ᵀ of dense tensors.
struct NaiveProduct {
  std::string name = "product";
  TensorId a, b, c;
  std::int64_t m, n, k;
  RowMap c_rows;
};

/// Appends one step.
void naive_product(const Planning& p, const NaiveProduct& product);

}  // namespace fusebench
