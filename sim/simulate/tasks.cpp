#include "simulate/tasks.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/contracts.hpp"
#include "core/interruption.hpp"

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
  /// Waits until more than `known` are done, 30 ms at most; how many are.
  std::size_t wait_for_more_than(std::size_t known) {
    constexpr std::chrono::milliseconds patience(30);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return done_ > known; });
    return done_;
  }
  /// No further index is handed out.
  void stop() {
    const std::lock_guard lock(mutex_);
    started_ = count_;
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
      expect_not_interrupted();
      work(index);
    } catch (...) {
      counter.keep(index, std::current_exception());
    }
  };
  Interruption* const interruption = Interruption::current();
  std::vector<std::jthread> threads;
  if (at_once > 1 && count > 1) {
    threads.reserve(std::min(at_once, count));
    try {
      while (threads.size() < std::min(at_once, count))
        threads.emplace_back([&] {
          const Interruption::Scope scope(interruption);
          for (std::size_t index = counter.next(); index < count; index = counter.next()) {
            guarded(index);
            counter.end_one();
          }
        });
    } catch (const std::system_error&) {
      // The system starts no more: those that run do the work, or else this one.
    }
  }
  try {
    for (std::size_t told = 0; told < count;) {
      if (threads.empty()) {
        guarded(counter.next());
        counter.end_one();
      }
      expect_not_interrupted();
      const std::size_t done = counter.wait_for_more_than(told);
      for (; told < done; ++told)
        if (on_done) on_done(told + 1);
    }
  } catch (...) {
    counter.stop();
    throw;
  }
  threads.clear();
  counter.rethrow();
}

}  // namespace windtunnel
