#include "sweep/sweep_command.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <set>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/work_note.hpp"
#include "report/number_text.hpp"
#include "sweep/pool.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// More processes than any machine has: the product of two such numbers fits.
constexpr std::size_t most_processes = std::size_t{1} << 31;

std::optional<std::size_t> count_in(const std::string& text) {
  const auto number = number_in<std::size_t>(text);
  return number && *number <= most_processes ? number : std::nullopt;
}

using Variable = std::function<std::string(const std::string&)>;

std::optional<Shard> shard_of(const Variable& variable, const std::string& rank,
                              const std::string& size) {
  const auto index = count_in(variable(rank)), count = count_in(variable(size));
  if (!index || !count || *index >= *count) return std::nullopt;
  return Shard{*index, *count, rank};
}

std::optional<Shard> shard_of_array(const Variable& variable) {
  const auto id = count_in(variable("SLURM_ARRAY_TASK_ID"));
  const auto count = count_in(variable("SLURM_ARRAY_TASK_COUNT"));
  if (!id || !count) return std::nullopt;
  const std::size_t first = count_in(variable("SLURM_ARRAY_TASK_MIN")).value_or(0);
  const std::size_t step =
      std::max<std::size_t>(1, count_in(variable("SLURM_ARRAY_TASK_STEP")).value_or(1));
  if (*id < first || (*id - first) / step >= *count) return std::nullopt;
  return Shard{(*id - first) / step, *count, "SLURM_ARRAY_TASK_ID"};
}

constexpr int exit_done = 0, exit_negative = 1, exit_resumable = 75;

/// "412 of 1,024 points (3 failed), 254 a second, 2.4 s left"
std::string progress_text(std::size_t done, std::size_t failed, std::size_t total,
                          Seconds elapsed) {
  std::string text = grouped_text(static_cast<double>(done)) + " of " +
                     grouped_text(static_cast<double>(total)) + (total == 1 ? " point" : " points");
  if (failed > 0) text += " (" + grouped_text(static_cast<double>(failed)) + " failed)";
  if (done == 0) return text;
  const double rate = static_cast<double>(done) / elapsed.value();
  const double left = static_cast<double>(total - done) / rate;
  return text + ", " + significant_text(rate, 3) + " a second, " + to_text(Seconds{left}) + " left";
}

/// Ranges as stated in the help of the options. Less memory than a simulation begins with, or more time than can be waited for, is a slip.
constexpr AmountRange time_limits{"1 us", "240 h"}, memory_limits{"64 MB", "1 PB"};

template <class Amount>
std::optional<Amount> limit_of(const char* option, const std::string& text, AmountRange range) {
  if (text.empty()) return std::nullopt;
  std::string problem, suggestion;
  const std::optional<Amount> amount = parse_quantity<Amount>(text, problem, suggestion, range);
  if (!amount) throw option_error(option, text, problem, suggestion);
  const RangeSide side = side_of(*amount, range);
  if (side != RangeSide::inside)
    throw option_error(option, text,
                       text + " is too " + (side == RangeSide::below ? "small" : "large"),
                       range_suggestion<Amount>(range) + ", or leave the option out for no limit");
  return amount;
}

Shard shard_of(const SweepRequest& request) {
  if (request.shard.empty())
    return request.variable ? shard_from_environment(request.variable) : Shard{};
  const std::optional<Shard> shard = parse_shard(request.shard);
  if (!shard)
    throw option_error("--shard", request.shard, "\"" + request.shard + "\" is no part of a sweep",
                       "write --shard 0/4 to --shard 3/4, one for each of 4 processes");
  return *shard;
}

void print(const SweepRequest& request, const Sweep& sweep, const PartRows& rows, std::ostream& out,
           std::ostream& messages) {
  const bool is_json = request.format == ResultFormat::json;
  const std::string same = is_json ? same_text(sweep, rows) : "";
  if (!same.empty() && request.progress != ProgressStyle::hidden)
    messages << "warning: " << same << std::endl;
  out << (is_json ? sweep_json(sweep, rows, request.directory)
                  : sweep_text(sweep, rows, request.directory));
}

class SweepRun {
 public:
  SweepRun(const SweepRequest& request, const Library& library, std::ostream& out,
           std::ostream& messages)
      : request_(request),
        sweep_(request.file, library, {request.overrides, request.seed}, request.choose_plan),
        limits_{limit_of<Seconds>("--time-limit", request.time_limit, time_limits),
                limit_of<Bytes>("--memory-limit", request.memory_limit, memory_limits)},
        out_(out),
        messages_(messages) {}

  int run() {
    switch (request_.mode) {
      case SweepMode::dry_run: {
        const WorkNoteScope listing("listing the points", "points");
        out_ << (request_.format == ResultFormat::json ? points_json(sweep_) : points_text(sweep_));
        return exit_done;
      }
      case SweepMode::status:
        return status();
      case SweepMode::worker:
        return work();
      case SweepMode::run:
        return do_points();
    }
    WT_UNREACHABLE();
  }

 private:
  void note(const std::string& text) {
    if (request_.progress != ProgressStyle::hidden) messages_ << text << std::endl;
  }

  void warn_of_left_out(const PartRows& rows) {
    for (const std::filesystem::path& each : rows.no_files)
      note("warning: " + each.string() + " is left out: it is no regular file");
    const std::size_t listed = std::min(Problems::max_reported, rows.refused.size());
    for (std::size_t i = 0; i < listed; ++i)
      note("warning: " + rows.refused[i].place + ": the row is left out: " + rows.refused[i].why);
    if (listed < rows.refused.size())
      note("warning: " + count_text(rows.refused.size() - listed, "more row") + " " +
           is_or_are(rows.refused.size() - listed) + " left out");
  }

  int status() {
    expect_manifest(request_.directory, sweep_, request_.version);
    const PartRows rows = merge_results(request_.directory, sweep_);
    warn_of_left_out(rows);
    print(request_, sweep_, rows, out_, messages_);
    write_page(rows);
    const bool is_complete = rows.by_point.size() == sweep_.points().size();
    return rows.refused.empty() || is_complete ? exit_done : exit_negative;
  }

  int work() {
    sweep_.expect_a_readable_point();
    open_manifest(request_.directory, sweep_, request_.version);
    std::set<std::size_t> known;
    for (const auto& [point, row] : read_parts(request_.directory, sweep_).by_point)
      if (row.ok || !request_.retry_failed) known.insert(point);
    return serve_points(sweep_, {request_.directory, limits_,
                                 [&](std::size_t point) { return known.count(point) == 1; },
                                 STDIN_FILENO, STDOUT_FILENO});
  }

  int do_points() {
    const Shard shard = shard_of(request_);
    sweep_.expect_a_readable_point();
    open_manifest(request_.directory, sweep_, request_.version);
    if (!shard.origin.empty())
      note("part " + std::to_string(shard.index) + " of " + std::to_string(shard.count) + ", by " +
           shard.origin);
    if (const JsonValue* noise = sweep_.written().find("noise");
        noise != nullptr && !noise->is_null())
      note("iterations are simulated without noise; run --steps N simulates N with it");
    PoolTask task;
    {
      const PartRows before = read_parts(request_.directory, sweep_);
      if (before.num_torn > 0)
        note(count_text(before.num_torn, "unfinished line") + " of an earlier run " +
             is_or_are(before.num_torn) + " ignored; " +
             (before.num_torn == 1 ? "its point is" : "their points are") + " done again");
      warn_of_left_out(before);
      for (std::size_t point = 0; point < sweep_.points().size(); ++point) {
        if (!shard.holds(point)) continue;
        const auto row = before.by_point.find(point);
        if (row == before.by_point.end() || (request_.retry_failed && !row->second.ok))
          task.points.push_back(point);
      }
      if (!before.by_point.empty())
        note(count_text(before.by_point.size(), "point") + " " + is_or_are(before.by_point.size()) +
             " done already, " + std::to_string(task.points.size()) + " to do");
    }
    if (!task.points.empty() && work(std::move(task)) == PoolEnd::interrupted) return interrupted();
    const PartRows rows = merge_results(request_.directory, sweep_);
    print(request_, sweep_, rows, out_, messages_);
    write_page(rows);
    const bool has_failed = std::ranges::any_of(rows.by_point, [&](const auto& each) {
      return shard.holds(each.first) && !each.second.ok;
    });
    return has_failed ? exit_negative : exit_done;
  }

  void write_page(const PartRows& rows) {
    if (request_.report.empty()) return;
    note("up to 10 points are simulated once more, to say where their time goes");
    write_file_atomically(request_.report,
                          sweep_page(sweep_, rows, request_.directory, request_.version));
    note("wrote " + request_.report.string());
  }

  PoolEnd work(PoolTask task) {
    task.directory = request_.directory;
    task.limits = limits_;
    task.jobs = request_.jobs == 0 ? default_at_once() : request_.jobs;
    ProgressLine line(messages_, request_.progress);
    task.on_progress = [&line, total = task.points.size(),
                        start = std::chrono::steady_clock::now()](std::size_t done,
                                                                  std::size_t failed) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      line.show(progress_text(done, failed, total, Seconds{elapsed.count()}));
    };
    try {
      return run_pool(sweep_, task);
    } catch (const EnvironmentError& error) {
      throw EnvironmentError(
          std::string(error.what()) +
          "\nWhat is done is safe. Once that is mended, the same command goes on "
          "where it stopped.");
    }
  }

  int interrupted() {
    const PartRows rows = read_parts(request_.directory, sweep_);
    messages_ << "interrupted: " << rows.by_point.size() << " of "
              << count_text(sweep_.points().size(), "point") << " "
              << is_or_are(sweep_.points().size()) << " done. The same command goes on from here."
              << std::endl;
    return exit_resumable;
  }

  const SweepRequest& request_;
  Sweep sweep_;
  ChildLimits limits_;
  std::ostream& out_;
  std::ostream& messages_;
};

}  // namespace

std::optional<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto index = count_in(text.substr(0, slash)), count = count_in(text.substr(slash + 1));
  if (!index || !count || *count == 0 || *index > *count) return std::nullopt;
  return Shard{*index % *count, *count, "--shard"};
}

Shard shard_from_environment(const Variable& variable) {
  // A step of `srun`. SLURM_NTASKS will not do: a batch script that calls no srun has it too, and runs once.
  const auto step = shard_of(variable, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (auto array = shard_of_array(variable)) {
    if (!step) return *array;
    return {array->index * step->count + step->index, array->count * step->count,
            "SLURM_ARRAY_TASK_ID and SLURM_PROCID"};
  }
  if (const auto mpi = shard_of(variable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
    return *mpi;
  if (const auto mpi = shard_of(variable, "PMI_RANK", "PMI_SIZE")) return *mpi;
  if (step) return *step;
  return {};
}

int run_sweep(const SweepRequest& request, const Library& library, std::ostream& out,
              std::ostream& messages) {
  // Broken pipes and full files are failed writes, and are told as such.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  return SweepRun(request, library, out, messages).run();
}

}  // namespace windtunnel
