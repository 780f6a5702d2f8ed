// Split the pairs of a head into firsts and seconds; multiply by cos or sin; put the rotated pairs together again.
// One thread a pair; x is [rows, heads, 2·half_dim], the parts are [rows, heads, half_dim].
#include "kernels/naive/map.cuh"
#include "kernels/naive/steps.h"

namespace fusebench::kernels::naive {
namespace {

struct PairPlace {
  std::int64_t first;
  std::int64_t second;
};

// Where pair i of a head whose elements start at `head` lies.
__device__ PairPlace place_of(Pairing pairing, std::int64_t head, std::int64_t i, std::int64_t half_dim) {
  if (pairing == Pairing::interleaved) return {head + 2 * i, head + 2 * i + 1};
  return {head + i, head + i + half_dim};
}

template <class T>
__global__ void split_pairs_kernel(Pairing pairing, const T* x, T* first, T* second, std::int64_t n,
                                   std::int64_t half_dim) {
  for_each(n, [=](std::int64_t i) {
    const PairPlace place = place_of(pairing, i / half_dim * (2 * half_dim), i % half_dim, half_dim);
    first[i] = x[place.first];
    second[i] = x[place.second];
  });
}

template <class T>
__global__ void multiply_by_phase_kernel(const T* x, const float* table, T* out, std::int64_t n, std::int64_t heads,
                                         std::int64_t half_dim, std::int64_t seq) {
  for_each(n, [=](std::int64_t i) {
    const std::int64_t position = i / (heads * half_dim) % seq;
    store(out, i, load(x, i) * table[position * half_dim + i % half_dim]);
  });
}

template <class T>
__global__ void merge_pairs_kernel(Pairing pairing, const T* first, const T* second, T* x, std::int64_t n,
                                   std::int64_t heads, std::int64_t half_dim, RowMap x_rows) {
  for_each(n, [=](std::int64_t i) {
    const std::int64_t row = i / (heads * half_dim);
    const std::int64_t head = i / half_dim % heads;
    const std::int64_t start = (x_rows(row) * heads + head) * (2 * half_dim);
    const PairPlace place = place_of(pairing, start, i % half_dim, half_dim);
    x[place.first] = first[i];
    x[place.second] = second[i];
  });
}

}  // namespace

void split_pairs(const Exec& exec, DType dtype, Pairing pairing, const void* x, void* first, void* second,
                 std::int64_t rows, std::int64_t heads, std::int64_t half_dim) {
  const std::int64_t n = rows * heads * half_dim;
  dispatch(dtype, [&]<class T>() {
    split_pairs_kernel<<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(
        pairing, static_cast<const T*>(x), static_cast<T*>(first), static_cast<T*>(second), n, half_dim);
    FUSEBENCH_LAUNCH_CHECK(split_pairs_kernel);
  });
}

void multiply_by_phase(const Exec& exec, DType dtype, const void* x, const float* table, void* out, std::int64_t rows,
                       std::int64_t heads, std::int64_t half_dim, std::int64_t seq) {
  const std::int64_t n = rows * heads * half_dim;
  dispatch(dtype, [&]<class T>() {
    multiply_by_phase_kernel<<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(
        static_cast<const T*>(x), table, static_cast<T*>(out), n, heads, half_dim, seq);
    FUSEBENCH_LAUNCH_CHECK(multiply_by_phase_kernel);
  });
}

void merge_pairs(const Exec& exec, DType dtype, Pairing pairing, const void* first, const void* second, void* x,
                 std::int64_t rows, std::int64_t heads, std::int64_t half_dim, RowMap x_rows) {
  const std::int64_t n = rows * heads * half_dim;
  dispatch(dtype, [&]<class T>() {
    merge_pairs_kernel<<<grid_for(n, threads_per_block), threads_per_block, 0, stream_of(exec)>>>(
        pairing, static_cast<const T*>(first), static_cast<const T*>(second), static_cast<T*>(x), n, heads, half_dim,
        x_rows);
    FUSEBENCH_LAUNCH_CHECK(merge_pairs_kernel);
  });
}

}  // namespace fusebench::kernels::naive
