#include "simulate/forked.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/contracts.hpp"
#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "scenario/scenario.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// First byte of what a child says: a result, or a failure of kind 'a' + FailureKind.
constexpr char result_mark = '=';

using Clock = std::chrono::steady_clock;

char mark_of(FailureKind kind) { return static_cast<char>('a' + static_cast<int>(kind)); }

std::string out_of_memory_text(std::optional<Bytes> most) {
  if (!most) return "the simulation ran out of memory";
  return "the simulation needs more than the " + to_text(*most) + " of memory it may take";
}

/// The result of `work`, or the exception it ended with, as bytes for the parent.
std::string answer_of(const std::function<std::string()>& work, const ChildLimits& limits) {
  std::string answer;
  const auto failure = failure_in([&] { answer = result_mark + work(); }, limits.memory);
  return failure ? mark_of(failure->kind) + failure->text : answer;
}

/// Bytes of this process that count against RLIMIT_DATA: VmData.
rlim_t data_in_use() {
  std::ifstream status("/proc/self/statm");
  rlim_t total = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  status >> total >> resident >> shared >> text >> library >> data;
  return status ? data * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) : 0;
}

void limit_memory(Bytes most) {
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  const auto wanted = data_in_use() + static_cast<rlim_t>(most / Bytes{1});
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_DATA, &limit);
}

/// Silences stderr: libraries that cannot get memory abort, each with a report of its own.
void silence_stderr() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

/// Body of the child process. It leaves by _exit, since buffers and objects belong to the parent.
[[noreturn]] void live_as_child(const std::function<std::string()>& work, const ChildLimits& limits,
                                int descriptor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (limits.memory) {
    silence_stderr();
    limit_memory(*limits.memory);
  }
  _exit(detail::write_whole(descriptor, answer_of(work, limits)) ? 0 : 1);
}

EnvironmentError refused(const char* what) {
  return EnvironmentError(std::string("cannot ") + what + ": " + std::strerror(errno));
}

/// Reads all that the child says; false where its time is over before. EnvironmentError where it cannot be read.
bool hear(int descriptor, std::optional<Seconds> most_time, std::string& answer) {
  constexpr double longest = 1e9;  // milliseconds, 11 days; what poll() can wait for at once
  const auto start = Clock::now();
  const auto milliseconds_left = [&] {
    return *most_time / Seconds{1e-3} -
           std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  std::array<char, 65536> buffer;
  for (;;) {
    int patience = -1;  // for ever
    if (most_time)
      patience = static_cast<int>(std::ceil(std::clamp(milliseconds_left(), 0.0, longest)));
    pollfd pipe{descriptor, POLLIN, 0};
    const int ready = poll(&pipe, 1, patience);
    if (ready == 0) return false;
    const ssize_t count = ready < 0 ? ready : read(descriptor, buffer.data(), buffer.size());
    if (count == 0) return !most_time || milliseconds_left() >= 0;
    if (count < 0 && errno != EINTR) throw refused("hear a process");
    if (count > 0) answer.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Outcome of a child that ended with this status.
ChildOutcome outcome_of(int status, std::string answer, const ChildLimits& limits) {
  if (limits.memory && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
    return ChildFailure{FailureKind::out_of_memory, out_of_memory_text(limits.memory)};
  if (WIFSIGNALED(status))
    return ChildFailure{FailureKind::our_bug,
                        "the simulation was ended by signal " + std::to_string(WTERMSIG(status)) +
                            " (" + strsignal(WTERMSIG(status)) + ")" +
                            (limits.memory ? ", allowed " + to_text(*limits.memory) + " of memory"
                                           : std::string{})};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    return ChildFailure{FailureKind::our_bug, "the simulation ended without a result, exit code " +
                                                  std::to_string(WEXITSTATUS(status))};
  const char mark = answer.front();
  answer.erase(0, 1);
  if (mark == result_mark) return answer;
  return ChildFailure{static_cast<FailureKind>(mark - 'a'), std::move(answer)};
}

}  // namespace

ChildOutcome run_in_child(const std::function<std::string()>& work, const ChildLimits& limits) {
  // A child that another thread starts meanwhile would hold the writing end, too, and this one's answer would not end before that child does.
  static std::mutex one_at_a_time;
  std::unique_lock lock(one_at_a_time);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw refused("make a pipe");
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    live_as_child(work, limits, ends[1]);
  }
  if (process < 0) {
    const EnvironmentError error = refused("start a process");
    for (const int end : ends) close(end);
    throw error;
  }
  close(ends[1]);
  lock.unlock();
  const auto end = [&](bool kills) {
    if (kills) kill(process, SIGKILL);
    close(ends[0]);
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
    return status;
  };
  std::string answer;
  bool is_in_time = false;
  try {
    is_in_time = hear(ends[0], limits.time, answer);
  } catch (...) {
    end(true);
    throw;
  }
  const int status = end(!is_in_time);
  if (!is_in_time)
    return ChildFailure{FailureKind::out_of_time, "the simulation took longer than the " +
                                                      to_text(*limits.time) + " it may take"};
  return outcome_of(status, std::move(answer), limits);
}

std::optional<ChildFailure> failure_in(const std::function<void()>& work,
                                       std::optional<Bytes> most_memory) {
  try {
    work();
    return std::nullopt;
  } catch (const UnsupportedError& error) {
    return ChildFailure{FailureKind::unsupported, error.what()};
  } catch (const InputError& error) {
    return ChildFailure{FailureKind::bad_input, error.what()};
  } catch (const NotEnoughMemory& error) {
    return ChildFailure{FailureKind::out_of_memory, error.what()};
  } catch (const EnvironmentError& error) {
    return ChildFailure{FailureKind::environment, error.what()};
  } catch (const std::system_error& error) {
    return ChildFailure{FailureKind::environment, error.what()};
  } catch (const std::bad_alloc&) {
    return ChildFailure{FailureKind::out_of_memory, out_of_memory_text(most_memory)};
  } catch (const std::exception& error) {
    return ChildFailure{FailureKind::our_bug, error.what()};
  } catch (...) {
    return ChildFailure{FailureKind::our_bug, "an exception of unknown type"};
  }
}

void throw_failure(const ChildFailure& failure, const std::string& what) {
  const std::string text = what + ": " + failure.text;
  if (failure.kind == FailureKind::our_bug) throw std::runtime_error(text);
  if (failure.kind == FailureKind::environment) throw EnvironmentError(text);
  throw InputError({{{}, {}, text, {}}});
}

std::size_t default_at_once() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace windtunnel
