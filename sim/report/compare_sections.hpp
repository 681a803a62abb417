#pragma once

#include <string>

#include "report/compare_figures.hpp"

/// The parts of a comparison's page that need no script, as HTML.
namespace windtunnel::html {

/// The first screen: which run is faster by how much, all runs on one axis of time, what was changed, and the headline numbers.
std::string compared_headline(const ComparedFigures& figures);
/// The breakdowns with their differences, why they differ, and the critical paths.
std::string compared_time(const ComparedFigures& figures);
/// Where the timelines go.
std::string compared_timelines(const ComparedFigures& figures);
/// Time and memory of the stages of each run, on common axes.
std::string compared_stages(const ComparedFigures& figures);
/// Traffic by class, and the hottest links of each run.
std::string compared_network(const ComparedFigures& figures);
/// At which bandwidths runs are equally fast; empty where that was not asked and nothing is compressed.
std::string break_even_section(const Comparison& comparison);
bool has_break_evens(const Comparison& comparison);
/// Every input of each run with its source, first those that differ.
std::string compared_inputs(const ComparedFigures& figures);
std::string compared_scenarios(const ComparedFigures& figures);
std::string compared_provenance(const ComparedFigures& figures);

}  // namespace windtunnel::html
