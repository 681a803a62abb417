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
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/contracts.hpp"
#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "scenario/unsupported.hpp"
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
std::string answer_of(const ForkedWork& work, std::size_t index) {
  std::string answer;
  const auto failure =
      failure_in([&] { answer = result_mark + work.work(index); }, work.most_memory);
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

/// Where libraries cannot have memory they abort, each with a report of its own.
void silence_stderr() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

/// What the child does with its life. It leaves by _exit: buffers and objects belong to the parent.
[[noreturn]] void live_as_child(const ForkedWork& work, std::size_t index, int descriptor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (work.most_memory) {
    silence_stderr();
    limit_memory(*work.most_memory);
  }
  _exit(detail::write_whole(descriptor, answer_of(work, index)) ? 0 : 1);
}

EnvironmentError refused(const char* what) {
  return EnvironmentError(std::string("cannot ") + what + ": " + std::strerror(errno));
}

/// One child and the pipe it answers through; killed and reaped when dropped before its end.
class Child {
 public:
  Child(const ForkedWork& work, std::size_t index)
      : index_(index), most_time_(work.most_time), most_memory_(work.most_memory) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw refused("make a pipe");
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      live_as_child(work, index, ends[1]);
    }
    close(ends[1]);
    descriptor_ = ends[0];
    if (process_ < 0) {
      const EnvironmentError error = refused("start a process");
      close(descriptor_);
      throw error;
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&& other) noexcept
      : index_(other.index_),
        process_(std::exchange(other.process_, -1)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        answer_(std::move(other.answer_)),
        most_time_(other.most_time_),
        most_memory_(other.most_memory_),
        start_(other.start_) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(index_, other.index_);
    std::swap(process_, other.process_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(answer_, other.answer_);
    std::swap(most_time_, other.most_time_);
    std::swap(most_memory_, other.most_memory_);
    std::swap(start_, other.start_);
    return *this;
  }
  ~Child() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    reap();
  }

  std::size_t index() const { return index_; }
  int descriptor() const { return descriptor_; }

  /// Milliseconds until its time is over, rounded up; nothing: it has all the time it wants.
  std::optional<int> milliseconds_left() const {
    if (!most_time_) return std::nullopt;
    constexpr double longest = 1e9;  // 11 days; what poll() can wait for at once
    const double passed = std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    return static_cast<int>(
        std::ceil(std::clamp(*most_time_ / Seconds{1e-3} - passed, 0.0, longest)));
  }
  ChildOutcome end_for_time() {
    kill(process_, SIGKILL);
    reap();
    return ChildFailure{FailureKind::out_of_time, "the simulation took longer than the " +
                                                      to_text(*most_time_) + " it may take"};
  }

  /// Reads what there is; the outcome once the child has said all of it.
  std::optional<ChildOutcome> listen() {
    std::array<char, 65536> buffer;
    const ssize_t count = read(descriptor_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return std::nullopt;
    if (count > 0) {
      answer_.append(buffer.data(), static_cast<std::size_t>(count));
      return std::nullopt;
    }
    return outcome_of(reap());
  }

 private:
  int reap() {
    close(descriptor_);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    process_ = -1;
    return status;
  }

  ChildOutcome outcome_of(int status) {
    if (most_memory_ && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
      return ChildFailure{FailureKind::out_of_memory, out_of_memory_text(most_memory_)};
    if (WIFSIGNALED(status))
      return ChildFailure{FailureKind::our_bug,
                          "the simulation was ended by signal " + std::to_string(WTERMSIG(status)) +
                              " (" + strsignal(WTERMSIG(status)) + ")" +
                              (most_memory_ ? ", allowed " + to_text(*most_memory_) + " of memory"
                                            : std::string{})};
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer_.empty())
      return ChildFailure{FailureKind::our_bug,
                          "the simulation ended without a result, exit code " +
                              std::to_string(WEXITSTATUS(status))};
    const char mark = answer_.front();
    answer_.erase(0, 1);
    if (mark == result_mark) return std::move(answer_);
    return ChildFailure{static_cast<FailureKind>(mark - 'a'), std::move(answer_)};
  }

  std::size_t index_ = 0;
  pid_t process_ = -1;
  int descriptor_ = -1;
  std::string answer_;
  std::optional<Seconds> most_time_;
  std::optional<Bytes> most_memory_;
  Clock::time_point start_ = Clock::now();
};

/// Waits until some child has something to say, or its time is over.
void wait_for_any(const std::vector<Child>& children, std::vector<pollfd>& waiting) {
  constexpr int for_ever = -1;
  waiting.clear();
  int patience = for_ever;
  for (const Child& child : children) {
    waiting.push_back({child.descriptor(), POLLIN, 0});
    const std::optional<int> left = child.milliseconds_left();
    if (left) patience = patience == for_ever ? *left : std::min(patience, *left);
  }
  while (poll(waiting.data(), waiting.size(), patience) < 0)
    if (errno != EINTR) throw refused("wait for a process");
}

}  // namespace

std::vector<ChildOutcome> run_forked(const ForkedWork& work) {
  WT_EXPECT(work.at_once > 0);
  std::vector<ChildOutcome> outcomes(work.count);
  std::vector<Child> children;
  std::vector<pollfd> waiting;
  std::size_t started = 0, done = 0;
  while (done < work.count) {
    while (children.size() < work.at_once && started < work.count)
      children.emplace_back(work, started++);
    wait_for_any(children, waiting);
    for (std::size_t i = children.size(); i-- > 0;) {
      std::optional<ChildOutcome> outcome;
      if (waiting[i].revents != 0)
        outcome = children[i].listen();
      else if (children[i].milliseconds_left() == 0)
        outcome = children[i].end_for_time();
      if (!outcome) continue;
      outcomes[children[i].index()] = std::move(*outcome);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      ++done;
      if (work.on_done) work.on_done(done);
    }
  }
  return outcomes;
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
  Problem problem;
  problem.message = text;
  throw InputError(std::vector<Problem>(1, problem));
}

std::size_t default_at_once() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace windtunnel
