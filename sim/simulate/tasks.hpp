#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/contracts.hpp"
#include "engine/engine.hpp"
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

/// What a task returned, or why it returned nothing.
template <class Result>
using TaskOutcome = std::variant<Result, ChildFailure>;

/// Calls work(0) to work(count-1) on `at_once` threads, or on the caller's where one is enough; on_done is called on the caller's.
/// Where work throws, the others are done all the same, and then the exception of the lowest index is thrown.
void run_on_threads(std::size_t count, std::size_t at_once,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void(std::size_t)>& on_done);

/// What plays the many runs of searches, sweeps and what-ifs; `run`, `validate` and `compare` play on SimGrid.
inline constexpr EngineKind engine_of_many = EngineKind::native;

/// Whether simulations on this engine may share a process: SimGrid's clock is never reset.
constexpr bool is_reentrant(EngineKind engine) { return engine != EngineKind::simgrid; }

namespace detail {

inline std::string to_bytes(std::string result) { return result; }
template <class Result>
std::string to_bytes(const Result& result) {
  static_assert(std::is_trivially_copyable_v<Result>);
  return {reinterpret_cast<const char*>(&result), sizeof result};
}
template <class Result>
Result from_bytes(std::string bytes) {
  if constexpr (std::is_same_v<Result, std::string>) {
    return bytes;
  } else {
    Result result;
    WT_EXPECT(bytes.size() == sizeof result);
    std::memcpy(&result, bytes.data(), sizeof result);
    return result;
  }
}

template <class Result>
std::vector<TaskOutcome<Result>> run_in_children(const Tasks<Result>& tasks) {
  ForkedWork work;
  work.count = tasks.count;
  work.at_once = tasks.at_once;
  work.on_done = tasks.on_done;
  work.work = [&](std::size_t i) { return to_bytes(tasks.work(i)); };
  if (tasks.count > 0) preload_simgrid();
  std::vector<ChildOutcome> answers = run_forked(work);
  std::vector<TaskOutcome<Result>> outcomes(tasks.count);
  for (std::size_t i = 0; i < tasks.count; ++i)
    if (auto* failure = std::get_if<ChildFailure>(&answers[i]))
      outcomes[i].template emplace<ChildFailure>(std::move(*failure));
    else
      outcomes[i].template emplace<Result>(
          from_bytes<Result>(std::move(std::get<std::string>(answers[i]))));
  return outcomes;
}

}  // namespace detail

/// Runs the tasks, which simulate on `engine`, and returns the outcomes in the order of the indices, the same for any `at_once`. On threads;
/// in forked children, each with its own engine, where the engine is not re-entrant. A task that throws costs its own outcome and
/// nothing else.
template <class Result>
std::vector<TaskOutcome<Result>> run_tasks(EngineKind engine, const Tasks<Result>& tasks) {
  if (!is_reentrant(engine)) return detail::run_in_children(tasks);
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
