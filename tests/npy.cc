#include "harness/npy.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/files.h"

using namespace fusebench;
using fusebench::testing::read_file;
using fusebench::testing::TempFolder;

namespace {

struct Parsed {
  std::string dictionary;
  std::string data;
};

// By the format's specification, not by the writer.
Parsed parse(const std::string& bytes) {
  REQUIRE(bytes.size() >= 10);
  REQUIRE(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length = static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  REQUIRE((10 + length) % 64 == 0);
  REQUIRE(bytes.size() >= 10 + length);
  REQUIRE(bytes[10 + length - 1] == '\n');
  std::string dictionary = bytes.substr(10, length);
  dictionary.erase(dictionary.find_last_not_of(" \n") + 1);
  return {dictionary, bytes.substr(10 + length)};
}

template <class T>
std::vector<T> values_of(const std::string& data) {
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

TEST_CASE("float32, row-major") {
  const TempFolder folder;
  const std::filesystem::path file = folder / "npy-f4.npy";
  const std::vector<float> data = {1, 2, 3, 4, 5, -0.5F};
  write_npy(file, std::array<std::int64_t, 2>{2, 3}, data);
  const Parsed parsed = parse(read_file(file));
  CHECK(parsed.dictionary == "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(values_of<float>(parsed.data) == data);
}

TEST_CASE("float64 keeps infinities, NaN and the last bit") {
  const TempFolder folder;
  const std::filesystem::path file = folder / "npy-f8.npy";
  const std::vector<double> data = {0.1, std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN()};
  write_npy(file, std::array<std::int64_t, 1>{3}, data);
  const Parsed parsed = parse(read_file(file));
  CHECK(parsed.dictionary == "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }");
  CHECK(std::memcmp(parsed.data.data(), data.data(), parsed.data.size()) == 0);
  CHECK(parsed.data.size() == 24);
}

TEST_CASE("int64, a scalar and an empty array") {
  const TempFolder folder;
  const std::filesystem::path file = folder / "npy-i8.npy";
  const std::vector<std::int64_t> one = {std::numeric_limits<std::int64_t>::min()};
  write_npy(file, std::vector<std::int64_t>{}, one);
  CHECK(parse(read_file(file)).dictionary == "{'descr': '<i8', 'fortran_order': False, 'shape': (), }");
  CHECK(values_of<std::int64_t>(parse(read_file(file)).data) == one);

  write_npy(file, std::array<std::int64_t, 2>{0, 4096}, std::vector<std::int64_t>{});
  CHECK(parse(read_file(file)).dictionary == "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4096), }");
  CHECK(parse(read_file(file)).data.empty());
}

TEST_CASE("headers of every length end on a multiple of 64") {
  const TempFolder folder;
  const std::filesystem::path file = folder / "npy-long.npy";
  std::vector<std::int64_t> shape;
  for (int extents = 0; extents < 32; ++extents) {
    write_npy(file, shape, std::vector<float>{1});
    CHECK(values_of<float>(parse(read_file(file)).data) == std::vector<float>{1});
    shape.push_back(1);
  }
}

TEST_CASE("a shape that does not fit the data is refused, and no file is left") {
  const TempFolder folder;
  const std::filesystem::path file = folder / "npy-bad.npy";
  const std::vector<float> data(6);
  CHECK_THROWS_AS(write_npy(file, std::array<std::int64_t, 2>{2, 4}, data), std::invalid_argument);
  CHECK_THROWS_AS(write_npy(file, std::array<std::int64_t, 2>{-2, -3}, data), std::invalid_argument);
  CHECK_THROWS_AS(write_npy(file, std::array<std::int64_t, 3>{std::int64_t{1} << 40, std::int64_t{1} << 40, 6}, data),
                  std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a file that cannot be written is named") {
  CHECK_THROWS_WITH(write_npy("/nonexistent/x.npy", std::array<std::int64_t, 1>{1}, std::vector<float>{1}),
                    ContainsSubstring("/nonexistent/x.npy"));
}
