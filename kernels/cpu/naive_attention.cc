// scores = q·kᵀ / sqrt(head_dim), masked; row max; exp(score - max); row sum; divide; · v.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/cpu/fp32.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/naive_product.h"
#include "kernels/cpu/parallel.h"

namespace fusebench::kernels::cpu_naive {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// A row of [batch, heads, seq, keys], and where its query and its keys' and values' head start.
struct ScoreRow {
  std::int64_t query = 0;
  std::int64_t first_key = 0;
  std::int64_t key_stride = 0;
  std::int64_t visible_keys = 0;
};

ScoreRow score_row(const AttentionShape& shape, std::int64_t row) {
  const std::int64_t s = row % shape.seq;
  const std::int64_t h = row / shape.seq % shape.heads;
  const std::int64_t b = row / shape.seq / shape.heads;
  const std::int64_t kv_head = h / (shape.heads / shape.kv_heads);
  return {.query = ((b * shape.seq + s) * shape.heads + h) * shape.head_dim,
          .first_key = (b * shape.keys * shape.kv_heads + kv_head) * shape.head_dim,
          .key_stride = shape.kv_heads * shape.head_dim,
          .visible_keys = shape.causal ? std::max<std::int64_t>(0, shape.keys - shape.seq + s + 1) : shape.keys};
}

}  // namespace

void scores(const Exec& /*exec*/, DType dtype, const void* q, const void* k, float* scores, AttentionShape shape) {
  require_fp32(dtype);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  const std::int64_t rows = shape.batch * shape.heads * shape.seq;
  parallel_for(rows, grain_for(shape.keys), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const ScoreRow place = score_row(shape, row);
      const float* query = fp32(q) + place.query;
      const float* key_head = fp32(k) + place.first_key;
      for (std::int64_t key = 0; key < shape.keys; ++key) {
        const float score = scale * dot(query, key_head + key * place.key_stride, shape.head_dim);
        scores[row * shape.keys + key] = key < place.visible_keys ? score : -infinity;
      }
    }
  });
}

void row_max(const Exec& /*exec*/, const float* x, float* max, std::int64_t rows, std::int64_t cols) {
  parallel_for(rows, grain_for(cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      max[row] = *std::max_element(x + row * cols, x + (row + 1) * cols);
    }
  });
}

// A masked score gives 0 also where no key is visible and the maximum is -inf itself: -inf - -inf would be NaN.
void exp_minus_max(const Exec& /*exec*/, DType dtype, const float* scores, const float* max, void* out_data,
                   std::int64_t rows, std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=, out = fp32(out_data)](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) {
        out[i] = scores[i] == -infinity ? 0.0F : std::exp(scores[i] - max[row]);
      }
    }
  });
}

void row_sum(const Exec& /*exec*/, DType dtype, const void* x_data, float* sum, std::int64_t rows, std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols), [=, x = fp32(x_data)](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double total = 0;
      for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) total += static_cast<double>(x[i]);
      sum[row] = static_cast<float>(total);
    }
  });
}

// The sum is 0 only where no key is visible: elsewhere the largest score alone adds 1.
void divide_rows(const Exec& /*exec*/, DType dtype, const void* x_data, const float* sum, void* out_data,
                 std::int64_t rows, std::int64_t cols) {
  require_fp32(dtype);
  parallel_for(rows, grain_for(cols),
               [=, x = fp32(x_data), out = fp32(out_data)](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) {
                   for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i)
                     out[i] = sum[row] == 0.0F ? 0.0F : x[i] / sum[row];
                 }
               });
}

// Masked keys are left out rather than multiplied by 0, which would make NaN of an infinite value.
void weighted_values(const Exec& /*exec*/, DType dtype, const void* probabilities, const void* v, void* out,
                     AttentionShape shape) {
  require_fp32(dtype);
  if (shape.value_stride != 0) throw std::invalid_argument("naive attention takes dense values alone");
  const std::int64_t rows = shape.batch * shape.heads * shape.seq;
  parallel_for(rows, grain_for(shape.keys), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const ScoreRow place = score_row(shape, row);
      const float* weights = fp32(probabilities) + row * shape.keys;
      float* sum = fp32(out) + place.query;
      std::fill_n(sum, shape.head_dim, 0.0F);
      for (std::int64_t key = 0; key < place.visible_keys; ++key) {
        const float* value = fp32(v) + place.first_key + key * place.key_stride;
        for (std::int64_t d = 0; d < shape.head_dim; ++d) sum[d] += weights[key] * value[d];
      }
    }
  });
}

}  // namespace fusebench::kernels::cpu_naive
