// The ops' parts, one function an op and style: each appends steps to a plan, given the tensors they work on, so that
// qkv, mlp and block are made of the others' parts. Tensors are dense and in the case's dtype, with the op's shapes
// (harness/op.h), unless they come as Columns.
#pragma once

#include <optional>

#include "variants/planning.h"

namespace fusebench {

struct Phases {
  TensorId cos, sin;
};

/// One tensor's heads for RoPE: `name` is q or k; row r of x goes to row out_rows(r) of out.
struct RopeTask {
  std::string name;
  Columns x;
  std::int64_t heads;
  TensorId out;
  RowMap out_rows;
};

/// Sums of squares of a tensor's rows, [T, parts], for a norm that is deferred (variants/deferred_norm.h).
struct RowSquares {
  TensorId tensor;
  std::int64_t parts;
};

struct QkvTensors {
  TensorId x, norm_weight, wq, wk, wv;
  Phases phases;
};
struct QkvResult {
  TensorId q, k;
  std::optional<TensorId> v;  ///< library_qkv alone may leave v where its product put it
};

struct MlpTensors {
  TensorId h, norm_weight, w_gate, w_up, w_down, out;
  std::optional<RowSquares> h_squares = {};  ///< where a fused product before has them
};

struct AttnOutTensors {
  TensorId a, wo, x, out;
  std::optional<RowSquares> out_squares = {};  ///< which fused_attn_out is to store
};

// rmsnorm.cc
void naive_rmsnorm(const Planning& p, TensorId x, TensorId weight, TensorId y);
void library_rmsnorm(const Planning& p, TensorId x, TensorId weight, TensorId y);
void fused_rmsnorm(const Planning& p, TensorId x, TensorId weight, TensorId y);

// add_rmsnorm.cc: out = a + b
void naive_add(const Planning& p, TensorId a, TensorId b, TensorId out);
void library_add(const Planning& p, TensorId a, TensorId b, TensorId out);

// rope.cc
void naive_rope(const Planning& p, const RopeTask& task, Phases phases);  ///< x dense
void library_rope(const Planning& p, const RopeTask& task, Phases phases);

// attention.cc
void naive_attention(const Planning& p, TensorId q, TensorId k, TensorId v, TensorId out);
void library_attention(const Planning& p, TensorId q, TensorId k, Columns v, TensorId out);
void fused_attention(const Planning& p, TensorId q, TensorId k, Columns v, TensorId out);

// qkv.cc
void naive_qkv(const Planning& p, const QkvTensors& in, const QkvResult& out);
Columns library_qkv(const Planning& p, const QkvTensors& in, const QkvResult& out);  ///< where v is
void fused_qkv(const Planning& p, const QkvTensors& in, const QkvResult& out);

// attn_out.cc
void naive_attn_out(const Planning& p, const AttnOutTensors& t);
void library_attn_out(const Planning& p, const AttnOutTensors& t);
void fused_attn_out(const Planning& p, const AttnOutTensors& t);

// swiglu.cc
void naive_swiglu(const Planning& p, TensorId g, TensorId u, TensorId y);
void library_swiglu(const Planning& p, Columns g, Columns u, TensorId y);  ///< g and u of one stride

// mlp.cc
void naive_mlp(const Planning& p, const MlpTensors& t);
void library_mlp(const Planning& p, const MlpTensors& t);
void fused_mlp(const Planning& p, const MlpTensors& t);
kernels::GemmKernel fused_gate_up_kernel(const Planning& p);  ///< which kernel reads h, and defers its norm or not

}  // namespace fusebench
