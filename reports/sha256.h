// SHA-256 (FIPS 180-4), to name files and runs by their contents.
#pragma once

#include <string>
#include <string_view>

namespace fusebench {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace fusebench
