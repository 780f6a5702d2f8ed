// The counters against kernels whose traffic is known, from the cold state that a row starts from.
#include "harness/counters.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "harness/device.h"
#include "tests/catch.h"
#include "tests/skip.h"

namespace {

using namespace fusebench;

std::unique_ptr<Counters> counters_or_skip(Device& device) {
  try {
    return device.open_counters();
  } catch (const std::runtime_error& failure) {
    fusebench::testing::skip(failure.what());
    return nullptr;
  }
}

const char* name_of(Transfer kind) {
  return kind == Transfer::copy ? "copy" : kind == Transfer::read ? "read" : "write";
}

// Relative to what was asked for; nothing asked is held against a thousandth of the bytes.
bool agrees(std::int64_t counted, std::int64_t asked, std::int64_t bytes, double tolerance) {
  return std::abs(static_cast<double>(counted - asked)) <= tolerance * static_cast<double>(bytes);
}

}  // namespace

TEST_CASE("counted reads and writes are those of a kernel of known traffic", "[gpu][counters]") {
  if (cuda_device_count() == 0 && fusebench::testing::skip("no CUDA device")) return;
  const auto device = open_cuda_device(0);
  const auto counters = counters_or_skip(*device);
  if (!counters) return;
  std::printf("known traffic, by %s: counted / asked\n", counters->source().c_str());
  for (const std::int64_t mib : {1, 4, 16, 64, 256, 1024, 4096}) {
    const std::int64_t bytes = mib << 20;
    if (device->free_bytes() < 3 * bytes && fusebench::testing::skip("too little device memory")) return;
    const DeviceMemory from(*device, bytes);
    const DeviceMemory to(*device, bytes);
    device->fill(from.data(), 0, bytes);
    for (const Transfer kind : {Transfer::copy, Transfer::read, Transfer::write}) {
      const auto traffic = counters->count({{[&] { device->flush_cache(); }, false},
                                            {[&] { device->transfer(kind, to.data(), from.data(), bytes); }},
                                            {[&] { device->drain_cache(); }}});
      const std::int64_t read = traffic.at(0).dram_read_bytes;
      const std::int64_t written = traffic[0].dram_write_bytes + traffic[1].dram_write_bytes;
      std::printf("  %-5s %4ld MiB: read %.4f, written %.4f of which %.4f after its end\n", name_of(kind),
                  static_cast<long>(mib), static_cast<double>(read) / static_cast<double>(bytes),
                  static_cast<double>(written) / static_cast<double>(bytes),
                  static_cast<double>(traffic[1].dram_write_bytes) / static_cast<double>(bytes));
      INFO(name_of(kind) << " of " << mib << " MiB: read " << read << ", written " << written);
      // Below 64 MiB the counters' own traffic, some hundred KiB, weighs more.
      const double tolerance = mib >= 64 ? 0.01 : 0.01 + 0.25 / static_cast<double>(mib);
      CHECK(agrees(read, kind == Transfer::write ? 0 : bytes, bytes, tolerance));
      CHECK(agrees(written, kind == Transfer::read ? 0 : bytes, bytes, tolerance));
    }
  }
}

TEST_CASE("counters can be opened again, and ranges keep their order", "[gpu][counters]") {
  if (cuda_device_count() == 0 && fusebench::testing::skip("no CUDA device")) return;
  const auto device = open_cuda_device(0);
  constexpr std::int64_t bytes = 256 << 20;
  const DeviceMemory from(*device, bytes);
  for (int turn = 0; turn < 3; ++turn) {
    const auto counters = counters_or_skip(*device);
    if (!counters) return;
    std::vector<Piece> pieces;
    for (std::int64_t i = 1; i <= 12; ++i) {
      pieces.push_back({[&] { device->flush_cache(); }, false});
      pieces.push_back(
          {[&, i] { device->transfer(Transfer::read, nullptr, from.data(), i * (bytes / 12) / 16 * 16); }});
    }
    const std::vector<Traffic> traffic = counters->count(pieces);
    REQUIRE(traffic.size() == 12);
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      const std::int64_t asked = static_cast<std::int64_t>(i + 1) * (bytes / 12);
      CHECK(agrees(traffic[i].dram_read_bytes, asked, asked, 0.01));
    }
  }
}
