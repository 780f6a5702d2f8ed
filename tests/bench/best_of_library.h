// The library's best against which the Hopper product is timed.
#pragma once

#include <cstdint>
#include <functional>

namespace fusebench::bench {

/// Launches c[m, n] = a[m, k] · weight[n, k]ᵀ in fp16, on the default stream, by the fastest of cuBLASLt's heuristics,
/// each timed over launches on end.
std::function<void()> best_of_library(const void* a, const void* weight, void* c, std::int64_t m, std::int64_t n,
                                      std::int64_t k);

}  // namespace fusebench::bench
