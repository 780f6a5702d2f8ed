// Modelled bytes of every op and variant, against sums done by hand from what each step must touch.
#include "tests/catch.h"
#include "tests/host_run.h"
#include "tests/skip.h"
#include "variants/choose.h"
#include "variants/registry.h"

using namespace fusebench;

namespace {

using Bytes = std::int64_t;

/// What one op moves in each of the variants.
struct Moved {
  Bytes naive, library, fused;

  Moved operator+(const Moved& other) const {
    return {naive + other.naive, library + other.library, fused + other.fused};
  }
};

/// The sums. Names are of tensors: `q` is the bytes of q, `new_k` of the new rows of k or of v, `all_k` of the past's
/// too.
class ByHand {
 public:
  explicit ByHand(const Case& c)
      : e_(bytes_of(c.dtype)),
        dim_(c.dim),
        x_(c.tokens() * c.dim * e_),
        q_(c.tokens() * c.heads * c.head_dim() * e_),
        new_k_(c.tokens() * c.kv_heads * c.head_dim() * e_),
        all_k_(c.batch * c.keys() * c.kv_heads * c.head_dim() * e_),
        gate_(c.tokens() * c.hidden * e_),
        wq_(c.dim * c.heads * c.head_dim() * e_),
        wk_(c.dim * c.kv_heads * c.head_dim() * e_),
        w_gate_(c.dim * c.hidden * e_),
        table_(c.seq * (c.head_dim() / 2) * 4),
        pairs_(c.batch * c.heads * c.seq * c.keys()),
        token_stat_(c.tokens() * 4),
        query_stat_(c.batch * c.heads * c.seq * 4),
        past_(c.past),
        mlp_defers_(c.tokens() > 128 && c.dim % 32 == 0),
        qkv_defers_(mlp_defers_ && (c.past == 0 || c.batch == 1 || c.seq % 64 == 0)) {}

  Moved of(Op op) const {
    switch (op) {
      case Op::rmsnorm:
        return rmsnorm();
      case Op::add_rmsnorm:  // fused writes h and goes on with it; the others read it again
        return rmsnorm() + Moved{3 * x_, 3 * x_, 2 * x_};
      case Op::rope:
        return rope();
      case Op::attention:
        return attention();
      case Op::qkv:
        return qkv(true);
      case Op::attn_out:
        return residual_product(x_, wq_);
      case Op::swiglu:
        return swiglu();
      case Op::mlp:
        return mlp();
      case Op::block:
        return qkv(past_ > 0) + attention() + residual_product(x_, wq_) + mlp();
    }
    return {};
  }

  /// Of the block: the library's products around fused attention.
  Bytes library_flash() const { return of(Op::block).library - attention().library + attention().fused; }

  /// What deferring the norms, as Hopper's products do, takes off the fused variant.
  Bytes saved_by_deferring(Op op) const {
    const Bytes norm = rmsnorm().fused, fold = 4;
    const Bytes saved =
        norm - (x_ + token_stat_) - token_stat_ - fold;    // the rows' squares, summed by a step of their own
    const Bytes parts = token_stat_ * ((dim_ + 63) / 64);  // or by the product before
    if (op == Op::qkv) return qkv_defers_ ? saved : 0;
    if (op == Op::mlp) return mlp_defers_ ? saved : 0;
    if (op == Op::block) return (qkv_defers_ ? saved : 0) + (mlp_defers_ ? norm - 2 * parts - fold : 0);
    return 0;
  }

 private:
  /// naive: square; mean; rsqrt; x·rstd; ·w. Squares and row statistics are in fp32.
  Moved rmsnorm() const {
    const Bytes squares = x_ / e_ * 4;
    const Bytes naive =
        (x_ + squares) + (squares + token_stat_) + 2 * token_stat_ + (2 * x_ + token_stat_) + (2 * x_ + dim_ * e_);
    const Bytes one_pass = 2 * x_ + dim_ * e_;
    return {naive, one_pass, one_pass};
  }

  /// naive, on halves of a tensor: split; four products with a table; two sums; interleave.
  Moved rope() const {
    const auto naive = [&](Bytes x) { return 2 * x + 4 * (x + table_) + 2 * (3 * x / 2) + 2 * x; };
    const Bytes in_and_out = 2 * (q_ + new_k_);
    return {naive(q_) + naive(new_k_), in_and_out + 2 * 2 * table_, in_and_out + 2 * table_};
  }

  /// naive: scores; max; exp; sum; divide; ·v. The library: scores; softmax; ·v. Scores are in fp32, what follows not.
  Moved attention() const {
    const Bytes scores = 4 * pairs_;
    const Bytes p = e_ * pairs_;
    const Bytes naive = (q_ + all_k_ + scores) + (scores + query_stat_) + (scores + query_stat_ + p) +
                        (p + query_stat_) + (p + query_stat_ + p) + (p + all_k_ + q_);
    return {naive, (q_ + all_k_ + scores) + (scores + p) + (p + all_k_ + q_), 2 * q_ + 2 * all_k_};
  }

  /// The library merges the products, and copies v where it may not stay there.
  Moved qkv(bool v_is_output) const {
    const Bytes weights = wq_ + 2 * wk_;
    const Bytes outputs = q_ + 2 * new_k_;
    const Moved products = {3 * x_ + weights + outputs, x_ + weights + outputs + (v_is_output ? 2 * new_k_ : 0),
                            x_ + weights + outputs};
    // in the epilogue RoPE costs its tables alone
    return rmsnorm() + products + Moved{rope().naive, rope().library, 2 * table_};
  }

  /// naive stores the product, and adds in another pass.
  Moved residual_product(Bytes a, Bytes weight) const {
    const Bytes one_pass = a + weight + 2 * x_;
    return {(a + weight + x_) + 3 * x_, one_pass, one_pass};
  }

  /// naive: sigmoid; g·sigmoid; ·u.
  Moved swiglu() const { return {(2 + 3 + 3) * gate_, 3 * gate_, 3 * gate_}; }

  /// The library merges gate and up, and stores both; the fused epilogue stores their activation alone.
  Moved mlp() const {
    const Moved gate_up = {2 * (x_ + w_gate_ + gate_), x_ + 2 * w_gate_ + 2 * gate_, x_ + 2 * w_gate_ + gate_};
    return rmsnorm() + gate_up + Moved{swiglu().naive, swiglu().library, 0} + residual_product(gate_, w_gate_);
  }

  Bytes e_, dim_, x_, q_, new_k_, all_k_, gate_, wq_, wk_, w_gate_, table_, pairs_, token_stat_, query_stat_, past_;
  bool mlp_defers_, qkv_defers_;
};

struct Shape {
  const char* name;
  std::int64_t dim, hidden, heads, kv_heads, batch, seq, past;
};

constexpr Shape kShapes[] = {
    {"the seed's", 4096, 14336, 32, 32, 2, 2048, 0},
    {"grouped heads after a past", 4096, 14336, 32, 8, 2, 100, 300},
    {"decode", 4096, 14336, 32, 8, 16, 1, 2048},
    {"odd", 60, 37, 6, 3, 2, 7, 5},
    {"past 2^31 elements", 4096, 14336, 32, 8, 1, 600000, 0},
};

void check_backend(const Target& target, DType dtype) {
  for (const Shape& s : kShapes) {
    const Case full{.dtype = dtype,
                    .dim = s.dim,
                    .hidden = s.hidden,
                    .heads = s.heads,
                    .kv_heads = s.kv_heads,
                    .batch = s.batch,
                    .seq = s.seq,
                    .past = s.past};
    for (const Op op : kOps) {
      Case c = full;
      c.op = op;
      const Moved by_hand = ByHand(c).of(op);
      c = canonical(c);
      INFO(s.name << ": " << case_id(c) << " on " << name_of(target.backend));
      CHECK(testing::plan_of(c, "naive", target).modelled_bytes() == by_hand.naive);
      CHECK(testing::plan_of(c, std::string(library_name(target.backend)), target).modelled_bytes() == by_hand.library);
      const bool cuda = target.backend == Backend::cuda;
      CHECK(testing::plan_of(c, "fused", target).modelled_bytes() ==
            by_hand.fused - (cuda ? ByHand(full).saved_by_deferring(op) : 0));
      if (cuda && registry().find(op, target.backend, "fused.portable") != nullptr) {
        CHECK(testing::plan_of(c, "fused.portable", target).modelled_bytes() == by_hand.fused);
      }
      if (op != Op::block) continue;
      const std::string flash = std::string(library_name(target.backend)) + "_flash";
      CHECK(testing::plan_of(c, flash, target).modelled_bytes() == ByHand(full).library_flash());
    }
  }
}

}  // namespace

TEST_CASE("modelled bytes are those of the steps, by hand, on the CPU", "[ledger]") {
  check_backend(Target{}, DType::fp32);
}

TEST_CASE("modelled bytes are those of the steps, by hand, on CUDA", "[ledger]") {
  if (!is_built(Backend::cuda) && testing::skip("this build has no CUDA")) return;
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    check_backend({.backend = Backend::cuda, .compute_capability = 90, .multiprocessors = 132}, dtype);
  }
}
