// Split the pairs of a head into firsts and seconds; multiply by cos or sin; put the rotated pairs together again.
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu_naive {

void split_pairs(const Exec& /*exec*/, DType dtype, Pairing pairing, const void* x_data, void* first_data,
                 void* second_data, std::int64_t rows, std::int64_t heads, std::int64_t half_dim) {
  require_fp32(dtype);
  const std::int64_t step = pairing == Pairing::interleaved ? 2 : 1;
  const std::int64_t apart = pairing == Pairing::interleaved ? 1 : half_dim;
  parallel_for(rows * heads, grain_for(2 * half_dim), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      const float* x = fp32(x_data) + head * 2 * half_dim;
      float* first = fp32(first_data) + head * half_dim;
      float* second = fp32(second_data) + head * half_dim;
      for (std::int64_t i = 0; i < half_dim; ++i) {
        first[i] = x[i * step];
        second[i] = x[i * step + apart];
      }
    }
  });
}

void multiply_by_phase(const Exec& /*exec*/, DType dtype, const void* x_data, const float* table, void* out_data,
                       std::int64_t rows, std::int64_t heads, std::int64_t half_dim, std::int64_t seq) {
  require_fp32(dtype);
  parallel_for(rows * heads, grain_for(half_dim), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      const float* x = fp32(x_data) + head * half_dim;
      const float* phase = table + head / heads % seq * half_dim;
      float* out = fp32(out_data) + head * half_dim;
      for (std::int64_t i = 0; i < half_dim; ++i) out[i] = x[i] * phase[i];
    }
  });
}

void merge_pairs(const Exec& /*exec*/, DType dtype, Pairing pairing, const void* first_data, const void* second_data,
                 void* x_data, std::int64_t rows, std::int64_t heads, std::int64_t half_dim, RowMap x_rows) {
  require_fp32(dtype);
  const std::int64_t step = pairing == Pairing::interleaved ? 2 : 1;
  const std::int64_t apart = pairing == Pairing::interleaved ? 1 : half_dim;
  parallel_for(rows * heads, grain_for(2 * half_dim), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      const float* first = fp32(first_data) + head * half_dim;
      const float* second = fp32(second_data) + head * half_dim;
      float* x = fp32(x_data) + (x_rows(head / heads) * heads + head % heads) * 2 * half_dim;
      for (std::int64_t i = 0; i < half_dim; ++i) {
        x[i * step] = first[i];
        x[i * step + apart] = second[i];
      }
    }
  });
}

}  // namespace fusebench::kernels::cpu_naive
