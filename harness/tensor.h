// Host tensors and where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/op.h"

namespace fusebench {

/// A dense row-major matrix of dtype bits in host memory.
struct HostTensor {
  DType dtype = DType::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::byte> data;

  HostTensor() = default;
  HostTensor(DType dtype, std::int64_t rows, std::int64_t cols);

  std::int64_t size() const { return rows * cols; }
  /// Rows [first, first + count) widened to double, exactly.
  void read_rows(std::int64_t first, std::int64_t count, double* out) const;
};

/// Round to nearest even; overflow goes to infinity, NaN stays NaN. The bits are those of IEEE fp16 or bfloat16.
std::uint16_t to_fp16(double value);
std::uint16_t to_bf16(double value);
double from_fp16(std::uint16_t bits);
double from_bf16(std::uint16_t bits);
double round_to(DType dtype, double value);
void store(DType dtype, std::span<const double> values, std::byte* out);
void load(DType dtype, const std::byte* bits, std::int64_t count, double* out);

/// Where a tensor's elements come from: drawn, or read from a file.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual HostTensor read(const TensorSpec& spec) const = 0;
};

/// Draws every input by DESIGN.md's rules from a counter-based generator on integers: element i of a tensor depends on
/// (seed, tensor name, i) alone, and has the same bits on every machine. Uses all cores.
class DrawnSource final : public TensorSource {
 public:
  explicit DrawnSource(const Case& c) : case_(c) {}
  HostTensor read(const TensorSpec& spec) const override;

 private:
  Case case_;
};

/// An op's inputs by name. A cache tensor is here whole: its past rows drawn, its new rows zero.
using InputSet = std::map<std::string, HostTensor, std::less<>>;
InputSet read_inputs(const OpSpec& spec, const TensorSource& source);

}  // namespace fusebench
