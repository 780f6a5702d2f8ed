// NPY files, version 1.0: what numpy.load reads. Format: numpy.lib.format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace fusebench {

/// Writes row-major data. Throws std::invalid_argument when the shape's product is not the data's size, and
/// std::runtime_error, naming the file, when it cannot be written. An empty shape is a scalar.
void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape, std::span<const float> data);
void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape, std::span<const double> data);
void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape,
               std::span<const std::int64_t> data);

}  // namespace fusebench
