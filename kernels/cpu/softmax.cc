// probabilities = softmax(scores) over the visible keys, 0 elsewhere; one row after the other, each in cache.
#include <algorithm>

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"

namespace fusebench::kernels::cpu {

void masked_softmax(const Exec& /*exec*/, DType dtype, const float* scores, void* probabilities, AttentionShape shape) {
  require_fp32(dtype);
  const std::int64_t rows = shape.batch * shape.heads * shape.seq;
  parallel_for(rows, grain_for(shape.keys), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t visible = visible_keys(shape, row % shape.seq);
      const float* x = scores + row * shape.keys;
      float* out = fp32(probabilities) + row * shape.keys;
      const float sum = exp_minus(x, max_of(x, visible), out, visible);
      scale_in_place(out, 1.0F / sum, visible);
      std::fill(out + visible, out + shape.keys, 0.0F);
    }
  });
}

}  // namespace fusebench::kernels::cpu
