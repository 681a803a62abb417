#pragma once

#include "core/object_reader.hpp"

namespace windtunnel {

/// Checks the structure of the `sweep` block: `matrix` maps JSON pointers to the values to try, `exclude` lists points by
/// some of the matrix's pointers, `include` lists points to add.
void check_sweep(ObjectReader reader);

}  // namespace windtunnel
