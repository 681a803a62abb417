#pragma once

#include <string>

#include "importers/trace_comparison.hpp"

namespace windtunnel {

/// The page of `compare --report` where one of the runs is a trace: one HTML file that needs no network, and nothing in it a script.
/// The steps on one axis of time, their lines and kernels with the differences to the first, and what cannot be compared. The
/// document of --json stands in it under the id "report".
std::string timeline_comparison_page(const TimelineComparison& comparison);

}  // namespace windtunnel
