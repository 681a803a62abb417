#include "sweep/worker.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/problem.hpp"
#include "sweep/parts.hpp"

namespace windtunnel {
namespace {

constexpr int exit_done = 0, exit_environment = 3;

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

/// Does the points.
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
      const std::string row = rows_.row(*point);
      part_.append(row);
      const bool is_ok = row.find("\"ok\": true") != std::string::npos;
      say(task_.out, std::to_string(*point) + (is_ok ? " ok" : " failed"));
    }
    part_.flush_to_disk();
  }

 private:
  bool is_known(std::size_t point) {
    if (!task_.is_done || !task_.is_done(point)) return false;
    say(task_.out, std::to_string(point) + " known");
    return true;
  }

  const WorkerTask& task_;
  RowMaker rows_;
  PartWriter part_;
  Orders orders_;
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
