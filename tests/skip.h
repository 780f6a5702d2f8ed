// Test cases that cannot run here say so, and the program prints at its end how many there were.
#pragma once

#include <cstdio>

namespace fusebench::testing {

class SkipCounter {
 public:
  SkipCounter() = default;
  SkipCounter(const SkipCounter&) = delete;
  SkipCounter& operator=(const SkipCounter&) = delete;
  ~SkipCounter() {
    if (count_ > 0) std::printf("%d skipped\n", count_);
  }
  void add() { ++count_; }

 private:
  int count_ = 0;
};

inline SkipCounter skip_counter;

/// Always true: `if (missing && skip("why")) return;`
inline bool skip(const char* why) {
  std::printf("skipped: %s\n", why);
  skip_counter.add();
  return true;
}

}  // namespace fusebench::testing
