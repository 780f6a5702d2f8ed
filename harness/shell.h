// A word as a shell takes it, so that a printed command can be pasted.
#pragma once

#include <string>
#include <string_view>

namespace fusebench {

std::string shell_quoted(std::string_view word);

}  // namespace fusebench
