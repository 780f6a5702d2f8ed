// square; row mean; 1 / sqrt(mean + eps); x · rstd; · weight.
#include <cmath>

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu_naive {

void square(const Exec& /*exec*/, DType dtype, const void* x, float* out, std::int64_t n) {
  require_fp32(dtype);
  parallel_for(n, grain_for(1), [x = fp32(x), out](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = x[i] * x[i];
  });
}

void row_mean(const Exec& /*exec*/, const float* x, float* mean, std::int64_t rows, std::int64_t cols) {
  parallel_for(rows, grain_for(cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double sum = 0;
      for (std::int64_t col = 0; col < cols; ++col) sum += static_cast<double>(x[row * cols + col]);
      mean[row] = static_cast<float>(sum / static_cast<double>(cols));
    }
  });
}

void rsqrt_eps(const Exec& /*exec*/, const float* mean, float eps, float* rstd, std::int64_t rows) {
  parallel_for(rows, grain_for(1), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) rstd[row] = 1.0F / std::sqrt(mean[row] + eps);
  });
}

void scale_rows(const Exec& /*exec*/, DType dtype, const void* x, const float* scale, void* out, std::int64_t rows,
                std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=, x = fp32(x), out = fp32(out)](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) out[i] = x[i] * scale[row];
    }
  });
}

void scale_columns(const Exec& /*exec*/, DType dtype, const void* x, const void* weight, void* out, std::int64_t rows,
                   std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols),
               [=, x = fp32(x), weight = fp32(weight), out = fp32(out)](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   for (std::int64_t col = 0; col < cols; ++col) {
                     out[row * cols + col] = x[row * cols + col] * weight[col];
                   }
                 }
               });
}

}  // namespace fusebench::kernels::cpu_naive
