#pragma once

#include "scenario/scenario.hpp"

namespace windtunnel {

/// The scenario on the segment of each NVLink domain that suits most plans of its search (Platform: `segment`), where the file says none:
/// one cluster is searched, and what suits the file's own plan may make others straddle.
Scenario on_segment_of_search(Scenario base);

}  // namespace windtunnel
