// y = x / sqrt(mean(x²) + eps) · weight: memory is read once, the second pass over a row finds it in cache.
#include <cmath>

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"

namespace fusebench::kernels::cpu {
namespace {

void normalise_row(const float* x, const float* weight, float eps, float* y, std::int64_t cols) {
  const double mean = sum_of_squares(x, cols) / static_cast<double>(cols);
  const auto rstd = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(eps)));
  for (std::int64_t col = 0; col < cols; ++col) y[col] = x[col] * rstd * weight[col];
}

}  // namespace

void rmsnorm(const Exec& /*exec*/, DType dtype, const void* x, const void* weight, float eps, void* y,
             std::int64_t rows, std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      normalise_row(fp32(x) + row * cols, fp32(weight), eps, fp32(y) + row * cols, cols);
    }
  });
}

void add_rmsnorm(const Exec& /*exec*/, DType dtype, const void* x_data, const void* r_data, const void* weight,
                 float eps, void* h_data, void* y, std::int64_t rows, std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = fp32(x_data) + row * cols;
      const float* r = fp32(r_data) + row * cols;
      float* h = fp32(h_data) + row * cols;
      for (std::int64_t col = 0; col < cols; ++col) h[col] = x[col] + r[col];
      normalise_row(h, fp32(weight), eps, fp32(y) + row * cols, cols);
    }
  });
}

}  // namespace fusebench::kernels::cpu
