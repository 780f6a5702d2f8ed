// Records as tables for spreadsheets and data frames, by RFC 4180: lines end in CRLF, a cell that holds a comma, a
// quote or a line break is quoted. Null is an empty cell.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

std::string results_csv(const Records& records);  ///< columns(), one line a row
std::string steps_csv(const Records& records);    ///< key_columns(), step (from 1), step_columns(); one line a step

/// A JSON scalar as a cell. Text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a carriage
/// return) gets a leading apostrophe; numbers are never touched.
std::string csv_cell(const Json& value);

}  // namespace fusebench::reports
