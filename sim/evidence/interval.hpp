#pragma once

#include <string>
#include <utility>
#include <vector>

#include "evidence/evidence.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Basis of an interval.
enum class IntervalBasis {
  measured,  ///< this stack, these GPUs, this cluster and such a job were measured together
  /// This stack was measured, but not like this, or nothing was fitted on its runs: wider.
  extrapolated,
  unprofiled,  ///< nobody measured this stack: a guess
};

/// Between which the measured time is expected in 90 of 100 cases.
struct Interval {
  Seconds low{}, high{};
  IntervalBasis basis = IntervalBasis::unprofiled;
  std::string reason;  ///< for people: on how many runs it rests, or what was never measured
  std::string
      brief;  ///< the same in a few words, as a list: "h100 GPUs (measured a100) or sequence 1024 (measured 2048)"
};

/// Words that every interval_warning() begins with.
inline constexpr const char* interval_warning_start = "the prediction interval is ";
/// Why the interval is wide, and what narrows it, as every command says it; empty where it rests on measurements of its kind:
///   the prediction interval is extrapolated: no comparable run that Windtunnel was fitted to had h100 GPUs (measured a100) or …; runs of your own
///   narrow it (windtunnel calibrate --advise FILE)
std::string interval_warning(const Interval& interval);

/// Bounds of ln(measured / predicted) for 90 % of new runs, from residuals that were held out, sorted: the shortest interval
/// from one residual to another that holds ceil(0.9 (n+1)) of them. Slow outliers are common and fast ones are not, so
/// tails of equal weight would be needlessly wide (vTrain: +61 % against +19 %). Split conformal (Vovk et al., Algorithmic
/// Learning in a Random World, 2005; Lei et al., JASA 113(523), 2018) with a width chosen on the same residuals, which costs a
/// little coverage: 90.3 % in a synthetic check at 54 rows. Neither end crosses 0. With n < 9 there is no such interval:
/// the extremes, times 1.5. Rows of one set are not independent, so the coverage is a goal, and `validate` counts what is reached.
std::pair<double, double> conformal_bounds(const std::vector<double>& sorted_residuals);

/// The interval that `errors`, of at least one regime, give a predicted time, of which so much is outside kernels: the widest bounds of the nearest regimes. Nearest are
/// those that hold the stack, of these those that hold the GPU, and so on. A cluster and a job that none holds widen it by half
/// each in ln(measured / predicted) (assumed, nothing measures it); where none holds the GPU, it is at least as wide as errors of
/// sets of which nothing was measured (UnseenErrors::bounds), and where none holds the stack, as wide as these.
Interval interval_from(const MeasuredErrors& errors, const ScenarioTraits& traits,
                       Seconds predicted, double outside_kernels);

/// Writes the interval into the report, with an assumption that says what it rests on, and a
/// warning where that is not measurements of its kind. Does nothing when the library holds no
/// residuals.
void add_interval(const Scenario& scenario, const Library& library, Report& report);
/// The same with residuals that were read before, at least one regime.
void add_interval(const Scenario& scenario, const MeasuredErrors& errors, Report& report);

}  // namespace windtunnel
