// Spreads independent pieces of work over all cores.
#pragma once

#include <functional>

#include "reference/matrix.h"

namespace fusebench::reference {

/// Calls work(i) for every i in [0, count), each once, on as many threads as there are cores. What work throws is
/// thrown here, once all threads have ended.
void for_each_index(Index count, const std::function<void(Index)>& work);

/// While it lives, for_each_index uses this many threads. For tests: no result may depend on it.
class ThreadLimit {
 public:
  explicit ThreadLimit(unsigned threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  unsigned before_;
};

}  // namespace fusebench::reference
