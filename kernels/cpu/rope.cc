// Rotary position embedding of one tensor, or of q and k in one pass.
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"

namespace fusebench::kernels::cpu {
namespace {

void rotate_row(Pairing pairing, const float* x, const float* cos, const float* sin, float* out, std::int64_t heads,
                std::int64_t head_dim) {
  for (std::int64_t head = 0; head < heads; ++head) {
    rotate_head(pairing, x + head * head_dim, cos, sin, out + head * head_dim, head_dim / 2);
  }
}

}  // namespace

void rope(const Exec& /*exec*/, DType dtype, Pairing pairing, const void* x, std::int64_t x_stride, const float* cos,
          const float* sin, void* out, std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t seq,
          RowMap out_rows) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(heads * head_dim), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t phase = row % seq * (head_dim / 2);
      rotate_row(pairing, fp32(x) + row * x_stride, cos + phase, sin + phase,
                 fp32(out) + out_rows(row) * heads * head_dim, heads, head_dim);
    }
  });
}

void rope(const Exec& /*exec*/, DType dtype, Pairing pairing, const void* q, const void* k, const float* cos,
          const float* sin, void* q_out, void* k_out, std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
          std::int64_t head_dim, std::int64_t seq) {
  require_fp32(dtype);
  const std::int64_t q_cols = heads * head_dim;
  const std::int64_t k_cols = kv_heads * head_dim;
  parallel_for(rows, grain_for(q_cols + k_cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t phase = row % seq * (head_dim / 2);
      rotate_row(pairing, fp32(q) + row * q_cols, cos + phase, sin + phase, fp32(q_out) + row * q_cols, heads,
                 head_dim);
      rotate_row(pairing, fp32(k) + row * k_cols, cos + phase, sin + phase, fp32(k_out) + row * k_cols, kv_heads,
                 head_dim);
    }
  });
}

}  // namespace fusebench::kernels::cpu
