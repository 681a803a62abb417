#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/report.hpp"

namespace windtunnel {

/// One reason why the iteration takes as long as it does.
struct Reason {
  Line line = Line::compute;  ///< the line of the breakdown that it is about
  Seconds time{};
  std::string title;  ///< "Pipeline bubble: 3.664 s, 6.5 %"
  std::string text;   ///< what makes it so long, in numbers of this run
};

/// The lines of the breakdown that make up at least one percent, longest first, each with its cause.
std::vector<Reason> reasons_for_time(const Report& report);
/// Their texts by line: {"compute": "24 microbatches pass …", …}
JsonValue reasons_value(const Report& report);

/// The bubble that a pipeline of equal stages has without communication, as a share of the whole:
///   (p - 1) / (v m + p - 1)       (Narayanan et al. 2021, section 2.2, eq. 2: bubble over ideal time (p - 1) / (v m))
/// p stages, m microbatches, v chunks a device. 0 for schedules of which this does not hold.
double ideal_bubble_share(const Plan& plan);

}  // namespace windtunnel
