// Mistakes in the formula, made on purpose: what they give is what a check must reject.
#pragma once

#include <cstdint>

namespace fusebench::reference {

/// `none` is the formula, and what every op does unless it is told otherwise.
enum class Deviation : std::uint8_t {
  none,
  one_key_less,  ///< every query sees one key less than it should
  one_key_more,  ///< and one more, where there is one
  scores_not_scaled,
  no_attention_residual,  ///< attn_out adds no x
  no_mlp_residual,        ///< mlp adds no h
};

}  // namespace fusebench::reference
