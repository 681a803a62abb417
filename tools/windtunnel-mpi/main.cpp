// Spreads a sweep over the ranks of an MPI job. This program knows MPI and nothing of simulation: libsimgrid exports MPI_* functions of its
// own, so no program can link both. Rank 0 hands out points; each other rank starts one `windtunnel sweep … --worker` and passes the orders on.
// The workers write the rows. At the end rank 0 runs `windtunnel sweep` once more, which does what is left and merges.
//
//   mpirun -n 65 windtunnel-mpi sweep SCENARIO --out DIR
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

extern char** environ;

namespace {

constexpr int exit_done = 0, exit_bad_input = 2, exit_environment = 3;
constexpr int tag = 1;
/// A rank waits for its next order this long at most, in microseconds, before it looks again: MPI's own waiting takes a whole core.
constexpr useconds_t pause_between_looks = 500;
/// Points in one order, at most: few enough that the last orders end together.
constexpr long most_in_order = 8;

/// Variables that say which part of a parallel job a process is.
constexpr std::array job_prefixes{"OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_", "SLURM_"};

using Words = std::vector<std::string>;

void complain(const std::string& text) {
  std::fprintf(stderr, "windtunnel-mpi: %s\n", text.c_str());
}

/// The program next to this one, or $WINDTUNNEL.
std::string simulator() {
  if (const char* given = std::getenv("WINDTUNNEL"); given != nullptr && *given != '\0')
    return given;
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (self.parent_path() / "windtunnel").string();
}

/// This process's environment without what says that it is part of a parallel job: the simulator is none.
Words plain_environment() {
  Words kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool is_of_job = std::ranges::any_of(
        job_prefixes, [&](const char* prefix) { return text.rfind(prefix, 0) == 0; });
    if (!is_of_job) kept.push_back(text);
  }
  return kept;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// A running simulator. fork() is not safe after MPI_Init; posix_spawn() is.
class Simulator {
 public:
  /// With pipes to its stdin and from its stdout when `piped`.
  Simulator(Words arguments, bool piped) {
    std::array<int, 2> to{-1, -1}, from{-1, -1};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (piped) {
      if (pipe2(to.data(), O_CLOEXEC) != 0 || pipe2(from.data(), O_CLOEXEC) != 0) return;
      posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
      posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    }
    const std::string program = simulator();
    arguments.insert(arguments.begin(), program);
    Words environment = plain_environment();
    const int error = posix_spawn(&process_, program.c_str(), &actions, nullptr,
                                  pointers(arguments).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      complain("cannot start " + program + ": " + std::strerror(error) +
               " (set WINDTUNNEL to its path)");
      process_ = -1;
    }
    if (!piped) return;
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~Simulator() { end(); }
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  bool is_running() const { return process_ > 0; }

  /// The next line it says; nothing once it has ended.
  std::optional<std::string> next_line() {
    for (;;) {
      if (const std::size_t line_end = heard_.find('\n'); line_end != std::string::npos) {
        std::string line = heard_.substr(0, line_end);
        heard_.erase(0, line_end + 1);
        return line;
      }
      std::array<char, 4096> piece{};
      const ssize_t count = read(from_, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::nullopt;
      heard_.append(piece.data(), static_cast<std::size_t>(count));
    }
  }

  bool tell(const std::string& line) {
    const std::string text = line + "\n";
    return write(to_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  /// Waits for its end; its exit code.
  int end() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    if (process_ <= 0) return code_;
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    process_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : exit_environment;
    return code_;
  }

 private:
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  int code_ = exit_environment;
  std::string heard_;
};

Words with_worker(Words arguments) {
  arguments.emplace_back("--worker");
  return arguments;
}

/// How many points the sweep has, asked of a simulator that checks the scenario and DIR on the way; below zero: its exit code, negated.
long num_points(const Words& arguments) {
  Simulator worker(with_worker(arguments), true);
  if (!worker.is_running()) return -exit_environment;
  const auto line = worker.next_line();
  const std::string greeting = "points ";
  long number = 0;
  if (line && line->rfind(greeting, 0) == 0) {
    const char* const text_end = line->data() + line->size();
    if (std::from_chars(line->data() + greeting.size(), text_end, number).ec == std::errc{})
      return number;
  }
  if (line) complain(*line);
  const int code = worker.end();
  return -(code == exit_done ? exit_environment : code);
}

/// Waits for a message without taking a core.
MPI_Status wait_for_message(int source) {
  MPI_Status status;
  for (int arrived = 0;;) {
    MPI_Iprobe(source, tag, MPI_COMM_WORLD, &arrived, &status);
    if (arrived != 0) return status;
    usleep(pause_between_looks);
  }
}

/// Rank 0: answers each rank that asks with the next points, then with none.
void hand_out(long points, int ranks) {
  long next = 0;
  for (int served = 0; served < ranks - 1;) {
    const MPI_Status status = wait_for_message(MPI_ANY_SOURCE);
    long ignored = 0;
    MPI_Recv(&ignored, 1, MPI_LONG, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const long fair = std::max(1L, (points - next) / (4L * (ranks - 1)));
    std::array<long, 2> order{next, std::min({most_in_order, fair, points - next})};
    next += order[1];
    if (order[1] == 0) ++served;
    MPI_Send(order.data(), 2, MPI_LONG, status.MPI_SOURCE, tag, MPI_COMM_WORLD);
  }
}

/// The worker's answers to an order; false when it ended before the last.
bool hear_answers(Simulator& worker, long count) {
  for (long answered = 0; answered < count; ++answered) {
    const auto line = worker.next_line();
    if (!line) return false;
    if (line->rfind("! ", 0) == 0) {
      complain(line->substr(2));
      return false;
    }
  }
  return true;
}

/// The other ranks: pass orders on. What a dying worker leaves is done by rank 0 in the end.
void pass_on(const Words& arguments) {
  Simulator worker(with_worker(arguments), true);
  bool works = worker.is_running() && worker.next_line().has_value();
  for (;;) {
    const long request = 0;
    std::array<long, 2> order{};
    MPI_Send(&request, 1, MPI_LONG, 0, tag, MPI_COMM_WORLD);
    wait_for_message(0);
    MPI_Recv(order.data(), 2, MPI_LONG, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (order[1] == 0) return;
    if (!works) continue;
    works = worker.tell(std::to_string(order[0]) + " " + std::to_string(order[1])) &&
            hear_answers(worker, order[1]);
    if (!works) complain("a worker has ended early; rank 0 does what it left");
  }
}

constexpr const char* usage = "mpirun -n RANKS windtunnel-mpi sweep SCENARIO --out DIR [OPTIONS]";

constexpr const char* help = R"(
Spreads a sweep over the ranks of an MPI job. The options are those of `windtunnel sweep`, whose program is looked for beside this one,
or where the environment variable WINDTUNNEL says.

Options:
  -h,--help                   Print this help; also without mpirun

Examples:
  mpirun -n 65 windtunnel-mpi sweep sweep.json --out points
      one rank hands out the points, 64 simulate; the same line again continues
  srun -n 65 windtunnel-mpi sweep sweep.json --out points --report points.html
      the same in a Slurm job, with a page of the results

Exit codes:
  0   done
  1   done; some points failed
  2   bad usage or bad input
  3   a file cannot be read or written, or windtunnel cannot be started
)";

bool asks_for_help(const Words& arguments) {
  return std::ranges::any_of(
      arguments, [](const std::string& word) { return word == "-h" || word == "--help"; });
}

int refuse_usage() {
  complain(std::string("usage: ") + usage + " (windtunnel-mpi --help says more)");
  return exit_bad_input;
}

int spread(const Words& arguments) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (arguments.empty() || arguments.front() != "sweep")
    return rank == 0 ? refuse_usage() : exit_bad_input;
  long points = rank == 0 ? num_points(arguments) : 0;
  MPI_Bcast(&points, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  if (points < 0) return static_cast<int>(-points);
  if (rank != 0) {
    pass_on(arguments);
  } else {
    hand_out(points, ranks);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // every row is written
  return rank == 0 ? Simulator(arguments, false).end() : exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  if (asks_for_help(words)) {  // before MPI starts, which it may not do on a login node
    std::printf("Usage: %s\n%s", usage, help);
    return std::fflush(stdout) == 0 ? exit_done : exit_environment;
  }
  MPI_Init(&argc, &argv);
  signal(SIGPIPE, SIG_IGN);
  const int code = spread(words);
  MPI_Finalize();
  return code;
}
