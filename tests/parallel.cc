#include "kernels/cpu/parallel.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/cpu_kernels.h"

namespace fusebench::cpu_test {

using kernels::parallel_for;

TEST_CASE("parallel_for covers every index once, in pieces that do not depend on the threads") {
  const int threads = GENERATE(1, 2, 5);
  const Threads scope(threads);
  for (const std::int64_t count : {0, 1, 6, 7, 8, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    std::atomic<bool> aligned = true;
    parallel_for(count, 7, [&](std::int64_t begin, std::int64_t end) {
      if (begin % 7 != 0 || end != std::min<std::int64_t>(count, begin + 7)) aligned = false;
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    REQUIRE(aligned);
    REQUIRE(std::all_of(visits.begin(), visits.end(), [](const std::atomic<int>& v) { return v == 1; }));
  }
}

TEST_CASE("parallel_for runs on as many threads as it was given") {
  const Threads scope(3);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> waiting = 0;
  parallel_for(3, 1, [&](std::int64_t, std::int64_t) {
    {
      const std::scoped_lock lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    ++waiting;
    while (waiting < 3) std::this_thread::yield();  // each thread takes one piece
  });
  REQUIRE(ids.size() == 3);
}

TEST_CASE("parallel_for throws a body's exception and works afterwards") {
  const Threads scope(2);
  const auto fail_at_50 = [](std::int64_t begin, std::int64_t) {
    if (begin == 50) throw std::runtime_error("body");
  };
  for (int round = 0; round < 20; ++round) REQUIRE_THROWS_AS(parallel_for(100, 1, fail_at_50), std::runtime_error);
  std::atomic<std::int64_t> sum = 0;
  parallel_for(100, 3, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  REQUIRE(sum == 100);
}

TEST_CASE("parallel_for may be nested and called from several threads") {
  const Threads scope(2);
  std::atomic<std::int64_t> sum = 0;
  const auto nested = [&] {
    for (int round = 0; round < 50; ++round) {
      parallel_for(10, 1, [&](std::int64_t, std::int64_t) {
        parallel_for(10, 3, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
      });
    }
  };
  std::thread other(nested);
  nested();
  other.join();
  REQUIRE(sum == 2 * 50 * 100);
}

TEST_CASE("parallel_for refuses a grain or a number of threads below one") {
  REQUIRE_THROWS_AS(parallel_for(1, 0, [](std::int64_t, std::int64_t) {}), std::invalid_argument);
  REQUIRE_THROWS_AS(kernels::set_parallel_threads(0), std::invalid_argument);
}

}  // namespace fusebench::cpu_test
