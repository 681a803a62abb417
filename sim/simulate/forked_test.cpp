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
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

Problem problem_saying(const char* message) { return {{}, "/x", message, {}}; }

/// The failure of a child whose work is `work`.
ChildFailure failure_of(const std::function<void()>& work, const ChildLimits& limits = {}) {
  const ChildOutcome outcome = run_in_child(
      [&]() -> std::string {
        work();
        return "no failure";
      },
      limits);
  REQUIRE(std::holds_alternative<ChildFailure>(outcome));
  return std::get<ChildFailure>(outcome);
}

TEST_CASE("an answer longer than a pipe holds arrives whole") {
  const std::string long_answer(1'000'000, 'z');
  CHECK(std::get<std::string>(run_in_child([&] { return long_answer; })) == long_answer);
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
  CHECK(failure_of([] { std::raise(SIGKILL); }).text.find("signal 9") != std::string::npos);
  CHECK(failure_of([] { std::_Exit(7); }).text.find("exit code 7") != std::string::npos);
}

TEST_CASE("an empty answer is an answer") {
  CHECK(std::get<std::string>(run_in_child([] { return std::string(); })).empty());
}

TEST_CASE("a child that takes longer than it may is ended, and one that does not is not") {
  const auto late =
      failure_of([] { std::this_thread::sleep_for(std::chrono::hours(1)); }, {1_s, {}});
  CHECK(late.kind == FailureKind::out_of_time);
  CHECK(late.text == "the simulation took longer than the 1.000 s it may take");
  const ChildLimits enough{3_s, {}};  // on any machine
  CHECK(std::get<std::string>(run_in_child([] { return std::string("0"); }, enough)) == "0");
}

TEST_CASE("std::bad_alloc in a child is told as lack of memory") {
  CHECK(failure_of([] { throw std::bad_alloc(); }).kind == FailureKind::out_of_memory);
}

/// Text that `work` writes to stderr.
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
  ChildFailure failure;
  const auto run = [&](const ChildLimits& limits) {
    return stderr_of([&] {
      failure = failure_of(
          [] {
            if (write(STDERR_FILENO, "backtrace", 9) == 9) std::raise(SIGABRT);
          },
          limits);
    });
  };
  CHECK(run({}) == "backtrace");
  CHECK(failure.kind == FailureKind::our_bug);
  CHECK(run({{}, 64_MB}).empty());
  CHECK(failure.kind == FailureKind::out_of_memory);
  CHECK(failure.text == "the simulation needs more than the 61.0 MiB of memory it may take");
}

}  // namespace
}  // namespace windtunnel
