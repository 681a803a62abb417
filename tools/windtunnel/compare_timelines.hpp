#pragma once

#include <optional>

#include "windtunnel/command_line.hpp"
#include "windtunnel/exit_code.hpp"

namespace windtunnel {

/// `compare` where one of the files is a trace: timelines side by side. Nothing where none is.
std::optional<ExitCode> compare_timelines_if_any(const CommandLine& line);

}  // namespace windtunnel
