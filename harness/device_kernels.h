// The harness's own device code: checksums, traffic of a known size, and what a stopwatch queues around what it times.
// Checksums take any base; everything else is aligned to 16 bytes.
#pragma once

#include "kernels/types.h"

namespace fusebench {

void launch_checksum(const void* data, std::int64_t bytes, unsigned long long* sum, int blocks, Stream stream);
/// See Device::fill_some.
void launch_fill_some(void* data, std::uint8_t byte, std::int64_t bytes, std::uint64_t seed, Stream stream);
void launch_write(void* data, std::int64_t bytes, unsigned value, int blocks, Stream stream);
/// `sink` is written only where the data hold a bit that zeros do not.
void launch_read(const void* data, std::int64_t bytes, unsigned* sink, int blocks, Stream stream);
void launch_empty(Stream stream);
/// Keeps the device busy for so long, and moves nothing.
void launch_delay(double us, Stream stream);

/// Keeps the stream from going on until the host has written `ticket` to `*released`, which is memory of the host's, or
/// until the timeout has passed; then it writes `ticket` to `*timed_out`.
void launch_hold(const unsigned* released, unsigned ticket, unsigned* timed_out, double timeout_us, Stream stream);

/// A multiprocessor's cycle counter, and the device's clock at the same moment.
struct ClockStamp {
  unsigned long long cycles = 0;
  unsigned long long ns = 0;
};
/// Stamps of (nearly) every multiprocessor, by its number, after it has spun for `spin_us`.
void launch_stamp(ClockStamp* stamps, int multiprocessors, double spin_us, Stream stream);

}  // namespace fusebench
