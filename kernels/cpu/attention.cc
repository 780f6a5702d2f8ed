// softmax(q·kᵀ / sqrt(head_dim) + mask)·v with online softmax: a tile of queries walks over tiles of keys and keeps its
// running maximum, sum and output (Milakov and Gimelshein 2018; Dao et al. 2022). The query heads that share a kv head
// are rows of the same tile, so that keys and values are read once for all of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "kernels/cpu/eigen.h"
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"

namespace fusebench::kernels::cpu {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using StridedMap = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

constexpr std::int64_t query_tile = 64;
constexpr std::int64_t key_tile = 128;

// Rows (s, g) of one batch and kv head, g being the query head's place within its group: row = s · group + g.
class QueryTile {
 public:
  QueryTile(const AttentionShape& shape, std::int64_t b, std::int64_t kv_head, std::int64_t first_row,
            std::int64_t rows)
      : shape_(shape), b_(b), kv_head_(kv_head), first_row_(first_row), rows_(rows) {}

  void compute(const float* q, const float* k, const float* v, float* out) {
    start(q);
    const std::int64_t last = visible(rows_ - 1);
    for (std::int64_t key0 = 0; key0 < last; key0 += key_tile) {
      const std::int64_t keys = std::min(key_tile, last - key0);
      add_keys(rows_of(k, shape_.key_stride(), key0, keys), rows_of(v, shape_.resolved_value_stride(), key0, keys),
               key0);
    }
    finish(out);
  }

 private:
  std::int64_t group() const { return shape_.heads / shape_.kv_heads; }
  std::int64_t visible(std::int64_t i) const { return visible_keys(shape_, (first_row_ + i) / group()); }

  // `keys` rows of k or v from key0 on.
  StridedMap rows_of(const float* x, std::int64_t stride, std::int64_t key0, std::int64_t keys) const {
    const float* first = x + (b_ * shape_.keys + key0) * stride + kv_head_ * shape_.head_dim;
    return {first, keys, shape_.head_dim, Eigen::OuterStride<>(stride)};
  }

  // The offset of row i in q and out.
  std::int64_t offset(std::int64_t i) const {
    const std::int64_t s = (first_row_ + i) / group();
    const std::int64_t head = kv_head_ * group() + (first_row_ + i) % group();
    return ((b_ * shape_.seq + s) * shape_.heads + head) * shape_.head_dim;
  }

  void start(const float* q) {
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape_.head_dim)));
    query_.resize(rows_, shape_.head_dim);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const float* row = q + offset(i);
      for (std::int64_t d = 0; d < shape_.head_dim; ++d) query_(i, d) = scale * row[d];
    }
    output_.setZero(rows_, shape_.head_dim);
    max_.fill(-std::numeric_limits<float>::infinity());
    sum_.fill(0.0F);
  }

  template <class Keys, class Values>
  void add_keys(const Keys& keys, const Values& values, std::int64_t key0) {
    weights_.noalias() = query_ * keys.transpose();
    bool all_visible = true;
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t count = std::clamp<std::int64_t>(visible(i) - key0, 0, keys.rows());
      all_visible = all_visible && count == keys.rows();
      if (count > 0) weigh(i, count);
    }
    if (all_visible) {
      output_.noalias() += weights_ * values;
      return;
    }
    // Masked keys are left out rather than multiplied by 0, which would make NaN of an infinite value.
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t count = std::clamp<std::int64_t>(visible(i) - key0, 0, keys.rows());
      if (count > 0) output_.row(i).noalias() += weights_.row(i).head(count) * values.topRows(count);
    }
  }

  // Turns the first `count` scores of row i into weights relative to the new maximum, and rescales what came before.
  void weigh(std::int64_t i, std::int64_t count) {
    float* row = weights_.data() + i * weights_.cols();
    const float max = std::max(max_[i], max_of(row, count));
    const float correction = exp_fp32(max_[i] - max);
    const float sum = exp_minus(row, max, row, count);
    sum_[i] = sum_[i] * correction + sum;
    max_[i] = max;
    if (correction != 1.0F) scale_in_place(output_.data() + i * shape_.head_dim, correction, shape_.head_dim);
  }

  // A row whose sum is 0 has seen no key, and its output is still 0.
  void finish(float* out) const {
    for (std::int64_t i = 0; i < rows_; ++i) {
      const float factor = sum_[i] == 0.0F ? 0.0F : 1.0F / sum_[i];
      float* row = out + offset(i);
      for (std::int64_t d = 0; d < shape_.head_dim; ++d) row[d] = factor * output_(i, d);
    }
  }

  // Memory is kept from tile to tile.
  static thread_local Matrix query_;
  static thread_local Matrix weights_;
  static thread_local Matrix output_;

  AttentionShape shape_;
  std::int64_t b_;
  std::int64_t kv_head_;
  std::int64_t first_row_;
  std::int64_t rows_;
  std::array<float, query_tile> max_{};
  std::array<float, query_tile> sum_{};
};

thread_local Matrix QueryTile::query_;
thread_local Matrix QueryTile::weights_;
thread_local Matrix QueryTile::output_;

}  // namespace

void attention(const Exec& /*exec*/, AttentionKernel kernel, DType dtype, const void* q, const void* k, const void* v,
               void* out, AttentionShape shape) {
  require_fp32(dtype);
  if (kernel != AttentionKernel::cpu) throw std::invalid_argument("CPU attention was asked for a GPU's kernel");
  const std::int64_t rows = shape.seq * (shape.heads / shape.kv_heads);
  const std::int64_t tiles = ceil_div(rows, query_tile);
  parallel_for(shape.batch * shape.kv_heads * tiles, 1, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first_row = t % tiles * query_tile;
      const std::int64_t kv_head = t / tiles % shape.kv_heads;
      const std::int64_t b = t / tiles / shape.kv_heads;
      QueryTile(shape, b, kv_head, first_row, std::min(query_tile, rows - first_row))
          .compute(fp32(q), fp32(k), fp32(v), fp32(out));
    }
  });
}

}  // namespace fusebench::kernels::cpu
