// The mathematics of every op, in double, from the formula. A Stack's lanes are computed side by side: a lane of
// Rounding::none is exact up to double's own rounding; another is rounded wherever an implementation that takes the
// formula one primitive step at a time would store: each intermediate in the lane's format, but squares, row
// statistics and attention scores in fp32. Sums always run in double.
//
// Weights are [out, in]. A token row t of a [batch, seq] tensor is t = b · seq + s. Rows given by `tokens` stand in
// that order. Nothing here is shared with the code that it judges.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/deviation.h"
#include "reference/matrix.h"
#include "reference/stack.h"

namespace fusebench::reference {

/// a · weightᵀ, stored
Stack product(const Stack& a, const Source& weight);

/// x + y, stored
Stack add(const Stack& x, const Stack& y);

/// x / sqrt(mean(x²) + eps) · weight
Stack rmsnorm(const Stack& x, const Vector& weight, double eps);

struct SumAndNorm {
  Stack h;  ///< x + r
  Stack y;  ///< rmsnorm of h as `stored` keeps it: the op is so defined, therefore in the exact lane too
};
SumAndNorm add_rmsnorm(const Stack& x, const Stack& r, const Vector& weight, double eps, Rounding stored);

/// Which elements of a head turn together: (2i, 2i + 1) or (i, i + d/2).
enum class Pairs : std::uint8_t { neighbours, halves };

/// The angles' cosines and sines, [positions, head_dim / 2].
struct Phases {
  Matrix cos;
  Matrix sin;
  Pairs pairs = Pairs::neighbours;
};

/// Turns every head of x's row i by the angles of row positions[i]: (a, b) -> (a·cos - b·sin, a·sin + b·cos)
Stack rope(const Stack& x, const Phases& phases, const std::vector<Index>& positions);

struct AttentionShape {
  Index seq = 1;   ///< queries a batch
  Index keys = 1;  ///< keys a batch
  Index heads = 1;
  Index kv_heads = 1;
  Index head_dim = 1;
  bool causal = false;
  Deviation deviation = Deviation::none;  ///< in mask or scale

  /// How many keys query s sees: the last query sees all, the one before it one less when causal.
  Index visible(Index s) const;
};

/// The first `count` keys (or values) of one batch and KV head, [count, head_dim].
using HeadReader = std::function<Matrix(Index lane, Index batch, Index kv_head, Index count)>;

/// Reads a head from a [batch · keys, kv_heads · head_dim] tensor.
HeadReader head_reader(const Source& source, const AttentionShape& shape);

/// softmax(q·kᵀ / sqrt(head_dim) + mask)·v for the queries `tokens`, whose rows q holds. Query head h reads KV head
/// h / (heads / kv_heads). A query without a visible key gives 0.
Stack attention(const Stack& q, const std::vector<Index>& tokens, const AttentionShape& shape, const HeadReader& keys,
                const HeadReader& values);

struct QkvWeights {
  Vector norm;
  double eps = 0;
  Source wq, wk, wv;
  Phases phases;
};
struct Qkv {
  Stack q, k, v;  ///< q and k turned
};
/// positions[i] is the row of the phases for x's row i.
Qkv qkv(const Stack& x, const QkvWeights& weights, const std::vector<Index>& positions);

/// x + a·woᵀ
Stack attn_out(const Stack& a, const Source& wo, const Stack& x, Deviation deviation = Deviation::none);

/// silu(g) · u, with silu(g) = g / (1 + exp(-g)) and its limit 0 at minus infinity
Stack swiglu(const Stack& g, const Stack& u);

struct MlpWeights {
  Vector norm;
  double eps = 0;
  Source w_gate, w_up, w_down;
};
/// h + (silu(n·w_gateᵀ) · (n·w_upᵀ))·w_downᵀ with n = rmsnorm(h)
Stack mlp(const Stack& h, const MlpWeights& weights, Deviation deviation = Deviation::none);

struct BlockWeights {
  QkvWeights qkv;
  Source wo;
  MlpWeights mlp;
};
struct BlockInputs {
  Source x;               ///< [batch · seq, dim]
  Source past_k, past_v;  ///< [batch · keys, kv_heads · head_dim], whose first keys - seq rows a batch are read
};
struct Block {
  Stack out, k, v;  ///< k and v: the tokens' own new keys and values
};
/// The whole block for the token rows `tokens`, in any order, once with each of the deviations. Keys and values are
/// computed for every token that one of them sees, and once for all deviations; everything else for them alone.
std::vector<Block> block(const BlockInputs& inputs, const BlockWeights& weights, const AttentionShape& shape,
                         const std::vector<Index>& tokens, const std::vector<Rounding>& roundings,
                         const std::vector<Deviation>& deviations = {Deviation::none});

}  // namespace fusebench::reference
