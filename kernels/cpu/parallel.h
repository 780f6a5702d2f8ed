// A persistent pool of threads for the CPU kernels.
#pragma once

#include <cstdint>
#include <functional>

namespace fusebench::kernels {

/// Calls body(begin, end) for the pieces [0, grain), [grain, 2·grain), ... of [0, count), on all threads; returns when
/// all have ended. The pieces depend on count and grain alone, so a body that writes each result within one piece gives
/// the same bits on any number of threads. The first exception of a body is thrown here. A call from within a body runs
/// on its own thread.
void parallel_for(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& body);

/// Threads that take part, the caller's included: as many as the process may use, until it is set. Setting it must not
/// overlap with a parallel_for. Throws std::invalid_argument below 1.
int parallel_threads();
void set_parallel_threads(int threads);

}  // namespace fusebench::kernels
