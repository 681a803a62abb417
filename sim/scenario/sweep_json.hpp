#pragma once

#include "core/object_reader.hpp"

namespace windtunnel {

/// Checks the structure of the `sweep` block: `matrix` maps JSON pointers to the values to try, `exclude` lists points by
/// some of the matrix's pointers, `include` lists points to add.
void check_sweep(ObjectReader reader);

/// Checks the structure of the `search` block: lists of what to try for tensor, pipeline, data, micro_batch,
/// virtual_pipeline, zero_stage (whole numbers), schedule and recompute (names).
void check_search(ObjectReader reader);

}  // namespace windtunnel
