#pragma once

#include "core/object_reader.hpp"
#include "scenario/job_block.hpp"
#include "scenario/search_block.hpp"

namespace windtunnel {

/// Choices of a `sweep` block besides its points.
struct SweepChoices {
  Objective objective = Objective::tokens_per_second;  ///< by which points are ordered
  JobPlan plan = JobPlan::given;                       ///< of each point
};

/// Checks the structure of the `sweep` block: `matrix` maps JSON pointers to the values to try, `exclude` lists points by
/// some of the matrix's pointers, `include` and `points` list points to add, each with a `label` if it has a name; `baseline` is one of the
/// points; `objective` and `plan` are what is returned.
SweepChoices check_sweep(ObjectReader reader);

}  // namespace windtunnel
