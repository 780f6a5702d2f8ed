// Finished rows as Google Benchmark's own results, so that its console, its JSON and its compare.py read our runs.
#pragma once

#include <string>
#include <vector>

#include "harness/row.h"

namespace fusebench {

/// Registers every row as a benchmark with manual time, one iteration and as many repetitions as there are samples, and
/// lets Google Benchmark report them: nothing runs again, each repetition is fed a recorded sample. Rows without a pass
/// or without samples are errors that carry their reason.
///
/// `benchmark_flags` are --benchmark_* flags (--benchmark_out=FILE, --benchmark_filter=REGEX, ...). Returns 0, or 2
/// when a flag is unknown, after saying which on stderr. Flags hold for the whole process, as Google Benchmark keeps
/// them in globals; it ends the process itself on a flag whose value it cannot read.
int report_through_google_benchmark(const std::vector<Row>& rows, std::vector<std::string> benchmark_flags);

/// What Google Benchmark would stumble over, in one line: an unknown flag, a value that it cannot read, a file that it
/// cannot write. Empty when there is nothing.
std::string mistake_in(std::vector<std::string> benchmark_flags);

/// case_id/variant/cold,sustained: a benchmark's name before Google Benchmark's own suffixes.
std::string benchmark_name(const Row& row);

}  // namespace fusebench
