// Figures as people read them in the summary and on the page. Records and CSV keep every digit.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

std::string format_us(double us);         ///< four significant digits, no exponent: 0.01234, 12.34, 123400
std::string format_mb(double bytes);      ///< megabytes of 10^6, the same
std::string format_percent(double part);  ///< 0.413 is "41%"; "<1%" and ">999%" at the ends

/// "2.31x [2.28, 2.35]", "2.31x" without an interval, "" without a value. `base` is naive or cublas.
std::string format_speedup(const Json& row, const std::string& base);

/// What speedup_vs_cublas is over: cublas, or eigen where every row ran on the CPU.
std::string baseline_name(const Records& records);

}  // namespace fusebench::reports
