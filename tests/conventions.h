// Small cases of odd extents that between them use every convention of an op.
#pragma once

#include <algorithm>
#include <vector>

#include "harness/op.h"

namespace fusebench::testing {

/// 2 batches of 7 tokens, head_dim 10, grouped heads.
inline Case small(Op op, std::int64_t heads = 6, std::int64_t kv_heads = 3) {
  return canonical({.op = op,
                    .dtype = DType::fp32,
                    .dim = 60,
                    .hidden = 37,
                    .heads = heads,
                    .kv_heads = kv_heads,
                    .batch = 2,
                    .seq = 7});
}

/// `small` with each number of kv heads, past, mask and pairing, in prefill and in decode.
inline std::vector<Case> conventions(Op op) {
  std::vector<Case> cases;
  for (const std::int64_t kv_heads : {1, 3, 6}) {
    for (const std::int64_t past : {0, 5}) {
      for (const std::int64_t seq : {7, 1}) {
        for (const bool causal : {false, true}) {
          for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
            Case c = small(op, 6, kv_heads);
            c.past = past;
            c.seq = seq;
            c.causal = causal;
            c.rope = pairing;
            c = canonical(c);
            if (std::find(cases.begin(), cases.end(), c) == cases.end()) cases.push_back(c);
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace fusebench::testing
