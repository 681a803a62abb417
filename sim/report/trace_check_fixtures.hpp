#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/chrome_trace.hpp"

/// For tests of traces.
namespace windtunnel {

/// Contents of a trace, and the parts that viewers would silently drop, move or misattribute.
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

/// The trace of all devices.
inline std::string chrome_trace(const Timeline& timeline, const ProgramSet& programs,
                                const Plan& plan, const Report& report) {
  std::ostringstream out;
  write_chrome_trace(timeline, programs, plan, report, all_devices(programs), out);
  return std::move(out).str();
}

}  // namespace windtunnel
