#pragma once

#include <string>

#include "report/comparison.hpp"
#include "report/timeline_data.hpp"

namespace windtunnel {

/// Details of a run that was played here. `scenario` is its resolved text.
RunDetails run_details(const std::string& scenario, const PlayedIteration& played,
                       const Report& report);

/// The page of `compare --report`: runs side by side in one HTML file that needs no network. Everything but the timelines is there without
/// a script. The document of `compare --json` stands in it, under the id "report", byte for byte except that '<' is escaped. Runs known by
/// their report alone have no timeline, critical path and scenario, and say so.
std::string compare_page(const Comparison& comparison);

}  // namespace windtunnel
