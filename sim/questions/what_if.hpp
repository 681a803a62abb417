#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "report/explanation.hpp"
#include "scenario/scenario.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// The questions that the scenario raises: each kind of link, GPU and node in use, the launch floor, a straggler made and taken away,
/// each stage, the microbatch, schedule and exchange habits, codecs of each traffic class. Only those that the scenario allows.
std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library);

/// Those about compression: each traffic class that there is without its codec, with each other that could be used, and at half the bytes for nothing.
std::vector<WhatIf> codec_what_ifs(const Scenario& scenario);

/// What came of all of them, in the order of the list, each simulated on its own, so many at once.
/// `on_done`: called with the number of those done.
std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done = {},
                                            EngineKind engine = engine_of_many);

}  // namespace windtunnel
