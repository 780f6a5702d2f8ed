#include "kernels/cpu/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fusebench::kernels {
namespace {

using Body = std::function<void(std::int64_t, std::int64_t)>;

thread_local bool inside_body = false;

// One parallel_for: pieces are handed out until none is left.
class Job {
 public:
  Job(std::int64_t count, std::int64_t grain, const Body& body) : count_(count), grain_(grain), body_(body) {}

  void work() noexcept {
    inside_body = true;
    for (;;) {
      const std::int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= count_) break;
      try {
        body_(begin, std::min(count_, begin + grain_));
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(count_, std::memory_order_relaxed);
      }
    }
    inside_body = false;
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::int64_t count_;
  const std::int64_t grain_;
  const Body& body_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { serve(); });
  }
  ~Pool() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  void run(Job& job) {
    const std::scoped_lock one_job_at_a_time(callers_);
    {
      const std::scoped_lock lock(mutex_);
      job_ = &job;
      busy_ = workers_.size();
      ++generation_;
    }
    wake_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    job_ = nullptr;
  }

 private:
  void serve() {
    std::uint64_t served = 0;
    for (;;) {
      Job* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || generation_ != served; });
        if (stopping_) return;
        served = generation_;
        job = job_;
      }
      job->work();
      const std::scoped_lock lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  Job* job_ = nullptr;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

std::unique_ptr<Pool>& pool() {
  static auto instance = std::make_unique<Pool>(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  return instance;
}

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (grain < 1) throw std::invalid_argument("parallel_for: a grain of " + std::to_string(grain));
  if (inside_body) {
    for (std::int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain));
    return;
  }
  Job job(count, grain, body);
  if (count <= grain || pool()->threads() == 1) {
    job.work();
  } else {
    pool()->run(job);
  }
  job.rethrow();
}

int parallel_threads() { return pool()->threads(); }

void set_parallel_threads(int threads) {
  if (threads < 1) throw std::invalid_argument("set_parallel_threads: " + std::to_string(threads) + " threads");
  if (threads != pool()->threads()) pool() = std::make_unique<Pool>(threads);
}

}  // namespace fusebench::kernels
