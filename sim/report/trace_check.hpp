#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// What a trace holds, and what viewers would silently drop, move or misattribute in it.
struct TraceFindings {
  std::size_t events = 0, slices = 0, arrows = 0, counter_samples = 0;
  std::size_t processes = 0, threads = 0;                       ///< that have events
  std::map<std::string, std::int64_t> nanoseconds_by_category;  ///< of slices
  std::map<std::int64_t, double> counter_peak_by_process;
  std::vector<std::string> problems;  ///< the first 20
  std::size_t num_problems = 0;
  bool ok() const { return num_problems == 0; }
};

/// Checks a trace in Chrome's JSON object form. Each rule is one that a viewer enforces without a
/// word:
/// - slices (X) have finite ts and dur >= 0, and on one thread nest or are disjoint (Perfetto drops
/// or
///   moves others: google/perfetto#4280);
/// - a tid belongs to one process in the whole file (Perfetto names threads by tid alone);
/// - every process and thread with events has one name;
/// - an arrow is one s and one f with the same id, cat and name, the f not earlier, with bp "e",
/// and
///   both inside a slice of their thread;
/// - a counter has one finite series;
/// - there is a distributedInfo.rank (Holistic Trace Analysis refuses the file otherwise).
TraceFindings check_trace(std::string_view json);

}  // namespace windtunnel
