#pragma once

#include <string>

#include "report/report.hpp"
#include "report/timeline_data.hpp"

namespace windtunnel {

/// What `run --report` shows beside the report.
struct RunPage {
  const Report* report = nullptr;
  PlayedIteration played;
  std::string scenario;  ///< the resolved scenario as text
};

/// The page of one simulated iteration: one HTML file that needs no network. Everything but the timeline is there without a
/// script. The JSON report stands in it, under the id "report", byte for byte except that '<' is escaped.
std::string run_page(const RunPage& page);

}  // namespace windtunnel
