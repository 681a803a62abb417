#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace windtunnel {

/// Thrown on worker threads once the thread that started them was told to end.
class Interrupted final : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("the work was told to end") {}
};

/// Lets whoever started long work end it early, as Ctrl-C in a Python session does. While the object lives, the work of the thread that made
/// it, and of the threads that run_on_threads() starts on its behalf, calls check() every few microseconds:
///
///   Interruption interruption([] { if (ctrl_c_was_pressed()) throw KeyboardInterrupt(); });
///   rank_plans(scenario);  // ends with KeyboardInterrupt within a tenth of a second of Ctrl-C
///   interruption.check();  // where the work keeps exceptions of its parts as results
///
/// The command line needs none: a signal ends its process.
class Interruption {
 public:
  /// `ask` throws when the work is to end. It is called on the thread that made the object, some thirty times a second at most.
  explicit Interruption(std::function<void()> ask)
      : ask_(std::move(ask)), outer_(std::exchange(current_, this)) {}
  ~Interruption() { current_ = outer_; }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Throws what `ask` threw, on the thread that made the object, and Interrupted on others.
  void check() {
    constexpr std::chrono::milliseconds between_questions(30);
    if (std::this_thread::get_id() != owner_) {
      if (is_told_to_end_) throw Interrupted();
      return;
    }
    if (thrown_) std::rethrow_exception(thrown_);
    const Clock::time_point now = Clock::now();
    if (now < next_question_) return;
    next_question_ = now + between_questions;
    try {
      ask_();
    } catch (...) {
      thrown_ = std::current_exception();
      is_told_to_end_ = true;
      throw;
    }
  }

  /// The one that can end the work of this thread; null where none can.
  static Interruption* current() { return current_; }

  /// While it lives, the work of this thread can be ended by `other`, which may be null.
  class Scope {
   public:
    explicit Scope(Interruption* other) : outer_(std::exchange(current_, other)) {}
    ~Scope() { current_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interruption* outer_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  static inline thread_local Interruption* current_ = nullptr;

  std::function<void()> ask_;
  const std::thread::id owner_ = std::this_thread::get_id();
  Clock::time_point next_question_{};
  std::exception_ptr thrown_;
  std::atomic<bool> is_told_to_end_ = false;
  Interruption* outer_;
};

/// Throws when the work of this thread is to end.
inline void expect_not_interrupted() {
  if (Interruption* const current = Interruption::current(); current != nullptr) current->check();
}

}  // namespace windtunnel
