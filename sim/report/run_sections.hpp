#pragma once

#include <string>

#include "report/report.hpp"

/// The parts of a run's page that need no script, as HTML.
namespace windtunnel::html {

/// The first screen: how long, how sure, does it fit, how fast, what job.
std::string headline(const Report& report);
/// The breakdown as one bar and a table, and what is behind each line.
std::string time_section(const Report& report);
/// Where the timeline goes, with its controls.
std::string timeline_section(const std::string& shown);
/// Time and memory of every stage.
std::string stage_section(const Report& report);
/// Links by utilisation, traffic by class.
std::string network_section(const Report& report);
/// Every input with its source.
std::string input_section(const Report& report);
std::string scenario_section(const std::string& resolved);
std::string provenance(const Report& report);

}  // namespace windtunnel::html
