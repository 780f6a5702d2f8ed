// `fusebench init`: a sweep to start from.
#pragma once

#include <filesystem>
#include <string>

namespace fusebench {

/// A commented sweep: under a minute on two CPU cores, sensible on a GPU. `name` becomes its name where it may be one.
std::string starter_sweep(const std::string& name);

/// Writes it into a new file, and prints what to do next with `program`. Throws UsageError where the file is there.
void init(const std::filesystem::path& file, const std::string& program);

}  // namespace fusebench
