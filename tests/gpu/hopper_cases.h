// The Hopper product's cases (tests/hopper_plan.h) on a device.
#pragma once

#include "kernels/fused.h"
#include "kernels/gemm_hopper.cuh"
#include "tests/gpu/device.h"
#include "tests/hopper_plan.h"

namespace fusebench::testing {

/// f(case, kernel) for each case, whose kernel has memory for part sums where there are parts. Whether a case is what
/// it says is checked where the device is as large as kH200.
template <typename F>
void for_hopper_cases(F&& f) {
  DeviceBuffer<float> sums = part_sums_buffer();
  const kernels::cuda::HopperDevice device = kernels::cuda::hopper_device();
  for (const HopperCase& c : hopper_cases()) {
    if (device.pairs == kH200.pairs) check_chosen(c, device);
    f(c, kernels::ProductKernel{kernels::GemmKernel::hopper, c.parts > 1 ? sums.data() : nullptr});
  }
}

}  // namespace fusebench::testing
