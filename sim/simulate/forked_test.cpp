#include "simulate/forked.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

#include "core/problem.hpp"
#include "scenario/unsupported.hpp"

namespace windtunnel {
namespace {

Problem problem_saying(const char* message) { return {{}, "/x", message, {}}; }

/// The failure of a child whose work is `work`.
ChildFailure failure_of(const std::function<void()>& work) {
  const auto outcomes = run_forked({.count = 1, .work = [&](std::size_t) -> std::string {
                                      work();
                                      return "no failure";
                                    }});
  REQUIRE(std::holds_alternative<ChildFailure>(outcomes.front()));
  return std::get<ChildFailure>(outcomes.front());
}

TEST_CASE("children's results come back in the order of the indices, whoever ends first") {
  std::size_t calls = 0;
  const auto outcomes = run_forked({.count = 20,
                                    .at_once = 3,
                                    .work = [](std::size_t i) { return std::string(i, 'x'); },
                                    .on_done = [&](std::size_t done) { CHECK(done == ++calls); }});
  REQUIRE(outcomes.size() == 20);
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    CHECK(std::get<std::string>(outcomes[i]).size() == i);
  CHECK(calls == 20);
}

TEST_CASE("an answer longer than a pipe holds arrives whole") {
  const std::string long_answer(1'000'000, 'z');
  const auto outcomes =
      run_forked({.count = 2, .at_once = 2, .work = [&](std::size_t) { return long_answer; }});
  CHECK(std::get<std::string>(outcomes[0]) == long_answer);
  CHECK(std::get<std::string>(outcomes[1]) == long_answer);
}

TEST_CASE("an exception in a child comes back with its kind and text") {
  const auto bad = failure_of([] { throw InputError({problem_saying("two is three")}); });
  CHECK(bad.kind == FailureKind::bad_input);
  CHECK(bad.text.find("two is three") != std::string::npos);
  CHECK(failure_of([] { throw UnsupportedError({problem_saying("later")}); }).kind ==
        FailureKind::unsupported);
  CHECK(failure_of([] { throw EnvironmentError("no disk"); }).kind == FailureKind::environment);
  const auto bug = failure_of([] { throw std::logic_error("off by one"); });
  CHECK(bug.kind == FailureKind::our_bug);
  CHECK(bug.text == "off by one");
}

TEST_CASE("a child that is killed or leaves costs its own outcome only") {
  const auto outcomes =
      run_forked({.count = 3, .at_once = 2, .work = [](std::size_t i) -> std::string {
                    if (i == 0) std::raise(SIGKILL);
                    if (i == 1) std::_Exit(7);
                    return "alive";
                  }});
  CHECK(std::get<ChildFailure>(outcomes[0]).text.find("signal 9") != std::string::npos);
  CHECK(std::get<ChildFailure>(outcomes[1]).text.find("exit code 7") != std::string::npos);
  CHECK(std::get<std::string>(outcomes[2]) == "alive");
}

TEST_CASE("an empty answer is an answer") {
  const auto outcomes = run_forked({.count = 1, .work = [](std::size_t) { return std::string(); }});
  CHECK(std::get<std::string>(outcomes.front()).empty());
}

TEST_CASE("a child that takes longer than it may is ended, and the others are not") {
  ForkedWork work;
  work.count = 3;
  work.at_once = 3;
  work.most_time = 3_s;  // enough for the others on any machine
  work.work = [](std::size_t index) {
    if (index == 1) std::this_thread::sleep_for(std::chrono::hours(1));
    return std::to_string(index);
  };
  const std::vector<ChildOutcome> outcomes = run_forked(work);
  CHECK(std::get<std::string>(outcomes[0]) == "0");
  CHECK(std::get<std::string>(outcomes[2]) == "2");
  const auto& late = std::get<ChildFailure>(outcomes[1]);
  CHECK(late.kind == FailureKind::out_of_time);
  CHECK(late.text == "the simulation took longer than the 3.000 s it may take");
}

TEST_CASE("std::bad_alloc in a child is told as lack of memory") {
  ForkedWork work;
  work.count = 1;
  work.work = [](std::size_t) -> std::string { throw std::bad_alloc(); };
  CHECK(std::get<ChildFailure>(run_forked(work)[0]).kind == FailureKind::out_of_memory);
}

/// What `work` leaves on stderr.
std::string stderr_of(const std::function<void()>& work) {
  const int before = dup(STDERR_FILENO);
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  work();
  dup2(before, STDERR_FILENO);
  close(before);
  std::array<char, 100> text{};
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))};
}

TEST_CASE("an abort is lack of memory where that is limited, without a word of its own") {
  ForkedWork work;
  work.count = 1;
  work.work = [](std::size_t) -> std::string {
    if (write(STDERR_FILENO, "backtrace", 9) == 9) std::raise(SIGABRT);
    return {};
  };
  ChildFailure failure;
  const auto run = [&] { failure = std::get<ChildFailure>(run_forked(work)[0]); };
  CHECK(stderr_of(run) == "backtrace");
  CHECK(failure.kind == FailureKind::our_bug);
  work.most_memory = 64_MB;
  CHECK(stderr_of(run).empty());
  CHECK(failure.kind == FailureKind::out_of_memory);
  CHECK(failure.text == "the simulation needs more than the 61.0 MiB of memory it may take");
}

}  // namespace
}  // namespace windtunnel
