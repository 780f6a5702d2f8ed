// A run for a pull request or an issue.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

/// A title with the counts; device, command and warnings; rows that failed, with their reasons; then by case a line a
/// variant. A run of many rows is folded by op, and ends before a comment is full: what is left out is told.
std::string run_markdown(const Records& records);

}  // namespace fusebench::reports
