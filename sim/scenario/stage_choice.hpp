#pragma once

#include "scenario/program_builder.hpp"

namespace windtunnel {

/// The plan's compression with `"stages": "auto"` made concrete: the shortest prefix of stages whose compressed gradients give the
/// least iteration time on an otherwise idle network (heap engine). Every stage ends its backward passes before the one in front of
/// it, so the first stages' reductions are the exposed ones; where the codec costs more than it saves, no stage is chosen.
Compression with_stages_chosen(const BuildInputs& inputs);

}  // namespace windtunnel
