// Cosine and sine of RoPE's angles, with the same bits on every machine.
#pragma once

#include <cstdint>

namespace fusebench {

struct CosSin {
  double cos = 1;
  double sin = 0;
};

/// theta^(-2·pair/head_dim), for theta >= 1, within a few units in the last place of a double.
double rope_frequency(double theta, std::int64_t pair, std::int64_t head_dim);

/// Of a phase in radians, for phases in [0, 2^50], within 1e-15.
CosSin cos_sin(double phase);

}  // namespace fusebench
