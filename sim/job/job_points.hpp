#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evidence/pair_errors.hpp"
#include "job/job_result.hpp"

namespace windtunnel {

/// One point of a sweep, played as a job.
struct JobPoint {
  std::string values;               ///< "nodes 128, platform dgx-h100"
  std::optional<JobResult> result;  ///< none where the point cannot be read; without its draws
  bool fits = true;
  std::string problem;                           ///< why there is no result
  std::optional<JudgedRun> judged = {};          ///< its step, beside that of others
  std::shared_ptr<const PairErrors> pairs = {};  ///< by which steps are told apart; may be null
  /// No other point that fits takes fewer days and less money, as predicted. Where jobs have no price, nothing is.
  bool on_front = false;
  bool front_is_sure =
      true;  ///< the errors of the points leave no doubt that it is on the front, or that it is not
};

/// What a point takes.
enum class Expense { days, cost };

/// Whether the order of two points in days, or in money, is known: right in 90 of 100 cases, as Ordering::is_known(). With medians a
/// factor of e^g apart, and errors u of the steps and v of the runs' own randomness that reach from one median towards the other:
///   sqrt(u^2 + v^2) < g
/// u is what measured pairs say where the points share stack, GPUs and model (least_known_gain()); else, as v, that of two
/// independent spreads.
bool told_apart(const JobPoint& one, const JobPoint& other, Expense expense);

/// Marks the points on the Pareto front of median days against median cost, and where their errors leave that open.
void mark_front(std::vector<JobPoint>& points);

/// The points of the sweep `name`: a table, and a chart of days against money.
document::Document job_points_document(const std::string& name,
                                       const std::vector<JobPoint>& points);
std::string job_points_csv(const std::vector<JobPoint>& points);  ///< a row for each point

}  // namespace windtunnel
