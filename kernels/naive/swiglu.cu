// sigmoid(g), then g · sigmoid(g): one thread an element.
#include "kernels/naive/map.cuh"
#include "kernels/naive/steps.h"

namespace fusebench::kernels::naive {
namespace {

// exp(-g) overflows to infinity for very negative g, and 1 / infinity is the 0 that is wanted.
template <class T>
__global__ void sigmoid_kernel(const T* g, T* out, std::int64_t n) {
  for_each(n, [=](std::int64_t i) { store(out, i, 1.0f / (1.0f + expf(-load(g, i)))); });
}

// Where sigmoid is 0, g may be -inf, and the product's limit is 0.
template <class T>
__global__ void gate_kernel(const T* g, const T* sigmoid, T* out, std::int64_t n) {
  for_each(n, [=](std::int64_t i) {
    const float s = load(sigmoid, i);
    store(out, i, s == 0.0f ? 0.0f : load(g, i) * s);
  });
}

}  // namespace

void sigmoid(const Exec& exec, DType dtype, const void* g, void* out, std::int64_t n) {
  dispatch(dtype, [&]<class T>() {
    sigmoid_kernel<<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(static_cast<const T*>(g),
                                                                                              static_cast<T*>(out), n);
    FUSEBENCH_LAUNCH_CHECK(sigmoid_kernel);
  });
}

void gate(const Exec& exec, DType dtype, const void* g, const void* sigmoid, void* out, std::int64_t n) {
  dispatch(dtype, [&]<class T>() {
    gate_kernel<<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(
        static_cast<const T*>(g), static_cast<const T*>(sigmoid), static_cast<T*>(out), n);
    FUSEBENCH_LAUNCH_CHECK(gate_kernel);
  });
}

}  // namespace fusebench::kernels::naive
