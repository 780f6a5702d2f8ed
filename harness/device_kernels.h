// The harness's own device code: checksums and the traffic that empties a cache. Checksums
// take any base; what is written and read to empty a cache is aligned to 16 bytes.
#pragma once

#include "kernels/types.h"

namespace fusebench {

void launch_checksum(const void* data, std::int64_t bytes, unsigned long long* sum, int blocks, Stream stream);
void launch_write(void* data, std::int64_t bytes, unsigned value, int blocks, Stream stream);
void launch_read(const void* data, std::int64_t bytes, unsigned* sink, int blocks, Stream stream);

}  // namespace fusebench
