// The records as the page reads them (reports/web/report.js): the same figures, packed.
#pragma once

#include <string>

#include "reports/records.h"

namespace fusebench::reports {

std::string page_title(const Records& records);

/// `kind` (run), `title`, `header`, `warnings`, `baseline`, `columns` and `step_columns` (each
/// [name, unit, description, reason]), `tensor_keys`, `mutant_keys`, and `rows`. A row has `values` in the order of
/// `columns`, and `more`, which is JSON text, since of ten thousand rows few are looked into: samples_us (to a tenth of
/// a nanosecond), samples_mhz (to a MHz), steps (values in the order of `step_columns`, then reads and writes), tensors
/// and mutants (values in the order of their keys).
Json page_data(const Records& records);

}  // namespace fusebench::reports
