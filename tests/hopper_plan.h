// Shapes for which the Hopper product takes each of its tiles, so that every epilogue meets all of them.
#pragma once

#include <array>

#include "kernels/hopper_plan.h"
#include "tests/catch.h"

namespace fusebench::testing {

/// 132 multiprocessors.
constexpr kernels::cuda::HopperDevice kH200{.pairs = 66, .l2_bytes = 60 << 20};

struct HopperCase {
  kernels::cuda::HopperTileKind tile;
  bool beside;
  int parts;
  std::int64_t m, n, k;  ///< n is that of 4 and more heads of 128
};

/// With the plans of kH200.
constexpr std::array<HopperCase, 15> hopper_cases() {
  using enum kernels::cuda::HopperTileKind;
  return {{
      {turns, false, 1, 385, 8704, 72},  // of both widths
      {turns, true, 1, 257, 13056, 72},
      {large, false, 1, 385, 6400, 72},
      {large, true, 1, 300, 8704, 72},
      {part, false, 1, 193, 8704, 72},
      {part, true, 1, 600, 4352, 72},
      {medium_part, false, 1, 129, 4352, 72},
      {medium_part, true, 1, 66, 8704, 72},
      {small_part, true, 1, 66, 4352, 72},
      {small_part, false, 4, 66, 512, 4096},
      {token_turns, false, 1, 385, 10752, 72},
      {token_turns, true, 1, 257, 14848, 136},
      {token_part, false, 1, 129, 8704, 72},
      {token_part, true, 1, 257, 6144, 72},
      {token_part, false, 3, 129, 4352, 4096},
  }};
}

inline void check_chosen(const HopperCase& c, kernels::cuda::HopperDevice device) {
  const kernels::cuda::ChosenPlan chosen = kernels::cuda::choose_plan(c.m, c.n, c.k, c.parts > 1, device);
  CAPTURE(c.m, c.n, c.k, static_cast<int>(chosen.tile), chosen.plan.beside, chosen.plan.parts);
  CHECK((chosen.tile == c.tile && chosen.plan.beside == c.beside && chosen.plan.parts == c.parts));
}

}  // namespace fusebench::testing
