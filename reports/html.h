// The records as one page without dependencies: no script, no link, no font; all text escaped.
#pragma once

#include <string>
#include <string_view>

#include "reports/records.h"

namespace fusebench::reports {

std::string html_page(const Records& records);

/// Text as HTML shows it; control characters, which HTML forbids, become U+FFFD.
std::string escaped(std::string_view text);

}  // namespace fusebench::reports
