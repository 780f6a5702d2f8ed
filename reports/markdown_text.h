// Text of records in markdown as GitHub shows it: what the run's summary and the comparison share.
#pragma once

#include <string>

namespace fusebench::reports {

/// Text that no table, link, emphasis or tag can be made of: punctuation that could begin one becomes a character
/// reference, which is never read as markup.
std::string inert(const std::string& text);

/// The same as code, in which GitHub makes no mentions and no links of issues.
std::string code(const std::string& text);

}  // namespace fusebench::reports
