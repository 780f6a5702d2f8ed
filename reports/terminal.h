// Text for terminals: what the run's summary and the comparison share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusebench::reports {

/// A record's text may come from a plug-in: nothing in it may steer the terminal.
std::string printable(std::string text);

std::size_t width_of(std::string_view text);  ///< characters, not bytes: figures are ASCII, names need not be
std::string padded(const std::string& text, std::size_t width, bool to_the_right);

/// Words of `text` in lines of at most `width` characters, each indented by six.
std::string wrapped(const std::string& text, std::size_t width);

inline constexpr std::string_view kGood = "\x1b[32m";
inline constexpr std::string_view kDoubtful = "\x1b[33m";
inline constexpr std::string_view kBad = "\x1b[31m";
std::string coloured(std::string text, std::string_view colour, bool on);

}  // namespace fusebench::reports
