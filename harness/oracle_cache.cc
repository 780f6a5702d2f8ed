// Expected rows on disk. A file is a header that says whose rows these are, every tensor's values, and a checksum;
// header and sizes follow from the case and its rows, so that reading one is comparing it with what it must be:
//
//   "fusebench oracle\n"  format, reference version, what the drawing of inputs gives, case id, mistake if there is
//   one,
//                         rows, tensors
//   expected: doubles     replica: fp32, which holds every value of fp16, bf16 and fp32; a mistake has none
//   64 hexadecimal digits: SHA-256 of all before
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "harness/oracle.h"
#include "reports/sha256.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr int kFormatVersion = 1;
/// To be raised whenever compute_expected returns something else for the same inputs.
constexpr int kReferenceVersion = 1;
constexpr std::size_t kDigestSize = 64;

/// Changes when inputs are drawn in another way: rows expected of the old ones then do not count.
std::string drawing_of(const Case& c) {
  Case small = canonical({.op = Op::block,
                          .dtype = c.dtype,
                          .dim = 8,
                          .hidden = 8,
                          .heads = 2,
                          .kv_heads = 1,
                          .seq = 3,
                          .past = 2,
                          .inputs = c.inputs});
  std::string bytes;
  for (const auto& [name, tensor] : read_inputs(spec_of(small), DrawnSource(small))) {
    bytes.append(name).append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return sha256_hex(bytes);
}

std::string header_of(const Case& c, const std::vector<std::int64_t>& rows, const std::string& mistake) {
  std::string header = fmt::format("fusebench oracle\nformat {} reference {} drawing {}\n{}\n", kFormatVersion,
                                   kReferenceVersion, drawing_of(c), case_id(c));
  if (!mistake.empty()) header += fmt::format("mistake {}\n", mistake);
  for (const TensorSpec& spec : spec_of(c).tensors) {
    if (spec.role != Role::input) header += fmt::format("{}[{}] ", spec.name, spec.cols);
  }
  header += fmt::format("\n{} rows\n", rows.size());
  header.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(std::int64_t));
  return header;
}

template <class Stored>
void append_as(const std::vector<double>& values, std::string& bytes) {
  for (const double value : values) {
    const auto stored = static_cast<Stored>(value);
    bytes.append(reinterpret_cast<const char*>(&stored), sizeof stored);
  }
}

/// Takes values from the front of `bytes`, which must hold as many.
template <class Stored>
std::vector<double> take_as(std::size_t count, std::string_view& bytes) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = static_cast<double>(stored);
  }
  bytes.remove_prefix(count * sizeof(Stored));
  return values;
}

/// All of a file that has just this size; else nothing.
std::string read_file(const fs::path& path, std::size_t size) {
  std::error_code error;
  if (fs::file_size(path, error) != size || error) return {};
  std::ifstream in(path, std::ios::binary);
  std::string bytes(size, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  return in.gcount() == static_cast<std::streamsize>(size) ? bytes : std::string();
}

/// Appears under its name complete or not at all, also when several processes write it.
void write_file(const fs::path& path, std::string_view bytes) {
  fs::path part = path;
  part += fmt::format(".{}-{:x}.part", getpid(), std::random_device{}());
  errno = 0;
  std::ofstream out(part, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (out) fs::rename(part, path, error);
  if (out && !error) return;
  if (!error) error = {errno != 0 ? errno : EIO, std::generic_category()};
  const std::string why = error.message();
  fs::remove(part, error);
  throw std::runtime_error(fmt::format("cannot write {}: {}", path.string(), why));
}

}  // namespace

fs::path OracleCache::path_of(const Case& c, const std::vector<std::int64_t>& rows, const std::string& mistake) const {
  return folder_ / (sha256_hex(header_of(c, rows, mistake)).substr(0, 32) + ".oracle");
}

bool OracleCache::load(const Case& c, const std::vector<std::int64_t>& rows, Expected& out,
                       const std::string& mistake) const {
  const std::string header = header_of(c, rows, mistake);
  const bool has_replica = mistake.empty();
  Expected found{.rows = rows, .tensors = {}};
  std::size_t size = header.size() + kDigestSize;
  for (const TensorSpec& spec : spec_of(c).tensors) {
    if (spec.role == Role::input) continue;
    found.tensors.push_back({.name = spec.name, .cols = spec.cols, .expected = {}, .replica = {}});
    size += rows.size() * static_cast<std::size_t>(spec.cols) * (sizeof(double) + (has_replica ? sizeof(float) : 0));
  }
  const std::string bytes = read_file(path_of(c, rows, mistake), size);
  if (bytes.empty() || !bytes.starts_with(header)) return false;
  std::string_view values = bytes;
  if (values.substr(size - kDigestSize) != sha256_hex(values.substr(0, size - kDigestSize))) return false;
  values.remove_prefix(header.size());
  for (ExpectedTensor& tensor : found.tensors) {
    const std::size_t count = rows.size() * static_cast<std::size_t>(tensor.cols);
    tensor.expected = take_as<double>(count, values);
    if (has_replica) tensor.replica = take_as<float>(count, values);
  }
  out = std::move(found);
  return true;
}

void OracleCache::save(const Case& c, const Expected& expected, const std::string& mistake) const {
  const fs::path path = path_of(c, expected.rows, mistake);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw std::runtime_error(fmt::format("cannot create {}: {}", folder_.string(), error.message()));
  std::string bytes = header_of(c, expected.rows, mistake);
  for (const ExpectedTensor& tensor : expected.tensors) {
    append_as<double>(tensor.expected, bytes);
    append_as<float>(tensor.replica, bytes);
  }
  bytes += sha256_hex(bytes);
  write_file(path, bytes);
}

}  // namespace fusebench
