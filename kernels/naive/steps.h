// The CUDA steps of the `naive` variant, one file an op; naive.cu enters them into the table. Signatures and contracts
// are those of kernels/primitives.h.
#pragma once

#include "kernels/function.h"
#include "kernels/primitives.h"

namespace fusebench::kernels::naive {

Function<decltype(Primitives::add)> add;
Function<decltype(Primitives::subtract)> subtract;
Function<decltype(Primitives::multiply)> multiply;

Function<decltype(Primitives::square)> square;
Function<decltype(Primitives::row_mean)> row_mean;
Function<decltype(Primitives::rsqrt_eps)> rsqrt_eps;
Function<decltype(Primitives::scale_rows)> scale_rows;
Function<decltype(Primitives::scale_columns)> scale_columns;

Function<decltype(Primitives::product)> product;

Function<decltype(Primitives::split_pairs)> split_pairs;
Function<decltype(Primitives::multiply_by_phase)> multiply_by_phase;
Function<decltype(Primitives::merge_pairs)> merge_pairs;

Function<decltype(Primitives::scores)> scores;
Function<decltype(Primitives::row_max)> row_max;
Function<decltype(Primitives::exp_minus_max)> exp_minus_max;
Function<decltype(Primitives::row_sum)> row_sum;
Function<decltype(Primitives::divide_rows)> divide_rows;
Function<decltype(Primitives::weighted_values)> weighted_values;

Function<decltype(Primitives::sigmoid)> sigmoid;
Function<decltype(Primitives::gate)> gate;

}  // namespace fusebench::kernels::naive
