// A place in a ring of shared-memory stages that one side fills and the other empties.
#pragma once

#include <cstdint>

namespace fusebench::kernels::cuda {

/// A stage, and the parity of its barriers' phase.
template <int Stages>
struct RingPlace {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage < Stages) return;
    stage = 0;
    parity ^= 1;
  }
  /// By `count` places.
  __device__ __forceinline__ void advance(int count) {
    const int to = stage + count;
    stage = to % Stages;
    parity ^= to / Stages & 1;
  }
};

}  // namespace fusebench::kernels::cuda
