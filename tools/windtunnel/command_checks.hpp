#pragma once

#include <string>

#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// The word in double quotes, for messages.
std::string in_quotes(const std::string& word);

/// Of commands that take a FILE, KIND, SHELL or NAME: that there is one.
void check_one_argument(const CommandLine& line);

/// What the options of one command cannot say together. UsageError with what to write instead.
void check_sweep(const CommandLine& line);
void check_validate(const CommandLine& line);
void check_calibrate(const CommandLine& line);
void check_import(const CommandLine& line);
void check_codec(const CommandLine& line);
void check_collective(const CommandLine& line);
void check_probe(const CommandLine& line);
void check_compare(const CommandLine& line);
void check_schedule(const CommandLine& line);
/// What launches the best plan, and the names of pages and traces.
void check_emit(const CommandLine& line);
void check_outputs(const CommandLine& line);

}  // namespace windtunnel
