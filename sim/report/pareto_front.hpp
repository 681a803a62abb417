#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/chart.hpp"

namespace windtunnel {

/// One way to do a job.
struct PricedPoint {
  std::string label;
  double days = 0, cost = 0;
  bool on_front = false;                   ///< no other point takes fewer days and less money
  std::optional<Chart::Error> error = {};  ///< of days and cost, which go together
};

/// Marks the points on the Pareto front of days against cost. Of points that are equal in both, all are on it or none is.
void mark_pareto_front(std::vector<PricedPoint>& points);

/// A chart of days (right) against money (up), each from nought.
Chart days_money_chart(const std::vector<PricedPoint>& points);

}  // namespace windtunnel
