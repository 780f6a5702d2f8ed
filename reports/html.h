// One page with everything in it: style, scripts, charts and the data. Nothing is loaded, and a content security
// policy lets nothing else run. The page is drawn in the browser by reports/web.
#pragma once

#include <string>
#include <string_view>

#include "reports/records.h"

namespace fusebench::reports {

std::string html_page(const Records& records);

/// The page about `data`, whose `kind` tells the scripts what to draw. `text` is for readers without scripts.
std::string page_of(std::string_view title, std::string_view text, const Json& data);

/// Text as HTML shows it; control characters, which HTML forbids, become U+FFFD.
std::string escaped(std::string_view text);

}  // namespace fusebench::reports
