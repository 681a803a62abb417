#include "simulate/tasks.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/interruption.hpp"
#include "core/problem.hpp"

namespace windtunnel {
namespace {

TEST_CASE("results come in the order of the indices, on any number of threads") {
  for (const std::size_t at_once : {1UL, 2UL, 7UL}) {
    std::size_t calls = 0;
    const auto caller = std::this_thread::get_id();
    Tasks<double> tasks;
    tasks.count = 100;
    tasks.at_once = at_once;
    tasks.work = [](std::size_t i) { return static_cast<double>(i) / 3; };
    tasks.on_done = [&](std::size_t done) {
      CHECK(done == ++calls);
      CHECK(std::this_thread::get_id() == caller);
    };
    const auto outcomes = run_tasks(tasks);
    REQUIRE(outcomes.size() == 100);
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      CHECK(std::get<double>(outcomes[i]) == static_cast<double>(i) / 3);
    CHECK(calls == 100);
  }
}

TEST_CASE("several threads work, and no more than were asked for") {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> inside{0}, most{0};
  // Nobody goes on before three are there, however late they come.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  run_on_threads(40, 3,
                 [&](std::size_t) {
                   const int now = ++inside;
                   for (int known = most; now > known && !most.compare_exchange_weak(known, now);)
                     continue;
                   while (most < 3 && std::chrono::steady_clock::now() < deadline)
                     std::this_thread::yield();
                   --inside;
                   const std::lock_guard lock(mutex);
                   seen.insert(std::this_thread::get_id());
                 },
                 {});
  CHECK(seen.size() == 3);
  CHECK(most <= 3);
  CHECK_FALSE(seen.contains(std::this_thread::get_id()));
}

TEST_CASE(
    "of exceptions in threads that of the lowest index is thrown, when all the others are done") {
  for (const std::size_t at_once : {1UL, 3UL}) {
    std::atomic<int> done{0};
    const auto work = [&](std::size_t i) {
      if (i == 4 || i == 2) throw std::runtime_error(std::to_string(i));
      ++done;
    };
    CHECK_THROWS_WITH(run_on_threads(8, at_once, work, {}), "2");
    CHECK(done == 6);
  }
}

TEST_CASE("work that is told to end ends with what was thrown, on all its threads") {
  for (const std::size_t at_once : {1UL, 3UL}) {
    std::atomic<int> begun{0};
    const auto endless = [&](std::size_t) {
      ++begun;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (std::chrono::steady_clock::now() < deadline) expect_not_interrupted();
    };
    Interruption interruption([&] {
      if (begun == static_cast<int>(at_once)) throw std::runtime_error("Ctrl-C");
    });
    CHECK_THROWS_WITH(run_on_threads(1000, at_once, endless, {}), "Ctrl-C");
    CHECK(begun == static_cast<int>(at_once));
    CHECK_THROWS_WITH(interruption.check(), "Ctrl-C");  // and so does whatever comes next
  }
  CHECK(Interruption::current() == nullptr);
}

TEST_CASE("an exception of whoever is told of progress stops the work") {
  std::atomic<int> begun{0};
  const auto tell = [](std::size_t) { throw std::runtime_error("the disk is full"); };
  CHECK_THROWS_WITH(run_on_threads(
                        1'000'000, 2,
                        [&](std::size_t) {
                          ++begun;
                          std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        },
                        tell),
                    "the disk is full");
  CHECK(begun < 1'000'000);
}

TEST_CASE("a task that throws costs its own outcome, with the kind of its failure") {
  const auto outcomes = run_tasks<int>({.count = 4, .at_once = 2, .work = [](std::size_t i) -> int {
                                          if (i == 1) throw EnvironmentError("no disk");
                                          if (i == 2) throw std::logic_error("a bug");
                                          return static_cast<int>(i);
                                        }});
  CHECK(std::get<int>(outcomes[0]) == 0);
  CHECK(std::get<ChildFailure>(outcomes[1]).kind == FailureKind::environment);
  CHECK(std::get<ChildFailure>(outcomes[1]).text == "no disk");
  CHECK(std::get<ChildFailure>(outcomes[2]).kind == FailureKind::our_bug);
  CHECK(std::get<int>(outcomes[3]) == 3);
}

}  // namespace
}  // namespace windtunnel
