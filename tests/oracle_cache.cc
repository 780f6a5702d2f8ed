#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "harness/oracle.h"
#include "tests/catch.h"
#include "tests/files.h"

using namespace fusebench;
using fusebench::testing::read_file;
using fusebench::testing::TempFolder;
namespace fs = std::filesystem;

namespace {

Case small_case() {
  return canonical({.op = Op::qkv, .dtype = DType::bf16, .dim = 16, .heads = 4, .kv_heads = 2, .seq = 9, .past = 3});
}

Expected computed(const Case& c, const std::vector<std::int64_t>& rows) {
  return compute_expected(c, read_inputs(spec_of(c), DrawnSource(c)), rows);
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("expected rows come back to the last bit", "[cache]") {
  const TempFolder folder;
  const OracleCache cache(folder.path() / "made" / "when needed");
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
    Case c = small_case();
    c.dtype = dtype;
    const std::vector<std::int64_t> rows = {0, 4, 8};
    Expected expected = computed(c, rows);
    expected.tensors[0].replica[1] = std::numeric_limits<double>::infinity();
    expected.tensors[0].expected[2] = std::numeric_limits<double>::quiet_NaN();
    Expected back;
    CHECK_FALSE(cache.load(c, rows, back));
    cache.save(c, expected);
    REQUIRE(cache.load(c, rows, back));
    CHECK(back.rows == rows);
    REQUIRE(back.tensors.size() == 3);
    CHECK(std::isnan(back.tensors[0].expected[2]));
    back.tensors[0].expected[2] = expected.tensors[0].expected[2] = 0;
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(back.tensors[t].name == expected.tensors[t].name);
      CHECK(back.tensors[t].cols == expected.tensors[t].cols);
      CHECK(back.tensors[t].expected == expected.tensors[t].expected);
      CHECK(back.tensors[t].replica == expected.tensors[t].replica);
    }
    // saved again over itself, with nothing left beside it
    cache.save(c, expected);
    CHECK(cache.load(c, rows, back));
  }
  CHECK(std::distance(fs::directory_iterator(folder.path() / "made" / "when needed"), {}) == 3);
}

TEST_CASE("another case, other rows or another version are other files", "[cache]") {
  const TempFolder folder;
  const OracleCache cache(folder.path());
  const Case c = small_case();
  cache.save(c, computed(c, {1, 2}));
  Expected out;
  CHECK(cache.load(c, {1, 2}, out));
  CHECK_FALSE(cache.load(c, {1, 3}, out));
  CHECK_FALSE(cache.load(c, {1}, out));
  Case other = c;
  other.seed = 43;
  CHECK_FALSE(cache.load(other, {1, 2}, out));
  other = c;
  other.inputs = Inputs::seed;
  CHECK_FALSE(cache.load(other, {1, 2}, out));

  // A file of another case, or of another version of the reference, under this case's name
  const std::string right = read_file(cache.path_of(c, {1, 2}));
  other = c;
  other.seed = 99;
  write(cache.path_of(other, {1, 2}), right);
  CHECK_FALSE(cache.load(other, {1, 2}, out));
  std::string version = right;
  const std::size_t at = version.find(" reference ");
  REQUIRE(at != std::string::npos);
  ++version[at + 11];
  write(cache.path_of(c, {1, 2}), version);
  CHECK_FALSE(cache.load(c, {1, 2}, out));
}

TEST_CASE("a damaged file counts as missing, wherever the damage is, and leaves the output alone", "[cache]") {
  const TempFolder folder;
  const OracleCache cache(folder.path());
  const Case c = small_case();
  const std::vector<std::int64_t> rows = {2};
  cache.save(c, computed(c, rows));
  const fs::path path = cache.path_of(c, rows);
  const std::string right = read_file(path);
  REQUIRE(right.size() > 300);
  Expected out;
  out.rows = {77};
  for (std::size_t i = 0; i < right.size(); i += 7) {
    std::string flipped = right;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    write(path, flipped);
    if (cache.load(c, rows, out)) FAIL("a flipped bit in byte " << i << " went unseen");
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, right.size() / 2, right.size() - 1}) {
    write(path, right.substr(0, length));
    CHECK_FALSE(cache.load(c, rows, out));
  }
  write(path, right + "x");
  CHECK_FALSE(cache.load(c, rows, out));
  fs::remove(path);
  fs::create_directory(path);
  CHECK_FALSE(cache.load(c, rows, out));
  CHECK_THROWS_AS(cache.save(c, computed(c, rows)), std::runtime_error);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // no part of a file is left
  CHECK(out.rows == std::vector<std::int64_t>{77});
  fs::remove(path);
  cache.save(c, computed(c, rows));
  CHECK(cache.load(c, rows, out));
}

TEST_CASE("a folder that cannot be made is an error that names it", "[cache]") {
  const TempFolder folder;
  folder.write("file", "not a folder");
  const OracleCache cache(folder.path() / "file");
  const Case c = small_case();
  Expected out;
  CHECK_FALSE(cache.load(c, {0}, out));
  try {
    cache.save(c, computed(c, {0}));
    FAIL("nothing was thrown");
  } catch (const std::runtime_error& error) {
    CHECK_THAT(std::string(error.what()), ContainsSubstring((folder.path() / "file").string()));
  }
}

TEST_CASE("several writers of one file leave a whole one", "[cache]") {
  const TempFolder folder;
  const OracleCache cache(folder.path());
  const Case c = small_case();
  const Expected expected = computed(c, {0, 1, 2, 3});
  {
    std::vector<std::jthread> writers;
    writers.reserve(8);
    for (int i = 0; i < 8; ++i) writers.emplace_back([&] { cache.save(c, expected); });
  }
  Expected out;
  CHECK(cache.load(c, expected.rows, out));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}
