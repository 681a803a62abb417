#pragma once

#include "core/json_value.hpp"
#include "report/report.hpp"
#include "report/timeline_data.hpp"

namespace windtunnel {

/// Why a played iteration takes as long as it does, for a page that compares it with others:
///
///   {"path": [{"what": "compute of stage 5", "line": "compute", "time_s": 1.2, "steps": 24}, …],
///    "path_by_line_s": {"compute": 10.2, …}, "reasons": {"compute": "24 microbatches pass …", …}}
///
/// The times of `path` add up to the iteration's, the largest first.
JsonValue path_value(const PlayedIteration& played, const CriticalPath& critical,
                     const Report& report);

}  // namespace windtunnel
