#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/evidence.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// What stands behind an interval.
enum class IntervalBasis {
  measured,      ///< this stack, these GPUs, this cluster and such a job were measured together
  extrapolated,  ///< this stack was measured, but not like this: wider
  unprofiled,    ///< nobody measured this stack: a guess
};

/// Between which the measured time is expected in 90 of 100 cases.
struct Interval {
  Seconds low{}, high{};
  IntervalBasis basis = IntervalBasis::unprofiled;
  std::string reason;  ///< for people: on how many runs it rests, or what was never measured
};

/// Bounds of ln(measured / predicted) for 90 % of new runs, from residuals that were held out, sorted: the shortest interval
/// from one residual to another that holds ceil(0.9 (n+1)) of them. Slow outliers are common and fast ones are not, so
/// tails of equal weight would be needlessly wide (vTrain: +61 % against +19 %). Split conformal (Vovk et al., Algorithmic
/// Learning in a Random World, 2005; Lei et al., JASA 113(523), 2018) with a width chosen on the same residuals, which costs a
/// little coverage: 90.3 % in a synthetic check at 54 rows. Neither end crosses 0. With n < 9 there is no such interval:
/// the extremes, times 1.5. Rows of one set are not independent, so the coverage is a goal, and `validate` counts what is reached.
std::pair<double, double> conformal_bounds(const std::vector<double>& sorted_residuals);

/// The interval that `regimes`, at least one, give a predicted time: the widest bounds of the nearest of them, times 1.5 in
/// ln(measured / predicted) for each of stack, GPU, cluster and job that none of them holds (assumed, nothing measures it).
/// Nearest are those that hold the stack, of these those that hold the GPU, and so on. A stack that nobody measured hides
/// 0-25 % of systematic slowness (docs/model.md): the interval is then that of the same GPUs and cluster under other
/// stacks, at least 15 % either way (times 1.5 as above), whatever the job, and no promise of 90 %.
Interval interval_from(const std::vector<EvidenceRegime>& regimes, const ScenarioTraits& traits,
                       Seconds predicted);

/// The same with the residuals that `library` holds; none when it holds none.
std::optional<Interval> iteration_time_interval(const Scenario& scenario, Seconds predicted,
                                                const Library& library);

/// Writes the interval into the report, with an assumption that says what it rests on, and a
/// warning where that is not measurements of its kind. Does nothing when the library holds no
/// residuals.
void add_interval(const Scenario& scenario, const Library& library, Report& report);
/// The same with residuals that were read before, at least one regime.
void add_interval(const Scenario& scenario, const std::vector<EvidenceRegime>& regimes,
                  Report& report);

}  // namespace windtunnel
