// The parts of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), whose i-th
// word is mix(key + i * kMixStride). Host and device compute the same bits.
#pragma once

#include <cstdint>

namespace fusebench {

inline constexpr std::uint64_t kMixStride = 0x9e3779b97f4a7c15U;

/// A bijection in which each input bit flips each output bit half of the time; 0 stays 0.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace fusebench
