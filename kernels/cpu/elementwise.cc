// Sums and copies.
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu {

void add(const Exec& /*exec*/, DType dtype, const void* a_data, const void* b_data, void* out_data, std::int64_t n) {
  require_fp32(dtype);
  parallel_for(n, grain_for(1),
               [a = fp32(a_data), b = fp32(b_data), out = fp32(out_data)](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
               });
}

void copy_rows(const Exec& /*exec*/, DType dtype, const void* x, std::int64_t x_stride, void* out,
               std::int64_t out_stride, std::int64_t rows, std::int64_t cols, RowMap out_rows) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::copy_n(fp32(x) + row * x_stride, cols, fp32(out) + out_rows(row) * out_stride);
    }
  });
}

}  // namespace fusebench::kernels::cpu
