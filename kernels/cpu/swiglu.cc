// y = silu(g) · u.
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vector_math.h"

namespace fusebench::kernels::cpu {

void swiglu(const Exec& /*exec*/, DType dtype, const void* g_data, const void* u_data, std::int64_t in_stride,
            void* y_data, std::int64_t rows, std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* g = fp32(g_data) + row * in_stride;
      const float* u = fp32(u_data) + row * in_stride;
      float* y = fp32(y_data) + row * cols;
      for (std::int64_t col = 0; col < cols; ++col) y[col] = silu_fp32(g[col]) * u[col];
    }
  });
}

void swiglu(const Exec& /*exec*/, DType dtype, const void* g, const void* u, void* y, std::int64_t n) {
  require_fp32(dtype);
  parallel_for(n, grain_for(1), [g = fp32(g), u = fp32(u), y = fp32(y)](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = silu_fp32(g[i]) * u[i];
  });
}

}  // namespace fusebench::kernels::cpu
