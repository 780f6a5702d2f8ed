// Which bytes fill_some fills, the same on host and device.
#pragma once

#include <cstdint>

#include "harness/mix.h"

namespace fusebench {

inline constexpr int kFilledStretches = 64;
inline constexpr std::int64_t kStretchBytes = 32;  // one sector of a cache line, and whole elements of any dtype

/// Where the i-th stretch begins: whole elements from the start. All of it lies inside where `bytes` has the room, and
/// the last one ends with them.
constexpr std::int64_t stretch_offset(std::int64_t bytes, std::uint64_t seed, std::uint64_t i) {
  if (bytes <= kStretchBytes) return 0;
  if (i == kFilledStretches - 1) return bytes - kStretchBytes;
  const auto places = static_cast<std::uint64_t>((bytes - kStretchBytes) / 4 + 1);
  return 4 * static_cast<std::int64_t>(mix(mix(seed + kMixStride) + i * kMixStride) % places);
}

}  // namespace fusebench
