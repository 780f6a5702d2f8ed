// sigmoid(g), then g · sigmoid(g).
#include <cmath>

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu_naive {

// exp(-g) overflows to infinity for very negative g, and 1 / infinity is the 0 that is wanted.
void sigmoid(const Exec& /*exec*/, DType dtype, const void* g, void* out, std::int64_t n) {
  require_fp32(dtype);
  parallel_for(n, grain_for(1), [g = fp32(g), out = fp32(out)](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = 1.0F / (1.0F + std::exp(-g[i]));
  });
}

// Where sigmoid is 0, g may be -inf, and the product's limit is 0.
void gate(const Exec& /*exec*/, DType dtype, const void* g, const void* sigmoid, void* out, std::int64_t n) {
  require_fp32(dtype);
  parallel_for(n, grain_for(1),
               [g = fp32(g), sigmoid = fp32(sigmoid), out = fp32(out)](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) out[i] = sigmoid[i] == 0.0F ? 0.0F : g[i] * sigmoid[i];
               });
}

}  // namespace fusebench::kernels::cpu_naive
