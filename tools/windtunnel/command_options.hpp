#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// A number in these bounds, which the help does not repeat: their problem is told with them.
inline CLI::Validator between(auto least, auto most) {
  return CLI::Range(least, most).description("");
}

/// A file or folder to write; "" would be no output at all, as from a variable of a shell that is not set.
CLI::Validator output_name();

/// The options of single commands, which put their values into `line`.
void add_report(CLI::App* command, CommandLine& line);
void add_run_options(CLI::App* run, CommandLine& line);
void add_schedule_options(CLI::App* schedule, CommandLine& line);
void add_device_options(CLI::App* device, CommandLine& line);
void add_explain_options(CLI::App* explain, CommandLine& line);
void add_rank_options(CLI::App* rank, CommandLine& line);
void add_compare_options(CLI::App* compare, CommandLine& line);
void add_new_options(CLI::App* command, CommandLine& line);
void add_sweep_options(CLI::App* sweep, CommandLine& line);
void add_job_options(CLI::App* job, CommandLine& line);
void add_step_options(CLI::App* run, CommandLine& line);
void add_validate_options(CLI::App* validate, CommandLine& line);
void add_calibrate_options(CLI::App* calibrate, CommandLine& line);
void add_import_options(CLI::App* command, CommandLine& line);
void add_collective_options(CLI::App* collective, CommandLine& line);
void add_codec_options(CLI::App* codec, CommandLine& line);

/// The argument of `import` in the help: each kind with what it is.
const std::string& import_kinds();

/// Of "amp|varuna" both; nothing of a text without a bar.
std::vector<std::string> words_between_bars(const std::string& text);
/// The options of a command, or of all commands, as a shell completes them.
std::vector<CompletionOption> options_of(const CLI::App& app);
/// UsageError: none of these commands (null: none) has `option`.
[[noreturn]] void refuse_option(const std::string& option,
                                const std::vector<const CLI::App*>& commands);

}  // namespace windtunnel
