// The stretches that poison an output without driving it out of the cache.
#include "harness/stretches.h"

#include <algorithm>
#include <vector>

#include "harness/device.h"
#include "tests/catch.h"

using namespace fusebench;

namespace {

// Of `bytes` zeroes between guards, those that were filled; a guard that was hit fails the test.
std::vector<std::uint8_t> filled(Device& device, std::int64_t bytes, std::uint64_t seed) {
  constexpr std::int64_t kGuard = 256;
  DeviceMemory memory(device, bytes + 2 * kGuard);
  device.fill(memory.data(), 0, memory.bytes());
  device.fill_some(memory.data() + kGuard, 0xff, bytes, seed);
  std::vector<std::uint8_t> all(static_cast<std::size_t>(memory.bytes()));
  device.copy_out(all.data(), memory.data(), memory.bytes());
  const auto hit = [](std::uint8_t byte) { return byte != 0; };
  INFO(bytes << " bytes, seed " << seed);
  CHECK(std::none_of(all.begin(), all.begin() + kGuard, hit));
  CHECK(std::none_of(all.end() - kGuard, all.end(), hit));
  return {all.begin() + kGuard, all.end() - kGuard};
}

}  // namespace

TEST_CASE("stretches lie inside what is filled, however short it is", "[stretches]") {
  const auto device = open_cpu_device();
  std::vector<std::int64_t> sizes(100);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<std::int64_t>(i) + 1;
  sizes.insert(sizes.end(), {4097, 65538, (1 << 20) + 3});
  for (const std::int64_t bytes : sizes) {
    for (const std::uint64_t seed : {0ULL, 1ULL, ~0ULL}) {
      const std::vector<std::uint8_t> found = filled(*device, bytes, seed);
      const auto count = std::count(found.begin(), found.end(), std::uint8_t{0xff});
      CHECK(count >= std::min(bytes, kStretchBytes));
      CHECK(count <= kFilledStretches * kStretchBytes);
    }
  }
}

TEST_CASE("a stretch holds whole elements of any dtype", "[stretches]") {
  for (const std::int64_t bytes : {1LL, 31LL, 32LL, 33LL, 100LL, 1LL << 33}) {
    for (std::uint64_t i = 0; i < kFilledStretches; ++i) {
      const std::int64_t offset = stretch_offset(bytes, 7, i);
      const bool is_last = i == kFilledStretches - 1;
      CHECK((offset % 4 == 0 || is_last));
      if (is_last) CHECK(offset + std::min(bytes, kStretchBytes) == bytes);
      CHECK(offset >= 0);
      CHECK(offset + std::min(bytes, kStretchBytes) <= bytes);
    }
  }
}

TEST_CASE("nothing is filled of nothing", "[stretches]") {
  const auto device = open_cpu_device();
  CHECK(filled(*device, 0, 1).empty());
}

TEST_CASE("seeds draw different places, and one seed the same ones", "[stretches]") {
  const auto device = open_cpu_device();
  constexpr std::int64_t kBytes = 1 << 20;
  std::vector<std::uint8_t> last;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<std::uint8_t> found = filled(*device, kBytes, seed);
    CHECK(found == filled(*device, kBytes, seed));
    CHECK(found != last);
    last = found;
  }
}

TEST_CASE("over many seeds no part is left out", "[stretches]") {
  constexpr std::int64_t kBytes = 1 << 16;
  std::vector<bool> hit(kBytes);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    for (std::uint64_t i = 0; i < kFilledStretches; ++i) {
      const auto first = hit.begin() + stretch_offset(kBytes, seed, i);
      std::fill(first, first + kStretchBytes, true);
    }
  }
  CHECK(std::count(hit.begin(), hit.end(), false) <= 8);  // the ends have but one place to be drawn from
}
