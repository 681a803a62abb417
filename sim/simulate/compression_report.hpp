#pragma once

#include "lower/program_builder.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Adds what the codecs in use assume: their numbers of each device file, and ratios that the scenario gives.
void add_codec_assumptions(const Scenario& scenario, Report& report);

/// Says where compression does nothing (no such traffic, messages below the threshold, no fewer bytes), and where its codec takes
/// longer than the transfer that it saves, on links with nothing else on them.
void add_compression_warnings(const Scenario& scenario, const BuiltPrograms& built, Report& report);

}  // namespace windtunnel
