#include "kernels/cpu/naive.h"
#include "kernels/primitives.h"

namespace fusebench::kernels {

const Primitives& cpu_primitives() {
  static constexpr Primitives table{
      .add = cpu_naive::add,
      .subtract = cpu_naive::subtract,
      .multiply = cpu_naive::multiply,
      .square = cpu_naive::square,
      .row_mean = cpu_naive::row_mean,
      .rsqrt_eps = cpu_naive::rsqrt_eps,
      .scale_rows = cpu_naive::scale_rows,
      .scale_columns = cpu_naive::scale_columns,
      .product = cpu_naive::product,
      .split_pairs = cpu_naive::split_pairs,
      .multiply_by_phase = cpu_naive::multiply_by_phase,
      .merge_pairs = cpu_naive::merge_pairs,
      .scores = cpu_naive::scores,
      .row_max = cpu_naive::row_max,
      .exp_minus_max = cpu_naive::exp_minus_max,
      .row_sum = cpu_naive::row_sum,
      .divide_rows = cpu_naive::divide_rows,
      .weighted_values = cpu_naive::weighted_values,
      .sigmoid = cpu_naive::sigmoid,
      .gate = cpu_naive::gate,
  };
  return table;
}

}  // namespace fusebench::kernels
