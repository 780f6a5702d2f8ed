// Where and how a value loses bits when it is stored.
#pragma once

#include <cstdint>

#include "reference/matrix.h"

namespace fusebench::reference {

/// The format a tensor is stored in; `none` keeps the double.
enum class Rounding : std::uint8_t { none, fp16, bf16, fp32 };

/// To the nearest value of the format, ties to even; magnitudes past the largest finite value by half a step or more
/// become infinite, NaN stays NaN, and the sign of zero is kept.
double rounded(Rounding format, double value);

/// Every element in place.
void round_all(Rounding format, double* values, Index count);

template <class Dense>
void round_all(Rounding format, Dense& values) {
  round_all(format, values.data(), values.size());
}

/// The format of what is kept in fp32 whatever the tensors' own format is: squares, row statistics, scores.
constexpr Rounding statistics(Rounding format) { return format == Rounding::none ? Rounding::none : Rounding::fp32; }

}  // namespace fusebench::reference
