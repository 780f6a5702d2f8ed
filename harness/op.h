// Ops and cases. A case decides an op's inputs to the last bit: op, shape, dtype, conventions and seed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.h"

namespace fusebench {

enum class Op : std::uint8_t { rmsnorm, add_rmsnorm, rope, attention, qkv, attn_out, swiglu, mlp, block };

inline constexpr std::array<Op, 9> kOps = {Op::rmsnorm,  Op::add_rmsnorm, Op::rope, Op::attention, Op::qkv,
                                           Op::attn_out, Op::swiglu,      Op::mlp,  Op::block};

std::string_view name_of(Op op);

enum class Inputs : std::uint8_t { balanced, seed };

constexpr std::string_view name_of(Inputs inputs) { return inputs == Inputs::seed ? "seed" : "balanced"; }

/// Which keys of the configuration an op's mathematics reads.
struct OpUses {
  bool dim, hidden, heads, past, causal, rope, eps;
};
OpUses uses_of(Op op);

/// One point of a sweep. Fields that the op does not use are 0 (or false): see canonical().
struct Case {
  Op op = Op::rmsnorm;
  DType dtype = DType::fp16;
  std::int64_t dim = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  std::int64_t past = 0;
  bool causal = false;
  Pairing rope = Pairing::interleaved;
  double rope_theta = 500000;
  double eps = 1e-5;
  Inputs inputs = Inputs::balanced;
  std::uint64_t seed = 42;

  std::int64_t tokens() const { return batch * seq; }
  std::int64_t keys() const { return past + seq; }
  std::int64_t head_dim() const { return heads == 0 ? 0 : dim / heads; }
  RowMap kv_rows() const { return {.seq = seq, .capacity = keys(), .past = past}; }
  AttentionShape attention() const {
    return {.batch = batch,
            .seq = seq,
            .keys = keys(),
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim(),
            .causal = causal};
  }
  bool operator==(const Case&) const = default;
};

/// The case with every field that its op does not use set to its default, so that equal work has equal cases.
Case canonical(Case c);

/// Readable and stable: block/fp16/d4096-f14336-h32-kv8/b2-s2048-p0/causal-half/balanced-42. Segments and fields that
/// the op does not use are left out; rope_theta and eps are named where they differ from 500000 and 1e-5.
std::string case_id(const Case& c);

enum class Role : std::uint8_t {
  input,
  output,
  cache,  ///< the KV cache with past > 0: its past rows are input, its new rows (RowMap) output
};

/// One tensor of an op's signature, as a dense row-major matrix whose rows are what is drawn, stored and checked.
struct TensorSpec {
  std::string name;
  Role role = Role::input;
  DType dtype = DType::fp16;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::vector<std::int64_t> dims;  ///< for people: [B, S, H, d]
  std::int64_t read_bytes = 0;     ///< compulsory
  std::int64_t write_bytes = 0;    ///< compulsory
  RowMap output_rows;              ///< token row -> row of this tensor; identity but for a cache

  std::int64_t bytes() const { return rows * cols * bytes_of(dtype); }
};

/// What an op reads and writes, and its matrix products' FLOPs (causal attention counts visible pairs exactly).
///   rmsnorm      x, weight -> y
///   add_rmsnorm  x, r, weight -> h, y
///   rope         q, k, cos, sin -> q_out, k_out
///   attention    q, k, v -> out                        k, v: [B, P+S, Hkv, d]
///   qkv          x, norm_weight, wq, wk, wv, cos, sin -> q, k, v    k, v: [B, P+S, Hkv, d], caches where P > 0
///   attn_out     a, wo, x -> out
///   swiglu       g, u -> y
///   mlp          h, norm_weight, w_gate, w_up, w_down -> out
///   block        x, norm1_weight, wq, wk, wv, cos, sin, wo, norm2_weight, w_gate, w_up, w_down,
///                [k, v: caches where P > 0] -> out
/// cos and sin are [S, d/2] in fp32, for positions P .. P+S-1.
/// spec_of takes a canonical case, and throws std::overflow_error where bytes would pass 2^63.
struct OpSpec {
  std::vector<TensorSpec> tensors;
  double flops = 0;
  std::int64_t compulsory_bytes = 0;
  std::int64_t compulsory_write_bytes = 0;  ///< the part of them that is written

  const TensorSpec& tensor(std::string_view name) const;  ///< throws std::out_of_range
};
OpSpec spec_of(const Case& c);

}  // namespace fusebench
