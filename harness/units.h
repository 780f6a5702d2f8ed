// Rates against microseconds.
#pragma once

namespace fusebench {

inline constexpr double kBytesPerUsAtGbps = 1e3;    ///< 1 GB/s moves so many bytes in a microsecond
inline constexpr double kFlopsPerUsAtTflops = 1e6;  ///< 1 TFLOP/s does so many operations in it

}  // namespace fusebench
