#include "harness/npy.h"

#include <bit>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>

namespace fusebench {

namespace {

static_assert(std::endian::native == std::endian::little, "data is written as it lies in memory, and says '<'");

std::uint64_t elements_of(std::span<const std::int64_t> shape) {
  std::uint64_t count = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0) throw std::invalid_argument("npy: negative extent");
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) {
      throw std::invalid_argument("npy: shape overflows");
    }
  }
  return count;
}

// Python's tuples: "()", "(3,)", "(2, 3)".
std::string tuple(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

// Magic, version, the length of the dictionary in two bytes, the dictionary; in all a multiple of 64 bytes, so that the
// data can be mapped.
std::string header(std::string_view descr, std::span<const std::int64_t> shape) {
  std::string dictionary =
      "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + tuple(shape) + ", }";
  constexpr std::size_t prefix = 10;
  const std::size_t total = (prefix + dictionary.size() + 1 + 63) / 64 * 64;
  if (total - prefix > 0xffff) throw std::invalid_argument("npy: too many extents for version 1.0");
  dictionary.append(total - prefix - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary;
}

void write(const std::filesystem::path& path, std::string_view descr, std::span<const std::int64_t> shape,
           std::span<const std::byte> data, std::size_t count) {
  if (elements_of(shape) != count) {
    throw std::invalid_argument("npy: shape " + tuple(shape) + " does not hold " + std::to_string(count) + " elements");
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << header(descr, shape);
  file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape, std::span<const float> data) {
  write(path, "<f4", shape, std::as_bytes(data), data.size());
}

void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape, std::span<const double> data) {
  write(path, "<f8", shape, std::as_bytes(data), data.size());
}

void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape,
               std::span<const std::int64_t> data) {
  write(path, "<i8", shape, std::as_bytes(data), data.size());
}

}  // namespace fusebench
