#pragma once

#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// One function a command. They print their result and return the exit code; what is wrong is thrown.
ExitCode run_command(const CommandLine& line);
ExitCode new_command(const CommandLine& line);
ExitCode collective_command(const CommandLine& line);
ExitCode codec_command(const CommandLine& line);
ExitCode compare_command(const CommandLine& line);
ExitCode check_command(const CommandLine& line);
ExitCode show_command(const CommandLine& line);
ExitCode list_command(const CommandLine& line);
ExitCode rank_command(const CommandLine& line);
ExitCode schedule_command(const CommandLine& line);
ExitCode sweep_command(const CommandLine& line);
ExitCode validate_command(const CommandLine& line);
ExitCode calibrate_command(const CommandLine& line);
ExitCode explain_command(const CommandLine& line);
ExitCode device_command(const CommandLine& line);
ExitCode job_command(const CommandLine& line);
ExitCode import_command(const CommandLine& line);
ExitCode probe_command(const CommandLine& line);

}  // namespace windtunnel
