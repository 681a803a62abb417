#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "importers/gpu_totals.hpp"
#include "report/summary_text.hpp"
#include "scenario/scenario.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// One side of a comparison of timelines: a trace, or a scenario that will be simulated.
struct TimelineInput {
  std::string label;
  std::variant<std::filesystem::path, Scenario> content;
};

/// True if a file is to be read as a trace: packed, JSON that begins as traces do, or a tar archive, whose reader says what to
/// do with it.
bool is_trace_file(const std::filesystem::path& file);

/// One GPU's iteration, as a profiler sees it.
struct ComparedTimeline {
  std::string label;
  TraceKind kind = TraceKind::real;
  std::string who;  ///< "PyTorch's profiler, rank 0 of 8, Tesla V100; GPU 0"
  std::int64_t rank = -1, world_size = -1;
  std::int64_t steps = 1;  ///< that the totals are over; the comparison is of one
  bool is_marked = false;  ///< whether steps are marked; else all of the trace is one
  GpuTotals totals;
  bool fits = true;  ///< whether the simulated scenario fits in memory; of a trace nobody knows

  Seconds of_one(std::int64_t nanoseconds) const;  ///< mean over the steps
  Seconds time() const { return of_one(totals.window); }
};

namespace detail {
/// True if the name of a simulated process contains this rank: "ranks 0008-0015 · dp0 …", "rank 0003 · …".
bool names_rank(const std::string& process, std::int64_t rank);
}  // namespace detail

/// Timelines side by side. The first is what the others are measured against.
struct TimelineComparison {
  std::vector<ComparedTimeline> runs;
  std::vector<std::string> notes;  ///< what cannot be compared, or not as it stands

  /// Speed-up over the first: T(0) / T(i).
  double speedup(std::size_t run) const;
};

/// Reads the traces and simulates the scenarios. Of a file or simulation of several GPUs the one is
/// taken that holds the rank of the first real trace; else the one that ends last.
TimelineComparison compare_timelines(const std::vector<TimelineInput>& inputs,
                                     const Library& library);

/// The table for people, and the document of --json.
std::string timeline_comparison_text(const TimelineComparison& comparison, Colour colour);
std::string timeline_comparison_json(const TimelineComparison& comparison);
/// The page of `compare --report` where one of the runs is a trace: one HTML file that needs no network, and nothing in it a script.
/// The steps on one axis of time, their lines and kernels with the differences to the first, and what cannot be compared. The
/// document of --json stands in it under the id "report".
std::string timeline_comparison_page(const TimelineComparison& comparison);

}  // namespace windtunnel
