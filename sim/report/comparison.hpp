#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/ordering.hpp"
#include "report/report.hpp"
#include "report/summary_text.hpp"
#include "report/timeline_data.hpp"

namespace windtunnel {

/// The report, with the usable memory where an earlier build did not write it. Throws InputError with every figure that `compare` needs and
/// that is missing or of the wrong kind. What else stands in it is left alone.
JsonValue checked_report(const JsonValue& report);
/// True if the document declares itself a report of `run --json`.
bool is_report(const JsonValue& document);

/// Details that only a run that was simulated here has, beyond its report: for the page.
struct RunDetails {
  std::string scenario;  ///< resolved, as text
  std::string timeline;  ///< JSON, as timeline_json() makes it
  JsonValue why;         ///< the critical path and the reasons
};

/// Details of a run that was simulated here. `scenario` is its resolved text.
RunDetails run_details(const std::string& scenario, const SimulatedIteration& iteration,
                       const Report& report);

/// One of the runs that stand side by side.
struct ComparedRun {
  std::string label;                       ///< "a.json", "without /compression"
  JsonValue report;                        ///< the whole of windtunnel/report-v1
  std::optional<RunDetails> details = {};  ///< where asked for, of a run that was simulated here

  /// A figure of the report, or a text in it.
  double number(const std::string& pointer) const;
  std::string text(const std::string& pointer) const;
  Seconds iteration_time() const { return Seconds{number("/iteration_time_s")}; }
  bool fits() const;  ///< in memory
};

/// One that could not be simulated.
struct FailedRun {
  std::string label, error;
};

/// An input in which the runs differ, with its text in each.
struct InputDifference {
  std::string pointer;  ///< "/parallel/tensor"
  std::vector<std::string> values;
};

/// Network on which a break-even is looked for.
enum class NetworkPart { between_nodes, inside_nodes };

/// At which bandwidth two runs are equally fast: the bandwidth of the scenario's network is multiplied by a factor until
/// their times cross.
struct BreakEven {
  enum class Outcome {
    crosses,        ///< at `factor`
    always_faster,  ///< the second run is faster over the whole range of factors
    always_slower,
    always_equal,
  };
  std::string
      what;  ///< what the second run has and the first has not: "/compression/data_gradients"
  NetworkPart part = NetworkPart::between_nodes;
  Outcome outcome = Outcome::always_equal;
  double factor = 1;           ///< the bandwidth at which they are equal, over the scenario's own
  bool faster_below = true;    ///< the second run is the faster one below that bandwidth
  BytesPerSecond bandwidth{};  ///< `factor` times `bandwidth_now`
  BytesPerSecond bandwidth_now{};  ///< of a node, as the scenario has it
  double lowest = 1, highest = 1;  ///< factors tried
};

/// Bandwidth at which compressing one class of traffic stops paying for a transfer alone, by formula (sim/questions/break_even.hpp), and
/// its effect on the job, by simulation.
struct CodecBreakEven {
  std::size_t run = 0;  ///< of the comparison
  Traffic traffic = Traffic::pipeline_forward;
  Bytes saved{};    ///< that a rank does not send, a message or collective
  Seconds codec{};  ///< that encoding and decoding it take
  /// Compression wins where a rank attains less; none: it costs nothing, and always wins.
  std::optional<BytesPerSecond> bandwidth;
  BytesPerSecond now{};  ///< what a rank attains; 0: not known

  /// An iteration without this codec, less one with it. A transfer that gains alone may have been hidden, so this decides.
  Seconds saved_by_job{};
  /// The same with the assumed speeds of codecs at the slow end of what they may be (slow_codecs()).
  Seconds saved_if_slow{};
  bool slows_job() const { return saved_by_job < Seconds{}; }
};

/// Runs side by side. The first is what the others are measured against.
struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<FailedRun> failed;
  std::vector<InputDifference> differences;
  std::vector<CodecBreakEven> codecs;
  std::vector<BreakEven> break_evens;
  /// Each run against the first, by time for a token; none of the first, and where nothing is known of errors.
  std::vector<std::optional<Ordering>> orderings;
  std::vector<std::string> warnings;

  /// Speed-up over the first run: T(0) / T(i).
  double speedup(std::size_t run) const;
  /// "B does not fit in memory: …", what must be known before any time is compared; empty where all fit.
  std::string misfits() const;
  bool all_fit() const;  ///< whether every run was simulated and fits in memory
};

/// The table for people:
///
///   A  without /compression
///   B  with /compression
///
///   B is faster by 7.6 %, in 90 of 100 cases by 2.1 to 12.8 %
///
///                                 A           B     B - A
///     iteration time        16.31 s     15.07 s    -7.6 %
///     speed-up               1.000x      1.082x
///     …
///   Where the time goes, on the GPUs that finish last
///     compute              10.200 s    10.200 s    +0.000
std::string comparison_text(const Comparison& comparison, Colour colour = Colour::never);

/// {"runs": [report…], "speedup": [1.0, …], "speedup_interval": [null, [1.02, 1.15]…], "orderings": [null, {…}…], "labels": […], "failed": [{"label", "error"}…], "differences": [{"pointer", "values"}…], "codecs": […],
///  "break_even": […], "warnings": […]}
std::string comparison_json(const Comparison& comparison);

/// The page of `compare --report`: runs side by side in one HTML file that needs no network. Everything but the timelines is there without
/// a script. The document of `compare --json` stands in it, under the id "report", byte for byte except that '<' is escaped. Runs known by
/// their report alone have no timeline, critical path and scenario, and say so.
std::string compare_page(const Comparison& comparison);

}  // namespace windtunnel
