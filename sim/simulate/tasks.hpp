#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "simulate/forked.hpp"

namespace windtunnel {

/// The same kind of work for each index 0..count-1: simulations, mostly.
template <class Result>
struct Tasks {
  std::size_t count = 0;
  std::size_t at_once = 1;  ///< tasks that run at the same time
  std::function<Result(std::size_t)> work;
  /// Called in the caller's thread after each task, with the number of those done; may be empty.
  std::function<void(std::size_t)> on_done = {};
};

/// Result of a task, or the reason why there is none.
template <class Result>
using TaskOutcome = std::variant<Result, ChildFailure>;

/// Calls work(0) to work(count-1) on `at_once` threads, or on the caller's where one is enough; on_done is called on the caller's.
/// If work throws, the others still run, and then the exception of the lowest index is rethrown.
void run_on_threads(std::size_t count, std::size_t at_once,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void(std::size_t)>& on_done);

/// Runs the tasks on threads, and returns the outcomes in the order of the indices, the same for any `at_once`. A task that throws costs its
/// own outcome and nothing else.
template <class Result>
std::vector<TaskOutcome<Result>> run_tasks(const Tasks<Result>& tasks) {
  std::vector<TaskOutcome<Result>> outcomes(tasks.count);
  run_on_threads(
      tasks.count, tasks.at_once,
      [&](std::size_t i) {
        if (auto failure = failure_in([&] { outcomes[i].template emplace<Result>(tasks.work(i)); }))
          outcomes[i].template emplace<ChildFailure>(std::move(*failure));
      },
      tasks.on_done);
  return outcomes;
}

}  // namespace windtunnel
