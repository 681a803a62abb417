#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "platform/network.hpp"
#include "schedule/program.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// Inputs of a page's timeline.
struct SimulatedIteration {
  const Timeline* timeline = nullptr;
  const ProgramSet* programs = nullptr;
  const Network* network = nullptr;
  const Plan* plan = nullptr;
  DeviceId last_device;
};

/// The simulated devices that a page draws, and what it says about the choice.
struct ShownDevices {
  std::vector<DeviceId> devices;  ///< in the plan's order
  std::string
      text;  ///< "64 of 384 devices (512 of 3072 GPUs): replica 5, which ends last, and replica 0"
};

/// Most things (ops, waits, messages) that a page's timeline draws: 300,000 make a page of about 2 MB.
inline constexpr std::size_t most_things = 300000;

/// All devices when they fit. Otherwise whole replicas: the one that ends last and replica 0; then the former alone; then of it
/// the device that ends last, the first and the last stage, and as many evenly spaced others as fit.
ShownDevices shown_devices(const SimulatedIteration& iteration, std::size_t limit = most_things);

/// Devices to show if timelines of several runs are stacked: the replica that ends last, or as much of it as fits.
ShownDevices devices_of_last_replica(const SimulatedIteration& iteration,
                                     std::size_t limit = most_things / 4);

/// The timeline of those devices as JSON:
///
///   {"end":…, "shown":"…", "devices":[{"name":…,"stage":0,"replica":0,"ends_last":true}], "ops":[…], "links":[…],
///    "columns":{"compute_begin":[offset,count],…}, "bytes":"H4sI…"}
///
/// Times are nanoseconds. `bytes` is base64 of a gzip file of columns of integers, each the difference to the one before it,
/// zigzag-coded (0, -1, 1, -2 are 0, 1, 2, 3) in groups of seven bits, lowest first (LEB128).
///
/// The critical path is there step by step: what it is (0 compute, 1 message, 2 collective), where that stands in the columns of its
/// kind (-1: on a device that is not shown), when, its line of the breakdown's colour, and its name. `*_slack`: how much later each could end.
std::string timeline_json(const SimulatedIteration& iteration, const ShownDevices& shown,
                          const CriticalPath& path);

}  // namespace windtunnel
