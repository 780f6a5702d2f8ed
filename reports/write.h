// Everything that is derived from results.jsonl.
#pragma once

#include <filesystem>
#include <string_view>

#include "reports/records.h"

namespace fusebench::reports {

/// Rebuilds results.csv, steps.csv and report.html in the folder from its results.jsonl, and returns what was read.
/// Each file is replaced whole or left as it was. Throws std::runtime_error that names the file.
Records write_reports(const std::filesystem::path& folder);

/// Removes what write_reports makes of the folder's records, before these are replaced.
void remove_reports(const std::filesystem::path& folder);

/// Writes beside the file, then renames over it.
void write_atomically(const std::filesystem::path& file, std::string_view content);

}  // namespace fusebench::reports
