#include "reference/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fusebench::reference {
namespace {

std::atomic<unsigned> thread_limit = 0;  // 0: one a core

unsigned threads_for(Index count) {
  const unsigned limit = thread_limit.load();
  const unsigned threads = limit > 0 ? limit : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<Index>(threads, count));
}

/// What the threads of one call share.
struct Queue {
  Index count;
  const std::function<void(Index)>& work;
  std::atomic<Index> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;

  void drain() noexcept {
    try {
      for (Index i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }
};

}  // namespace

void for_each_index(Index count, const std::function<void(Index)>& work) {
  Queue queue{.count = count, .work = work};
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < threads_for(count); ++i) helpers.emplace_back([&queue] { queue.drain(); });
    queue.drain();
  }
  if (queue.failure) std::rethrow_exception(queue.failure);
}

ThreadLimit::ThreadLimit(unsigned threads) : before_(thread_limit.exchange(threads)) {}

ThreadLimit::~ThreadLimit() { thread_limit = before_; }

}  // namespace fusebench::reference
