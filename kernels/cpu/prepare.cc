// Weights in the order that the fused products' epilogues want (see kernels/fused.h).
#include <algorithm>

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu {

void prepare_qkv(const Exec& /*exec*/, GemmKernel /*kernel*/, DType dtype, const void* wq, const void* wk,
                 const void* wv, void* prepared, QkvShape shape) {
  require_fp32(dtype);
  const std::int64_t d = shape.head_dim;
  const std::int64_t q_rows = shape.heads * d;
  const std::int64_t k_rows = shape.kv_heads * d;
  parallel_for(shape.columns(), grain_for(shape.dim), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t source = row;
      if (shape.pairing == Pairing::half && row < q_rows + k_rows) {
        const std::int64_t place = row % d;
        source = row - place + place / 2 + place % 2 * (d / 2);
      }
      const float* weight = source < q_rows            ? fp32(wq) + source * shape.dim
                            : source < q_rows + k_rows ? fp32(wk) + (source - q_rows) * shape.dim
                                                       : fp32(wv) + (source - q_rows - k_rows) * shape.dim;
      std::copy_n(weight, shape.dim, fp32(prepared) + row * shape.dim);
    }
  });
}

void prepare_gate_up(const Exec& /*exec*/, DType dtype, const void* gate, const void* up, void* prepared,
                     std::int64_t hidden, std::int64_t k) {
  require_fp32(dtype);
  parallel_for(hidden, grain_for(2 * k), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      std::copy_n(fp32(gate) + unit * k, k, fp32(prepared) + 2 * unit * k);
      std::copy_n(fp32(up) + unit * k, k, fp32(prepared) + (2 * unit + 1) * k);
    }
  });
}

}  // namespace fusebench::kernels::cpu
