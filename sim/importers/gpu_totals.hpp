#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/enum_array.hpp"
#include "core/json_value.hpp"
#include "importers/gpu_trace.hpp"
#include "report/document.hpp"
#include "report/report_view.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Time of one kind of work.
struct WorkTotal {
  std::int64_t count = 0;
  std::int64_t nanoseconds = 0;  ///< sum of durations
};

/// A line of the breakdown of a GPU's time. Each instant belongs to the first line that something
/// runs of: a collective behind computing counts as computing.
enum class TraceLine {
  compute,  ///< kernels that do not communicate, and memsets; not those of the two lines below
  optimizer,
  codec,
  tensor_comm,
  pipeline_comm,
  data_comm,
  embedding_sync,
  other_comm,       ///< of groups without a name, or of another kind
  copies,           ///< memcpy alone
  launch_gaps,      ///< nothing runs; of a simulation, because of launches
  pipeline_bubble,  ///< nothing runs; of a simulation, because others are awaited
  idle,             ///< nothing runs, and the trace does not say why
};
/// A line as JSON and pages call it.
struct TraceLineWords {
  const char* name;    ///< as in a report's breakdown_s, where that has it
  const char* text;    ///< on a page
  const char* colour;  ///< class of its colour there
};
extern const EnumArray<TraceLine, TraceLineWords> trace_lines;

/// Time of one GPU by cause, in nanoseconds. Sums are of durations; the rest are lengths of
/// unions, so that what runs at the same time counts once.
struct GpuTotals {
  std::int64_t device = 0;
  std::int64_t window = 0;                             ///< the time that is looked at
  std::int64_t busy = 0;                               ///< something runs
  std::int64_t compute = 0;                            ///< compute or set
  std::int64_t communication = 0;                      ///< of any class
  std::int64_t overlap = 0;                            ///< compute and communication at once
  EnumArray<TraceLine, std::int64_t> lines{};          ///< add up to the window
  EnumArray<ComputePhase, std::int64_t> phases{};      ///< of compute
  EnumArray<CommClass, std::int64_t> communicating{};  ///< by class
  EnumArray<CommClass, std::int64_t> exposed{};        ///< not overlapped with compute
  std::map<std::string, std::map<std::string, WorkTotal>> by_stream;  ///< [stream][work kind]
  std::map<std::string, WorkTotal> by_kernel;  ///< "matrix product", "nccl AllReduce (default_pg)"

  std::int64_t idle() const { return window - busy; }
  std::int64_t exposed_communication() const { return communication - overlap; }
  std::int64_t of(TraceLine line) const { return lines[line]; }
};

/// True if something ran, rather than waited.
bool is_work(const GpuEvent& event);

/// Totals of every GPU in the trace. Within steps that are disjoint and in order, the window is their total length, and work counts as
/// far as it lies in them; without steps it is from the first work of the GPU to its last.
std::vector<GpuTotals> totals_of(const GpuTrace& trace, std::span<const TraceStep> steps = {});

/// Nanoseconds of a trace as a time.
Seconds trace_time(std::int64_t nanoseconds);

/// The totals of one GPU as members of a JSON object, over so many steps. Of phases and classes,
/// those that took time.
JsonValue json_of(const GpuTotals& gpu, std::int64_t steps);

/// Rows of time as texts and pages show them: pointers into json_of().
html::FigureRows time_rows();

/// json_of() for people: time by kind of work, then kernels, then each stream:
///
///                            time   share
///   compute               38.6 ms  17.5 %
///     backward            17.4 ms   7.9 %
///   not computing          181 ms  82.5 %
///   …
///
///   kernels                  time   calls
///   matrix product        15.7 ms      85
std::vector<document::Table> totals_of_work(const JsonValue& gpu);

/// Description that a trace has of itself: "PyTorch's profiler, rank 0 of 2, NVIDIA A100-SXM4-40GB".
std::string described(const GpuTrace& trace);
/// Its GPU in words: "GPU 0", or the process's name of a simulated one.
std::string gpu_name(const GpuTrace& trace, std::int64_t device);

/// Note on the share of kernel time of unknown kind, with the longest such kernels; empty if all are known.
std::string unknown_kernels_note(const GpuTrace& trace);

}  // namespace windtunnel
