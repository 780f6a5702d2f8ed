// Rows as a run of `count` cases would leave them, without running anything.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/row.h"
#include "reports/records.h"

namespace fusebench::bench {

/// Three variants of a block a case, each with 50 samples and eight steps.
std::vector<Row> rows_of(std::size_t cases);

/// The text of their results.jsonl.
std::string lines_of(const std::vector<Row>& rows);

}  // namespace fusebench::bench
