#include "sweep/pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "sweep/results.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace {

constexpr int exit_worker_done = 0, exit_environment = 3;

/// Thrown if nobody reads the answer: the parent is gone, so there is nothing more to do.
class ReaderGone {};

void say(int descriptor, const std::string& line) {
  if (!detail::write_whole(descriptor, line + "\n")) throw ReaderGone();
}

/// "16 4" as {16, 4}.
std::optional<std::pair<std::size_t, std::size_t>> parse_order(const std::string& line) {
  std::pair<std::size_t, std::size_t> order;
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, order.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ' ') return std::nullopt;
  const auto count = std::from_chars(first.ptr + 1, end, order.second);
  if (count.ec != std::errc{} || count.ptr != end) return std::nullopt;
  return order;
}

/// Text that comes in pieces, line by line.
class LineBuffer {
 public:
  /// Reads what has come; false at the end.
  bool fill(int descriptor) {
    std::array<char, 4096> piece;
    const ssize_t count = ::read(descriptor, piece.data(), piece.size());
    if (count > 0) text_.append(piece.data(), static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && errno == EINTR);
  }
  std::optional<std::string> next() {
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

 private:
  std::string text_;
};

/// The points asked for, one after the other.
class Orders {
 public:
  Orders(int descriptor, std::size_t num_points)
      : descriptor_(descriptor), num_points_(num_points) {}

  /// The next point; nothing at the end of the input.
  std::optional<std::size_t> next() {
    while (next_ == end_) {
      const std::optional<std::string> line = next_line();
      if (!line) return std::nullopt;
      const auto order = parse_order(*line);
      if (!order || order->first + order->second > num_points_)
        throw EnvironmentError("\"" + *line + "\" asks for no points of this sweep");
      next_ = order->first;
      end_ = order->first + order->second;
    }
    return next_++;
  }

 private:
  std::optional<std::string> next_line() {
    for (;;) {
      if (auto line = lines_.next()) return line;
      if (!lines_.fill(descriptor_)) return std::nullopt;
    }
  }

  int descriptor_;
  std::size_t num_points_;
  std::size_t next_ = 0, end_ = 0;
  LineBuffer lines_;
};

/// Points that a worker has before it: one under way and one more, so that it never waits for its next.
constexpr std::size_t most_ahead = 2;
/// Attempts for a point whose worker dies.
constexpr int most_attempts = 2;
constexpr std::array stopping_signals{SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t stop_was_asked_for = 0;
void ask_for_stop(int) { stop_was_asked_for = 1; }

EnvironmentError refused(const char* what) {
  return EnvironmentError(std::string("cannot ") + what + ": " + std::strerror(errno));
}

/// While it lives, the stopping signals come only while this process waits.
class SignalGuard {
 public:
  SignalGuard() {
    stop_was_asked_for = 0;
    sigset_t blocked;
    sigemptyset(&blocked);
    for (std::size_t i = 0; i < stopping_signals.size(); ++i) {
      sigaddset(&blocked, stopping_signals[i]);
      struct sigaction action {};
      action.sa_handler = ask_for_stop;
      sigaction(stopping_signals[i], nullptr, &before_[i]);
      // Signals that our parent ignores stay ignored: nohup.
      if (before_[i].sa_handler != SIG_IGN) sigaction(stopping_signals[i], &action, nullptr);
    }
    sigprocmask(SIG_BLOCK, &blocked, &mask_);
  }
  ~SignalGuard() { restore(); }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  void restore() const {
    for (std::size_t i = 0; i < stopping_signals.size(); ++i)
      sigaction(stopping_signals[i], &before_[i], nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  const sigset_t& mask_while_waiting() const { return mask_; }

 private:
  std::array<struct sigaction, stopping_signals.size()> before_{};
  sigset_t mask_{};
};

/// One worker process and the pipes to and from it.
struct Worker {
  pid_t process = -1;
  int to = -1, from = -1;
  LineBuffer heard;
  std::deque<std::size_t> assigned;  ///< in the order in which it does them
};

class Pool {
 public:
  Pool(const Sweep& sweep, const PoolTask& task)
      : sweep_(sweep), task_(task), waiting_(task.points), part_(task.directory) {}
  ~Pool() {
    for (Worker& worker : workers_) {
      kill(worker.process, SIGTERM);
      end(worker);
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  PoolEnd run() {
    while (done_ < task_.points.size()) {
      while (workers_.size() < std::min(task_.jobs, task_.points.size() - done_)) start();
      for (Worker& worker : workers_) assign(worker);
      wait();
      if (stop_was_asked_for != 0) return PoolEnd::interrupted;
      if (task_.on_progress) task_.on_progress(done_, failed_);
    }
    for (Worker& worker : workers_) end(worker);
    workers_.clear();
    part_.flush_to_disk();
    return PoolEnd::all_done;
  }

 private:
  void start() {
    std::array<int, 2> to{}, from{};
    if (pipe2(to.data(), O_CLOEXEC) != 0) throw refused("make a pipe");
    if (pipe2(from.data(), O_CLOEXEC) != 0) throw refused("make a pipe");
    const pid_t parent = getpid();
    Worker worker;
    worker.process = fork();
    if (worker.process < 0) throw refused("start a process");
    if (worker.process == 0) {
      close(to[1]);
      close(from[0]);
      live_as_worker(parent, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    worker.to = to[1];
    worker.from = from[0];
    workers_.push_back(std::move(worker));
  }

  /// The workers end with this process, even when it is killed; an interrupt from the terminal is for this process to act on.
  [[noreturn]] void live_as_worker(pid_t parent, int in, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    for (const Worker& other : workers_) {
      close(other.to);
      close(other.from);
    }
    signals_.restore();
    signal(SIGINT, SIG_IGN);
    int code = 1;
    try {
      code = serve_points(sweep_, {task_.directory, task_.limits, {}, in, out});
    } catch (...) {  // the parent sees that the worker has died
    }
    _exit(code);
  }

  void assign(Worker& worker) {
    while (worker.assigned.size() < most_ahead && !waiting_.empty()) {
      const std::string order = std::to_string(waiting_.front()) + " 1\n";
      // A worker that is gone is found out when its pipe ends.
      if (write(worker.to, order.data(), order.size()) < 0) return;
      worker.assigned.push_back(waiting_.front());
      waiting_.pop_front();
    }
  }

  void wait() {
    std::vector<pollfd> pipes;
    for (const Worker& worker : workers_) pipes.push_back({worker.from, POLLIN, 0});
    const timespec patience{1, 0};  // to show that time passes
    if (ppoll(pipes.data(), pipes.size(), &patience, &signals_.mask_while_waiting()) < 0) {
      if (errno != EINTR) throw refused("wait for a process");
      return;
    }
    for (std::size_t i = pipes.size(); i-- > 0;) {
      Worker& worker = workers_[i];
      if (pipes[i].revents == 0) continue;
      if (worker.heard.fill(worker.from)) {
        while (const auto line = worker.heard.next()) take(worker, *line);
        continue;
      }
      retire(worker);
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void take(Worker& worker, const std::string& line) {
    if (line.starts_with("! ")) throw EnvironmentError(line.substr(2));
    if (line.starts_with("points ")) return;
    count(line.ends_with(" ok"));
    worker.assigned.pop_front();
  }

  void count(bool is_ok) {
    ++done_;
    if (!is_ok) ++failed_;
  }

  /// A worker has died: its points go to others. The one it was at may have been the reason, and is not tried for ever.
  void retire(Worker& worker) {
    const std::string cause = end(worker);
    if (worker.assigned.empty()) return;
    const std::size_t suspect = worker.assigned.front();
    if (++attempts_[suspect] >= most_attempts) {
      part_.append(RowMaker(sweep_, task_.limits)
                       .failed_row(suspect, {FailureKind::our_bug,
                                             "the worker that simulated it " + cause + ", twice"}));
      count(false);
      worker.assigned.pop_front();
    }
    waiting_.insert(waiting_.begin(), worker.assigned.begin(), worker.assigned.end());
  }

  /// Waits for the worker's end; how it ended, as text.
  static std::string end(Worker& worker) {
    close(worker.to);
    close(worker.from);
    int status = 0;
    while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFSIGNALED(status))
      return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
             strsignal(WTERMSIG(status)) + ")";
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
  }

  const Sweep& sweep_;
  const PoolTask& task_;
  SignalGuard signals_;
  std::deque<std::size_t> waiting_;
  std::vector<Worker> workers_;
  std::map<std::size_t, int> attempts_;
  PartWriter part_;  ///< for points that no worker survives
  std::size_t done_ = 0, failed_ = 0;
};

}  // namespace

int serve_points(const Sweep& sweep, const WorkerTask& task) {
  try {
    try {
      const RowMaker rows(sweep, task.limits);
      PartWriter part(task.directory);
      Orders orders(task.in, sweep.points().size());
      say(task.out, "points " + std::to_string(sweep.points().size()));
      while (const auto point = orders.next()) {
        const bool is_known = task.is_done && task.is_done(*point);
        const std::string row = is_known ? "" : rows.row(*point);
        if (!is_known) part.append(row);
        const bool is_ok = row.find("\"ok\": true") != std::string::npos;
        say(task.out, std::to_string(*point) + (is_known ? " known" : is_ok ? " ok" : " failed"));
      }
      part.flush_to_disk();
    } catch (const EnvironmentError& error) {
      say(task.out, std::string("! ") + error.what());
      return exit_environment;
    }
  } catch (const ReaderGone&) {
    return exit_environment;
  }
  return exit_worker_done;
}

PoolEnd run_pool(const Sweep& sweep, const PoolTask& task) { return Pool(sweep, task).run(); }

}  // namespace windtunnel
