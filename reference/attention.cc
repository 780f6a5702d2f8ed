// Stored: scores q·k / sqrt(head_dim) (fp32), their row's maximum (fp32), exp(score - maximum), its row's sum (fp32),
// the quotients, and their product with v.
#include <algorithm>
#include <cmath>
#include <map>

#include "reference/ops.h"
#include "reference/parallel.h"

namespace fusebench::reference {
namespace {

/// The queries of one batch: rows of q, and how many keys each one sees.
struct Queries {
  std::vector<Index> rows;
  std::vector<Index> visible;
  Index most_visible = 0;
};

std::map<Index, Queries> by_batch(const std::vector<Index>& tokens, const AttentionShape& shape) {
  std::map<Index, Queries> batches;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Queries& queries = batches[tokens[i] / shape.seq];
    queries.rows.push_back(static_cast<Index>(i));
    queries.visible.push_back(shape.visible(tokens[i] % shape.seq));
    queries.most_visible = std::max(queries.most_visible, queries.visible.back());
  }
  return batches;
}

/// In place, over the visible scores of one row, which are at least one.
void softmax(double* scores, Index visible, Rounding format) {
  Eigen::Map<Eigen::ArrayXd> row(scores, visible);
  const double max = row.maxCoeff<Eigen::PropagateNaN>();
  row = (row - max).unaryExpr([](double x) { return std::exp(x); });
  round_all(format, row);
  const double sum = rounded(statistics(format), row.sum());
  row /= sum;
  round_all(format, row);
}

/// Keys that a query does not see are left out: times a probability of 0, an infinite value would be NaN.
Matrix weigh(const Matrix& probabilities, const Matrix& values, const Queries& queries) {
  if (values.allFinite()) return probabilities * values;
  Matrix out(probabilities.rows(), values.cols());
  for (Index i = 0; i < out.rows(); ++i) {
    const Index visible = queries.visible[static_cast<std::size_t>(i)];
    out.row(i) = probabilities.row(i).head(visible) * values.topRows(visible);
  }
  return out;
}

Matrix attend(const Matrix& q, const Matrix& keys, const Matrix& values, const Queries& queries, Deviation deviation,
              Rounding format) {
  const Index head_dim = q.cols();
  Matrix scores = q * keys.transpose();
  if (deviation != Deviation::scores_not_scaled) scores /= std::sqrt(static_cast<double>(head_dim));
  round_all(statistics(format), scores);
  for (Index i = 0; i < scores.rows(); ++i) {
    const Index visible = queries.visible[static_cast<std::size_t>(i)];
    if (visible > 0) softmax(&scores(i, 0), visible, format);
    scores.row(i).tail(scores.cols() - visible).setZero();
  }
  Matrix out = weigh(scores, values, queries);
  round_all(format, out);
  return out;
}

}  // namespace

Index AttentionShape::visible(Index s) const {
  const Index shift = deviation == Deviation::one_key_less ? -1 : deviation == Deviation::one_key_more ? 1 : 0;
  return std::clamp<Index>((causal ? keys - seq + s + 1 : keys) + shift, 0, keys);
}

HeadReader head_reader(const Source& source, const AttentionShape& shape) {
  return [source, shape](Index /*lane*/, Index batch, Index kv_head, Index count) {
    return source.block(batch * shape.keys, count, kv_head * shape.head_dim, shape.head_dim);
  };
}

Stack attention(const Stack& q, const std::vector<Index>& tokens, const AttentionShape& shape, const HeadReader& keys,
                const HeadReader& values) {
  Stack out(q.roundings, q.rows(), q.cols());
  const std::map<Index, Queries> batches = by_batch(tokens, shape);
  const std::vector<std::pair<Index, Queries>> units(batches.begin(), batches.end());
  const Index group = shape.heads / shape.kv_heads;
  const Index per_batch = q.lanes() * shape.kv_heads;
  for_each_index(static_cast<Index>(units.size()) * per_batch, [&](Index i) {
    const auto& [batch, queries] = units[static_cast<std::size_t>(i / per_batch)];
    const Index lane = i % per_batch / shape.kv_heads;
    const Index kv_head = i % shape.kv_heads;
    const Matrix k = keys(lane, batch, kv_head, queries.most_visible);
    const Matrix v = values(lane, batch, kv_head, queries.most_visible);
    for (Index head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const Index first_col = head * shape.head_dim;
      Matrix rows(static_cast<Index>(queries.rows.size()), shape.head_dim);
      for (Index r = 0; r < rows.rows(); ++r) {
        rows.row(r) = q.lane(lane).row(queries.rows[static_cast<std::size_t>(r)]).segment(first_col, shape.head_dim);
      }
      const Matrix attended = attend(rows, k, v, queries, shape.deviation, q.roundings[static_cast<std::size_t>(lane)]);
      for (Index r = 0; r < rows.rows(); ++r) {
        out.lane(lane).row(queries.rows[static_cast<std::size_t>(r)]).segment(first_col, shape.head_dim) =
            attended.row(r);
      }
    }
  });
  return out;
}

}  // namespace fusebench::reference
