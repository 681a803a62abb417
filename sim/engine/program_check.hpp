#pragma once

#include <string>

#include "schedule/program.hpp"

namespace windtunnel::detail {

/// Every index in the programs is inside its table, and every exchange is whole; or a ContractViolation. Checked once a
/// program, not once per simulated op.
void expect_well_formed(const ProgramSet& set);

/// Says which streams never finish and what each waits for, for a reader:
///
///     deadlock: 2 of 4 devices never finish
///       device 3 compute op 17 (receive gradient of microbatch 4) waits for a message that device 4 has not sent
///       device 4 compute op 9 (receive activation of microbatch 7) waits for a message that device 3 has not sent
///     cyclic wait: device 3 -> device 4 -> device 3
std::string describe_deadlock(const ProgramSet& programs);

}  // namespace windtunnel::detail
