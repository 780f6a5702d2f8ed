// NVTX ranges, nested: run / case / variant / step. Without CUDA in the build they cost and do nothing.
#pragma once

#include <cstdint>
#include <string>

#if FUSEBENCH_HAS_CUDA
#include <nvtx3/nvtx3.hpp>
#endif

namespace fusebench {

#if FUSEBENCH_HAS_CUDA
struct NvtxDomain {
  static constexpr char const* name{"fusebench"};
};

class Range {
 public:
  explicit Range(const std::string& name) : range_(nvtx3::event_attributes{name}) {}
  /// The payload is a step's modelled bytes.
  Range(const std::string& name, std::int64_t payload_bytes)
      : range_(nvtx3::event_attributes{name, nvtx3::payload{payload_bytes}}) {}

 private:
  nvtx3::scoped_range_in<NvtxDomain> range_;
};
#else
class Range {
 public:
  explicit Range(const std::string& /*name*/) {}
  Range(const std::string& /*name*/, std::int64_t /*payload_bytes*/) {}
};
#endif

}  // namespace fusebench
