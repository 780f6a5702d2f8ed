// The records as the page reads them (reports/web/report.js): the same figures, packed.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

std::string page_title(const Records& records);

/// JSON that may stand in a script element: `title`, `header`, `warnings`, `baseline`, `columns` and `step_columns`
/// (each [name, unit, description, reason]), and `rows`, each with `values` in the order of `columns`, `steps` in that
/// of `step_columns` and then `reads` and `writes`, `tensors`, `mutants`, and the samples, latencies to a tenth of a
/// nanosecond and clocks to a MHz.
std::string page_data(const Records& records);

}  // namespace fusebench::reports
