// Which multiprocessors belong to which L2 partition, from made-up latencies and on the device.
#include "kernels/l2_partitions.h"

#include <algorithm>
#include <bit>
#include <random>

#include "tests/catch.h"
#include "tests/gpu/device.h"

namespace {

using namespace fusebench::kernels;
using fusebench::testing::skip, fusebench::testing::skip_without_hopper;

constexpr int kMultiprocessors = 132, kLines = 64;

/// A line is near where it belongs to the multiprocessor's partition: 280 cycles, otherwise 490; and noise.
std::vector<std::vector<double>> latencies(const L2Partitions& partitions, double noise, double far = 490.0) {
  std::mt19937 random(7);
  std::normal_distribution<double> around(0.0, noise);
  std::vector<std::vector<double>> cycles(kMultiprocessors, std::vector<double>(kLines));
  for (int i = 0; i < kMultiprocessors; ++i) {
    for (int line = 0; line < kLines; ++line) {
      const bool near = partitions.is_second(i) == (line * 7 % 5 < 2);
      cycles[i][line] = (near ? 280.0 : far) + 3.0 * (i % 4) + around(random);
    }
  }
  return cycles;
}

L2Partitions every_other_pair() {
  L2Partitions partitions;
  for (int i = 0; i < kMultiprocessors; ++i) {
    if (i / 2 % 2 == 1) partitions.second[i / 64] |= std::uint64_t{1} << i % 64;
  }
  return partitions;
}

}  // namespace

TEST_CASE("partitions show in latencies, in spite of noise") {
  for (const double noise : {0.0, 10.0, 60.0}) {
    const auto found = partitions_by(latencies(every_other_pair(), noise));
    REQUIRE(found.has_value());
    CHECK(found->second == every_other_pair().second);
  }
}

TEST_CASE("partitions show where one has more multiprocessors") {
  L2Partitions larger = every_other_pair();
  larger.second[0] = ~std::uint64_t{0};  // 98 of 132
  CHECK_FALSE(partitions_by(latencies(larger, 5.0)));
  larger.second[0] &= ~std::uint64_t{0} << 16;  // 82
  const auto found = partitions_by(latencies(larger, 5.0));
  REQUIRE(found.has_value());
  CHECK(found->second == larger.second);
}

TEST_CASE("no partitions are told apart where latencies do not show two") {
  CHECK_FALSE(partitions_by({}));
  CHECK_FALSE(partitions_by(latencies(every_other_pair(), 0.0, 280.0)));   // all the same
  CHECK_FALSE(partitions_by(latencies(every_other_pair(), 20.0, 280.0)));  // noise alone
  std::vector<std::vector<double>> gap = latencies(every_other_pair(), 5.0);
  gap[77].clear();  // never measured
  CHECK_FALSE(partitions_by(gap));
  CHECK_FALSE(partitions_by(std::vector(257, std::vector<double>(kLines, 1.0))));
}

TEST_CASE("arrivals get every place once, whichever partitions they name") {
  std::mt19937 random(3);
  for (const int half : {1, 2, 33}) {
    for (const int seconds : {0, 1, half / 2, half - 1, half, half + 1, 2 * half - 1, 2 * half}) {
      std::vector<int> order(2 * half);
      std::fill_n(order.begin(), seconds, 1);
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::shuffle(order.begin(), order.end(), random);
        std::vector<int> taken(2 * half);
        int earlier[2] = {};
        for (const int second : order) {
          const int place = place_of(second != 0, earlier[0], earlier[1], half);
          REQUIRE((place >= 0 && place < 2 * half));
          ++taken[place];
          if (earlier[second] < half) CHECK(place / half == second);
          ++earlier[second];
        }
        CHECK(std::ranges::all_of(taken, [](int times) { return times == 1; }));
      }
    }
  }
}

TEST_CASE("neighbours are in one of two partitions, also where a stream is captured when they are first asked for") {
  if (skip_without_hopper()) return;
  cudaStream_t stream{};
  FUSEBENCH_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  FUSEBENCH_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const auto partitions = l2_partitions();
  CHECK(next_launch_counters() != next_launch_counters());
  cudaGraph_t graph{};
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  std::size_t nodes = 1;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  CHECK(nodes == 0);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  if (!partitions && skip("this device's partitions cannot be told apart")) return;
  int seconds = 0;
  for (const std::uint64_t word : partitions->second) {
    CHECK(((word ^ word >> 1) & 0x5555555555555555) == 0);  // two multiprocessors of a TPC
    seconds += std::popcount(word);
  }
  CHECK((seconds > 0 && seconds < multiprocessors()));
}
