// Whether a profiler or a sanitiser watches this process: it adds work of its own to every launch, and its counters are
// not ours to open.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fusebench {

/// An environment variable's value, or null.
using Environment = std::function<const char*(const char*)>;

/// Empty, "Nsight Compute", "Nsight Systems", "compute-sanitizer" or "a profiler (LIB)". Tools are known by the
/// libraries that they inject (`maps` is the text of /proc/self/maps), and before those are mapped by the variables
/// that they set.
std::string attached_tool(std::string_view maps, const Environment& environment);

/// Of this process, now.
std::string attached_tool();

}  // namespace fusebench
