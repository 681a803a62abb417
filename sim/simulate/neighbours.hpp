#pragma once

#include "scenario/scenario.hpp"

namespace windtunnel {

/// The scenario with the traffic of its neighbour_jobs on its links, and what they cost each other. Each job is simulated alone on the
/// native engine, then with what the others send alone; a link carries of each what it sends over an iteration, in the mean:
///   rate = bytes over the link / iteration time,    left_by_neighbours() of it is left
/// The neighbours' traffic stays the same if another plan of this job is tried.
/// Limits: bursts that meet, or miss each other, are not seen; nor is how a job that was slowed sends less to those that slowed it, beyond the
/// first step. Placements are taken as planned. The resolved form has the flows, for whoever changes and reads it again; the hash stays.
Scenario with_neighbours(Scenario scenario);

/// Time of an iteration without the second jobs, whose flows the scenario has: for a placement that with_neighbours() did not know.
Seconds time_alone(Scenario scenario);

}  // namespace windtunnel
