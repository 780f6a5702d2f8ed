// The table that a run ends with.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

struct SummaryStyle {
  bool colour = false;           ///< for a terminal; otherwise no escape sequence is written
  std::size_t width = 120;       ///< of the terminal; reasons are wrapped to it, figures never are
  std::string report_path = {};  ///< named in the last line; "" leaves it out
};

/// By case and mode a heading, then a line a variant: verdict, median, speed-ups with their interval, modelled MB and
/// error against budget; under it the reason where there is one. Then warnings, counts by verdict and the report's
/// path.
std::string summary(const Records& records, const SummaryStyle& style);

}  // namespace fusebench::reports
