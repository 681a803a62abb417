#pragma once

#include <string>

#include "search/plan_enumerator.hpp"

namespace windtunnel {

/// A plan as the command line writes it, "tensor=8,pipeline=4,micro_batch=2". What it leaves out is as in `base`; data, left
/// out, is the rest of the GPUs. Keys: tensor, pipeline, data, micro_batch, virtual_pipeline, zero_stage, schedule,
/// recompute, sequence_parallel. InputError on what is no such text; whether the plan is legal is lay_out()'s to say.
PlanChoice read_plan_text(const std::string& text, const Scenario& base, const SearchSpace& space);

}  // namespace windtunnel
