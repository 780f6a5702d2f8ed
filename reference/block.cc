// x -> qkv -> attention -> attn_out (+ x) -> mlp. Every op stores what its own file says.
#include <algorithm>
#include <map>
#include <span>

#include "reference/ops.h"

namespace fusebench::reference {
namespace {

// What bounds the memory beside the inputs: tokens whose keys and values are projected at a time, tokens that go
// through the rest of the block at a time, and bytes of keys and values held at a time (at least one batch's).
constexpr std::size_t kProjectedTokens = 512;
constexpr std::size_t kFinishedTokens = 256;
constexpr Index kHeldBytes = Index{1} << 30;

std::vector<Index> positions_of(std::span<const Index> tokens, Index seq) {
  std::vector<Index> positions(tokens.size());
  std::transform(tokens.begin(), tokens.end(), positions.begin(), [seq](Index token) { return token % seq; });
  return positions;
}

template <class Work>
void for_each_chunk(std::span<const Index> tokens, std::size_t size, const Work& work) {
  for (std::size_t first = 0; first < tokens.size(); first += size) {
    const auto chunk = tokens.subspan(first, std::min(size, tokens.size() - first));
    work(static_cast<Index>(first), std::vector<Index>(chunk.begin(), chunk.end()));
  }
}

/// Puts `part`'s rows at first_row of every lane of `whole`.
void put_rows(const Stack& part, Index first_row, Stack& whole) {
  for (Index l = 0; l < part.lanes(); ++l) whole.lane(l).middleRows(first_row, part.rows()) = part.lane(l);
}

/// The new keys and values of some batches: of the first tokens of each, as many as its queries see.
class NewKeysValues {
 public:
  NewKeysValues(const BlockInputs& inputs, const QkvWeights& weights, const AttentionShape& shape,
                const std::map<Index, Index>& seen_of_batch, const std::vector<Rounding>& roundings)
      : shape_(shape) {
    std::vector<Index> tokens;
    for (const auto& [batch, seen] : seen_of_batch) {
      first_row_[batch] = static_cast<Index>(tokens.size());
      for (Index s = 0; s < seen; ++s) tokens.push_back(batch * shape.seq + s);
    }
    const auto rows = static_cast<Index>(tokens.size());
    k_ = Stack(roundings, rows, weights.wk.rows);
    v_ = Stack(roundings, rows, weights.wv.rows);
    for_each_chunk(tokens, kProjectedTokens, [&](Index first, const std::vector<Index>& chunk) {
      const Stack n = rmsnorm(spread(gather(inputs.x, chunk), roundings), weights.norm, weights.eps);
      put_rows(rope(product(n, weights.wk), weights.phases, positions_of(chunk, shape.seq)), first, k_);
      put_rows(product(n, weights.wv), first, v_);
    });
  }

  HeadReader keys(const Source& past) const { return reader(k_, past); }
  HeadReader values(const Source& past) const { return reader(v_, past); }

  const Stack& k() const { return k_; }
  const Stack& v() const { return v_; }
  Index row_of(Index token) const { return first_row_.at(token / shape_.seq) + token % shape_.seq; }

 private:
  /// Past rows come from the cache, the others from `added`.
  HeadReader reader(const Stack& added, const Source& past) const {
    return [this, &added, &past](Index lane, Index batch, Index kv_head, Index count) {
      const Index first_col = kv_head * shape_.head_dim;
      const Index past_count = std::min(count, shape_.keys - shape_.seq);
      const Index new_count = count - past_count;
      Matrix out(count, shape_.head_dim);
      if (past_count > 0) past.read(batch * shape_.keys, past_count, first_col, shape_.head_dim, out.data());
      out.bottomRows(new_count) = added.lane(lane).block(first_row_.at(batch), first_col, new_count, shape_.head_dim);
      return out;
    };
  }

  AttentionShape shape_;
  std::map<Index, Index> first_row_;
  Stack k_, v_;
};

/// Of every batch that has one of the tokens: how many of its new tokens they see under any of the deviations,
/// themselves always included.
std::map<Index, Index> seen_tokens(const std::vector<Index>& tokens, AttentionShape shape,
                                   const std::vector<Deviation>& deviations) {
  std::map<Index, Index> seen;
  for (const Index token : tokens) {
    const Index s = token % shape.seq;
    Index& most = seen[token / shape.seq];
    most = std::max(most, s + 1);
    for (const Deviation deviation : deviations) {
      shape.deviation = deviation;
      most = std::max(most, shape.visible(s) - (shape.keys - shape.seq));
    }
  }
  return seen;
}

/// Batches whose new keys and values are held together.
std::vector<std::map<Index, Index>> grouped(const std::map<Index, Index>& seen, Index bytes_per_token) {
  std::vector<std::map<Index, Index>> groups;
  Index held = 0;
  for (const auto& [batch, count] : seen) {
    const Index bytes = count * bytes_per_token;
    if (groups.empty() || held + bytes > kHeldBytes) {
      groups.emplace_back();
      held = 0;
    }
    groups.back()[batch] = count;
    held += bytes;
  }
  return groups;
}

Stack rows_of(const Stack& from, const std::vector<Index>& rows) {
  Stack out(from.roundings, static_cast<Index>(rows.size()), from.cols());
  for (Index l = 0; l < out.lanes(); ++l) out.lane(l) = from.lane(l)(rows, Eigen::seqN(0, from.cols()));
  return out;
}

/// The block after its keys and values, for a few tokens.
Stack finish(const BlockInputs& inputs, const BlockWeights& weights, const AttentionShape& shape,
             const NewKeysValues& added, const std::vector<Index>& tokens, const std::vector<Rounding>& roundings) {
  const Stack x = spread(gather(inputs.x, tokens), roundings);
  const Stack n = rmsnorm(x, weights.qkv.norm, weights.qkv.eps);
  const Stack q = rope(product(n, weights.qkv.wq), weights.qkv.phases, positions_of(tokens, shape.seq));
  const Stack a = attention(q, tokens, shape, added.keys(inputs.past_k), added.values(inputs.past_v));
  return mlp(attn_out(a, weights.wo, x, shape.deviation), weights.mlp, shape.deviation);
}

/// The parts' rows become rows `places` of the whole.
void put(const Block& part, const std::vector<Index>& places, Block& whole) {
  const auto put_stack = [&](const Stack& from, Stack& to) {
    for (Index l = 0; l < to.lanes(); ++l) to.lane(l)(places, Eigen::seqN(0, to.cols())) = from.lane(l);
  };
  put_stack(part.out, whole.out);
  put_stack(part.k, whole.k);
  put_stack(part.v, whole.v);
}

}  // namespace

std::vector<Block> block(const BlockInputs& inputs, const BlockWeights& weights, const AttentionShape& shape,
                         const std::vector<Index>& tokens, const std::vector<Rounding>& roundings,
                         const std::vector<Deviation>& deviations) {
  const auto rows = static_cast<Index>(tokens.size());
  std::vector<Block> out(deviations.size(), {.out = Stack(roundings, rows, inputs.x.cols),
                                             .k = Stack(roundings, rows, weights.qkv.wk.rows),
                                             .v = Stack(roundings, rows, weights.qkv.wv.rows)});
  const Index bytes_per_token =
      2 * static_cast<Index>(roundings.size()) * weights.qkv.wk.rows * static_cast<Index>(sizeof(double));
  for (const std::map<Index, Index>& group : grouped(seen_tokens(tokens, shape, deviations), bytes_per_token)) {
    const NewKeysValues added(inputs, weights.qkv, shape, group, roundings);
    std::vector<Index> places;  // of the group's tokens in `tokens`
    for (Index i = 0; i < rows; ++i) {
      if (group.contains(tokens[static_cast<std::size_t>(i)] / shape.seq)) places.push_back(i);
    }
    for_each_chunk(places, kFinishedTokens, [&](Index /*first*/, const std::vector<Index>& chunk) {
      std::vector<Index> chunk_tokens(chunk.size());
      std::vector<Index> new_rows(chunk.size());
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        chunk_tokens[i] = tokens[static_cast<std::size_t>(chunk[i])];
        new_rows[i] = added.row_of(chunk_tokens[i]);
      }
      Block part{.out = {}, .k = rows_of(added.k(), new_rows), .v = rows_of(added.v(), new_rows)};
      for (std::size_t d = 0; d < deviations.size(); ++d) {
        AttentionShape deviating = shape;
        deviating.deviation = deviations[d];
        part.out = finish(inputs, weights, deviating, added, chunk_tokens, roundings);
        put(part, chunk, out[d]);
      }
    });
  }
  return out;
}

}  // namespace fusebench::reference
