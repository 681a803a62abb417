#pragma once

#include <string>

namespace windtunnel {

/// What --help says below the options of a command, or of the program where `command` is empty: examples, each with what it is for, and the
/// exit codes. The examples are run by help_test.sh.
std::string help_ending(const std::string& command);

}  // namespace windtunnel
