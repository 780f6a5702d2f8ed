// Text of records in markdown as GitHub shows it: what the run's summary and the comparison share.
#pragma once

#include <string>

namespace fusebench::reports {

/// Text that no table, link, emphasis or tag can be made of: punctuation that could begin one becomes a character
/// reference, which is never read as markup.
std::string inert(const std::string& text);

/// The same as code, in which GitHub makes no mentions and no links of issues, at most kLongest letters of it.
std::string code(const std::string& text);
inline constexpr std::size_t kLongest = 400;

/// GitHub's comments and issues hold 65536 letters.
inline constexpr std::size_t kComment = 60'000;

}  // namespace fusebench::reports
