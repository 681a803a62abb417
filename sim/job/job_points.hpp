#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job_result.hpp"

namespace windtunnel {

/// One point of a sweep, played as a job.
struct JobPoint {
  std::string values;               ///< "nodes 128, platform dgx-h100"
  std::optional<JobResult> result;  ///< none where the point cannot be read; without its draws
  bool fits = true;
  std::string problem;  ///< why there is no result
  /// No other point that fits takes fewer days and less money. Where jobs have no price, nothing is.
  bool on_front = false;
};

/// Marks the points on the Pareto front of median days against median cost.
void mark_front(std::vector<JobPoint>& points);

/// The points of the sweep `name`: a table, and a chart of days against money.
document::Document job_points_document(const std::string& name,
                                       const std::vector<JobPoint>& points);
std::string job_points_csv(const std::vector<JobPoint>& points);  ///< a row for each point

}  // namespace windtunnel
