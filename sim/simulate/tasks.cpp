#include "simulate/tasks.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace windtunnel {
namespace {

/// Hands out the indices, and counts those that are done.
class Counter {
 public:
  explicit Counter(std::size_t count) : count_(count) {}

  /// The next index, or `count` when none is left.
  std::size_t next() {
    const std::lock_guard lock(mutex_);
    return started_ < count_ ? started_++ : count_;
  }
  void end_one() {
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_one();
  }
  void keep(std::size_t index, std::exception_ptr thrown) {
    const std::lock_guard lock(mutex_);
    if (thrown_ && index > thrower_) return;
    thrower_ = index;
    thrown_ = std::move(thrown);
  }
  /// When all are done.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }
  /// Waits until more than `known` are done.
  std::size_t wait_for_more_than(std::size_t known) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ > known; });
    return done_;
  }

 private:
  const std::size_t count_;
  std::size_t started_ = 0, done_ = 0;
  std::size_t thrower_ = 0;
  std::exception_ptr thrown_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace

void run_on_threads(std::size_t count, std::size_t at_once,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void(std::size_t)>& on_done) {
  WT_EXPECT(at_once > 0);
  Counter counter(count);
  const auto guarded = [&](std::size_t index) {
    try {
      work(index);
    } catch (...) {
      counter.keep(index, std::current_exception());
    }
  };
  if (at_once == 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) {
      guarded(i);
      if (on_done) on_done(i + 1);
    }
    return counter.rethrow();
  }
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(at_once, count); ++i)
    threads.emplace_back([&] {
      for (std::size_t index = counter.next(); index < count; index = counter.next()) {
        guarded(index);
        counter.end_one();
      }
    });
  for (std::size_t told = 0; on_done && told < count;) {
    const std::size_t done = counter.wait_for_more_than(told);
    while (told < done) on_done(++told);
  }
  threads.clear();
  counter.rethrow();
}

}  // namespace windtunnel
