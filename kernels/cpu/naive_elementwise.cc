// out = a op b.
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu_naive {
namespace {

template <class Operation>
void binary(DType dtype, const void* a_data, const void* b_data, void* out_data, std::int64_t n, Operation operation) {
  require_fp32(dtype);
  const float* a = fp32(a_data);
  const float* b = fp32(b_data);
  float* out = fp32(out_data);
  parallel_for(n, grain_for(1), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = operation(a[i], b[i]);
  });
}

}  // namespace

void add(const Exec& /*exec*/, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  binary(dtype, a, b, out, n, [](float x, float y) { return x + y; });
}

void subtract(const Exec& /*exec*/, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  binary(dtype, a, b, out, n, [](float x, float y) { return x - y; });
}

void multiply(const Exec& /*exec*/, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  binary(dtype, a, b, out, n, [](float x, float y) { return x * y; });
}

}  // namespace fusebench::kernels::cpu_naive
