#pragma once

#include "schedule/program.hpp"

namespace windtunnel::detail {

/// Every index in the programs is inside its table, and every exchange is whole; or a ContractViolation. Checked once a
/// program, not once an op played.
void expect_well_formed(const ProgramSet& set);

}  // namespace windtunnel::detail
