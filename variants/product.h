// A matrix product by a library: cuBLASLt on CUDA, Eigen on the CPU. The products of the `cublas` and `eigen` variants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "variants/planning.h"

namespace fusebench {

/// One matrix for each batch b and head h, in elements: element (row, col) lies at
///   offset + b · batch_stride + (h / group) · head_stride + row · stride + col.
struct Operand {
  TensorId tensor = 0;
  std::int64_t offset = 0;
  std::int64_t stride = 0;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t group = 1;  ///< query heads that share one matrix; divides ProductSpec::heads
};

enum class Rhs : std::uint8_t {
  n_by_k,  ///< b is [n, k], as weights and keys are: c = a · bᵀ
  k_by_n,  ///< b is [k, n], as values are: c = a · b
};

/// c[m, n] = alpha · a[m, k] · b + residual, for batches · heads matrices; a and b in the case's dtype, fp32
/// arithmetic.
struct ProductSpec {
  std::string name = "product";
  Operand a;
  Operand b;
  Operand c;  ///< in its tensor's dtype: the case's, or fp32
  Rhs rhs = Rhs::n_by_k;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t batches = 1;
  std::int64_t heads = 1;
  float alpha = 1;
  std::optional<TensorId> residual = {};  ///< laid out as c, and of its dtype; with a single matrix alone
  std::optional<double> flops = {};       ///< useful ones where a mask leaves some out; 2·m·n·k a matrix otherwise
};

/// a[m, k] · b[n, k]ᵀ of whole dense tensors, a and c of m rows.
ProductSpec dense_product(std::string name, TensorId a, TensorId b, TensorId c, std::int64_t m, std::int64_t n,
                          std::int64_t k);

/// Appends one step. Throws std::logic_error for a spec that contradicts itself.
void add_product(const Planning& p, ProductSpec spec);

/// Weights of equal columns one below the other, for one product: a tensor prepared by a step for each.
TensorId stack_weights(const Planning& p, const std::string& name, const std::vector<TensorId>& weights);

/// One level of the loop over a product's matrices, and how far each operand moves in it.
struct BatchLevel {
  std::int64_t extent = 1;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
};
/// The fewest levels that reach every matrix, outermost first: none for a single matrix, one where a uniform stride
/// serves all operands.
std::vector<BatchLevel> batch_levels(const ProductSpec& spec);

/// ImplementProduct of each backend (variants/choose.h); the CUDA one is there in CUDA builds alone.
void implement_eigen_product(Plan& plan, const ProductSpec& spec, Step& step);
void implement_cublas_product(Plan& plan, const ProductSpec& spec, Step& step);

}  // namespace fusebench
