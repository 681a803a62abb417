#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "report/report.hpp"
#include "schedule/program.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// Writes the simulated iteration as Chrome trace events, for https://ui.perfetto.dev, chrome://tracing and
/// Holistic Trace Analysis. One event a line:
///
///   {"schemaVersion":1,"displayTimeUnit":"ns","distributedInfo":{"rank":0,"world_size":64,…},
///   "otherData":{"name":"gpt-39b","version":"0.1.0","scenario_hash":…},"traceEvents":[
///   {"ph":"M","name":"process_name","pid":2,"args":{"name":"ranks 0008-0015 · dp0 pp1 tp0-7 ·
///   node1"}},
///   {"ph":"M","name":"thread_name","pid":2,"tid":200,"args":{"name":"compute"}},
///   {"ph":"X","name":"forward
///   0","cat":"gpu_user_annotation","pid":2,"tid":200,"ts":0.000,"dur":4.000,…},
///   {"ph":"X","name":"forward","cat":"kernel","pid":2,"tid":200,"ts":0.000,"dur":3.000,…},
///   {"ph":"s","name":"activation","cat":"message","id":7,"pid":1,"tid":102,"ts":4.001}
///   ]}
///
/// pid is the device's number plus one, tid is 100 pid + lane: unique in the file, as Perfetto
/// wants it. What each category means: docs/trace.md.
///
/// Shows `devices`, in their order; at least one. An arrow whose other end is in none of them is left
/// out. Written as it is made: a trace may be larger than memory.
void write_chrome_trace(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
                        const Report& report, const std::vector<DeviceId>& devices,
                        std::ostream& out);

std::vector<DeviceId> all_devices(const ProgramSet& programs);
/// All devices where their trace has up to a million events, which viewers load; else as many whole
/// replicas as have, and at least the first.
std::vector<DeviceId> devices_that_viewers_load(const Timeline& timeline,
                                                const ProgramSet& programs, const Plan& plan);

/// A file a device, as Holistic Trace Analysis wants a rank's: distributedInfo.rank is the first of
/// its ranks, and arrows are left out, since their other end is in another file. Hands each text to
/// `take`, in order.
void write_device_traces(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
                         const Report& report, const std::vector<DeviceId>& devices,
                         const std::function<void(DeviceId, std::string)>& take);

}  // namespace windtunnel
