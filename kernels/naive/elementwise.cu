// out = a op b: one thread an element.
#include "kernels/naive/map.cuh"
#include "kernels/naive/steps.h"

namespace fusebench::kernels::naive {
namespace {

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Subtract {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct Multiply {
  __device__ float operator()(float a, float b) const { return a * b; }
};

template <class T, class Operation>
__global__ void binary_kernel(const T* a, const T* b, T* out, std::int64_t n) {
  for_each(n, [=](std::int64_t i) { store(out, i, Operation()(load(a, i), load(b, i))); });
}

template <class Operation>
void binary(const Exec& exec, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  dispatch(dtype, [&]<class T>() {
    binary_kernel<T, Operation><<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(
        static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), n);
    FUSEBENCH_LAUNCH_CHECK(binary_kernel);
  });
}

}  // namespace

void add(const Exec& exec, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  binary<Add>(exec, dtype, a, b, out, n);
}

void subtract(const Exec& exec, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  binary<Subtract>(exec, dtype, a, b, out, n);
}

void multiply(const Exec& exec, DType dtype, const void* a, const void* b, void* out, std::int64_t n) {
  binary<Multiply>(exec, dtype, a, b, out, n);
}

}  // namespace fusebench::kernels::naive
