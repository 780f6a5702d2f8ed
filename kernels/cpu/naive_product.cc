// c[c_rows(i), :] = a[m, k] · b[n, k]ᵀ: an inner product an element, in blocks that keep some rows of b in cache.
#include "kernels/cpu/naive_product.h"

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu_naive {

void product(const Exec& /*exec*/, DType dtype, const void* a_data, const void* b_data, void* c_data, std::int64_t m,
             std::int64_t n, std::int64_t k, RowMap c_rows) {
  require_fp32(dtype);
  constexpr std::int64_t block = 32;
  const float* a = fp32(a_data);
  const float* b = fp32(b_data);
  float* c = fp32(c_data);
  parallel_for(n, block, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < m; ++i) {
      float* c_row = c + c_rows(i) * n;
      for (std::int64_t j = begin; j < end; ++j) c_row[j] = dot(a + i * k, b + j * k, k);
    }
  });
}

}  // namespace fusebench::kernels::cpu_naive
