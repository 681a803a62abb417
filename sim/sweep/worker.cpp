#include "sweep/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "engine/prepared_engine.hpp"
#include "sweep/parts.hpp"

namespace windtunnel {
namespace {

constexpr int exit_done = 0, exit_environment = 3, exit_our_bug = 4;

/// Who asked is gone when nobody reads the answer: then there is nothing more to do.
class Gone {};

void say(int descriptor, const std::string& line) {
  const std::string text = line + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw Gone();
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The exit code of a worker that does `work`; what it cannot do, it says on `out`.
int guarded(int out, const std::function<void()>& work);

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
  void put_back() { --next_; }

  /// What another process needs to go on from here, and going on from what another one left.
  std::string left() const {
    return std::to_string(next_) + " " + std::to_string(end_) + "\n" + buffer_;
  }
  void take_over(const std::string& left_by_other) {
    const std::size_t line_end = left_by_other.find('\n');
    const auto range = parse_order(left_by_other.substr(0, line_end));
    WT_EXPECT(line_end != std::string::npos && range);
    next_ = range->first;
    end_ = range->second;
    buffer_ = left_by_other.substr(line_end + 1);
  }

 private:
  std::optional<std::string> next_line() {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      std::array<char, 4096> piece;
      const ssize_t count = ::read(descriptor_, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::nullopt;
      buffer_.append(piece.data(), static_cast<std::size_t>(count));
    }
  }

  int descriptor_;
  std::size_t num_points_;
  std::size_t next_ = 0, end_ = 0;
  std::string buffer_;
};

/// How a deputy ended, when not well.
struct DeputyEnded {
  int code;
};

/// Does the points. When a network comes a second time in a row, a forked deputy makes SimGrid's platform for it once and does the points that
/// share it; its children need not make it again. The deputy ends at the first point with another network, and this process goes on.
class Server {
 public:
  Server(const Sweep& sweep, const WorkerTask& task)
      : task_(task),
        rows_(sweep, task.limits),
        part_(task.directory),
        orders_(task.in, sweep.points().size()) {}

  void serve() {
    while (const auto point = orders_.next()) {
      if (is_known(*point)) continue;
      Candidate candidate = rows_.read(*point);
      const bool comes_again =
          candidate.built && last_shape_ &&
          *last_shape_ == shape_of(candidate.built->programs.network_to_play());
      if (comes_again) {
        send_deputy(std::move(candidate));
        last_shape_.reset();
        continue;
      }
      if (candidate.built) last_shape_ = shape_of(candidate.built->programs.network_to_play());
      finish(std::move(candidate));
    }
    part_.flush_to_disk();
  }

 private:
  bool is_known(std::size_t point) {
    if (!task_.is_done || !task_.is_done(point)) return false;
    say(task_.out, std::to_string(point) + " known");
    return true;
  }

  void finish(Candidate candidate) {
    const std::size_t point = candidate.point;
    const std::string row = rows_.row(std::move(candidate));
    part_.append(row);
    const bool is_ok = row.find("\"ok\": true") != std::string::npos;
    say(task_.out, std::to_string(point) + (is_ok ? " ok" : " failed"));
  }

  void send_deputy(Candidate candidate) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw EnvironmentError(std::string("cannot make a pipe: ") + std::strerror(errno));
    const pid_t parent = getpid();
    const pid_t deputy = fork();
    if (deputy < 0)
      throw EnvironmentError(std::string("cannot start a process: ") + std::strerror(errno));
    if (deputy == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(exit_environment);
      _exit(guarded(task_.out, [&] {
        act_as_deputy(std::move(candidate));
        say(ends[1], orders_.left());
      }));
    }
    close(ends[1]);
    wait_for(deputy, ends[0]);
  }

  void act_as_deputy(Candidate candidate) {
    const NetworkShape shape = shape_of(candidate.built->programs.network_to_play());
    prepare_simgrid_engine(candidate.built->programs.network_to_play());
    finish(std::move(candidate));
    while (const auto point = orders_.next()) {
      if (is_known(*point)) continue;
      Candidate next = rows_.read(*point);
      if (next.built && shape_of(next.built->programs.network_to_play()) != shape) {
        orders_.put_back();
        return;
      }
      finish(std::move(next));
    }
  }

  void wait_for(pid_t deputy, int from) {
    std::string left;
    std::array<char, 4096> piece;
    for (ssize_t count = 0; (count = ::read(from, piece.data(), piece.size())) != 0;)
      if (count > 0)
        left.append(piece.data(), static_cast<std::size_t>(count));
      else if (errno != EINTR)
        break;
    close(from);
    int status = 0;
    while (waitpid(deputy, &status, 0) < 0 && errno == EINTR) continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != exit_done)
      throw DeputyEnded{WIFEXITED(status) ? WEXITSTATUS(status) : exit_our_bug};
    left.pop_back();  // say() ended it as a line
    orders_.take_over(left);
  }

  const WorkerTask& task_;
  RowMaker rows_;
  PartWriter part_;
  Orders orders_;
  std::optional<NetworkShape> last_shape_;
};

int guarded(int out, const std::function<void()>& work) {
  try {
    try {
      work();
    } catch (const EnvironmentError& error) {
      say(out, std::string("! ") + error.what());
      return exit_environment;
    }
  } catch (const Gone&) {
    return exit_environment;
  } catch (const DeputyEnded& end) {
    return end.code;
  }
  return exit_done;
}

}  // namespace

int serve_points(const Sweep& sweep, const WorkerTask& task) {
  return guarded(task.out, [&] {
    Server server(sweep, task);
    say(task.out, "points " + std::to_string(sweep.points().size()));
    server.serve();
  });
}

}  // namespace windtunnel
