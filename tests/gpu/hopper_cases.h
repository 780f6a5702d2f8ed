// Shapes for which the Hopper product takes each of its tiles, so that every epilogue meets all of them.
#pragma once

#include <array>

#include "kernels/fused.h"
#include "kernels/gemm_hopper.cuh"
#include "tests/catch.h"
#include "tests/gpu/device.h"

namespace fusebench::testing {

struct HopperCase {
  kernels::cuda::HopperTileKind tile;
  bool beside;
  int parts;
  std::int64_t m, n, k;  ///< n is that of 4 and more heads of 128
};

/// The plans are those of 132 multiprocessors.
inline std::array<HopperCase, 10> hopper_cases() {
  using enum kernels::cuda::HopperTileKind;
  return {{
      {turns, false, 1, 385, 8704, 72},  // of both widths
      {turns, true, 1, 257, 13056, 72},
      {large, false, 1, 129, 12800, 72},
      {large, true, 1, 300, 8704, 72},
      {part, false, 1, 129, 8704, 72},
      {part, true, 1, 300, 6400, 72},
      {medium_part, false, 1, 129, 4352, 72},
      {medium_part, true, 1, 66, 8704, 72},
      {small_part, true, 1, 66, 4352, 72},
      {small_part, false, 4, 66, 512, 4096},
  }};
}

/// Whether the case is what it says, checked where the device is as large as that.
inline void check_chosen(const HopperCase& c) {
  if (kernels::multiprocessors() != 132) return;
  const kernels::cuda::ChosenPlan chosen = kernels::cuda::choose_plan(c.m, c.n, c.k, c.parts > 1);
  CAPTURE(c.m, c.n, c.k, static_cast<int>(chosen.tile), chosen.plan.beside, chosen.plan.parts);
  CHECK((chosen.tile == c.tile && chosen.plan.beside == c.beside && chosen.plan.parts == c.parts));
}

/// f(case, kernel) for each case, whose kernel has memory for part sums where there are parts.
template <typename F>
void for_hopper_cases(F&& f) {
  DeviceBuffer<float> sums(kernels::part_sums_bytes(kernels::multiprocessors(), 1, 1) / sizeof(float));
  for (const HopperCase& c : hopper_cases()) {
    check_chosen(c);
    f(c, kernels::ProductKernel{kernels::GemmKernel::hopper, c.parts > 1 ? sums.data() : nullptr});
  }
}

}  // namespace fusebench::testing
