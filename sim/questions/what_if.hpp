#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "report/explanation.hpp"
#include "scenario/scenario.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// The questions that the scenario raises: each kind of link, GPU and node in use, the launch floor, a straggler made and taken away,
/// each stage, the microbatch, schedule and exchange habits, codecs of each traffic class. Only those that the scenario allows.
std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library);

/// What came of all of them, in the order of the list, each simulated on its own, so many at once.
/// `on_done`: called with the number of those done. `is_over`: asked before each; where it says so, the what-if is over budget.
std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done = {},
                                            const std::function<bool()>& is_over = {});

/// What a what-if makes GPUs faster by.
inline constexpr double what_if_faster = 1.1;

/// The most that a what-if which makes kinds of node faster can save, where the platform has several: what the critical path spends on
/// those nodes, times the share that the change takes off. Proven where no link is shared; else as long as messages share links as they
/// did. None for other what-ifs.
class PathBound {
 public:
  PathBound(const Scenario& scenario, const Simulation& simulation, const CriticalPath& path);
  std::optional<Seconds> most_saved(const WhatIf& change) const;

 private:
  struct Times {
    Seconds computing{}, sending{};
  };
  std::vector<Times> of_type_;  ///< by place in the platform's list
};

}  // namespace windtunnel
