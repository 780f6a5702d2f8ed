// Figures as people read them in the summary and on the page. Records and CSV keep every digit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "reports/records.h"

namespace fusebench::reports {

std::string format_us(double us);         ///< four significant digits, no exponent: 0.01234, 12.34, 123400
std::string format_mb(double bytes);      ///< megabytes of 10^6, the same
std::string format_percent(double part);  ///< 0.413 is "41%"; "<1%" and ">999%" at the ends

/// "2.31x [2.28, 2.35]", "2.31x" without an interval, "" without a value. `base` is naive or cublas.
std::string format_speedup(const Json& row, const std::string& base);

/// The same for a table's cell, where what is not known is a dash.
std::string speedup_cell(const Json& row, const std::string& base);
template <class Format>
std::string figure_cell(std::optional<double> value, Format format) {
  return value ? format(*value) : std::string("-");
}

std::string plural(std::size_t n, std::string_view noun);  ///< "1 row", "2 rows"

/// The first bytes of a text, at most so many, and no part of a character of UTF-8.
std::string_view first_bytes(std::string_view text, std::size_t most);

/// What speedup_vs_cublas is over: cublas, or eigen where every row ran on the CPU.
std::string baseline_name(const Records& records);

}  // namespace fusebench::reports
