#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// A change of a scenario whose effect is worth knowing, as `--set` would make it.
struct WhatIf {
  std::string what;  ///< "twice the NIC rate of a100-sxm-80gb nodes"
  std::vector<std::pair<std::string, std::string>> overrides;  ///< pointer, value
};

/// The questions that the scenario raises: each kind of link, GPU and node in use, the launch floor, a straggler, the stages of most layers,
/// overlap and exchange habits, codecs. Only those that change something.
std::vector<WhatIf> what_ifs(const Scenario& scenario);

/// What became of a change.
struct WhatIfResult {
  WhatIf change;
  Seconds iteration_time{};
  Breakdown breakdown;
  std::string failure;  ///< why it could not be simulated; empty: it was
};

/// What came of all of them, in the order of the list, each simulated on its own in a forked child, so many at once.
/// `on_done`: called with the number of those done.
std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done = {});

}  // namespace windtunnel
