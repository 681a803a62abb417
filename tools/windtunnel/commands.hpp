#pragma once

#include <functional>
#include <string>
#include <vector>

#include "windtunnel/command_line.hpp"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

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

/// Checks that a command which takes a FILE, KIND, SHELL or NAME has one.
void check_one_argument(const CommandLine& line);
/// Checks options that launch the best plan, and the names of pages and traces.
void check_outputs(const CommandLine& line);

/// A command of the program. Grammar, help, completion, checks and the call are made from its entry in commands().
struct Command {
  struct Example {
    const char* line;
    const char* purpose;
  };

  std::string name;
  std::string summary = {};  ///< in the list of commands
  /// The argument as help and messages call it, and what is said of it; empty: there is none.
  std::string argument = "FILE";
  std::string about =
      "A path, a name that `windtunnel list scenarios` prints, or - for standard input";
  std::vector<std::string> choices = {};  ///< of the first argument, where it is one of a few words
  std::string usage = {};  ///< what the usage line asks for where that is not one argument
  ExitCode (*carry_out)(const CommandLine&) = nullptr;
  std::function<void(CLI::App*, CommandLine&)> add_options = {};
  /// Throws UsageError where options or the number of arguments make no sense.
  void (*check)(const CommandLine&) = check_one_argument;
  bool takes_set = true;               ///< whether --set has values to change
  std::string negative = {};           ///< what exit code 1 means; empty: it does not occur
  std::vector<Example> examples = {};  ///< run by help_test.sh
};

/// In the order in which help lists them.
const std::vector<Command>& commands();
/// The program itself, which has a text of help too, where no command has the name.
const Command& command_named(const std::string& name);

/// The end of --help, below the options: examples, each with what it is for, and the exit codes.
std::string help_ending(const Command& command);

/// The word in double quotes, for messages.
std::string in_quotes(const std::string& word);
/// Refuses other words, with the nearest of these.
CLI::Validator one_of(std::vector<std::string> words);
/// "amp" and "varuna" of "amp|varuna"; nothing of a text without a bar.
std::vector<std::string> words_between_bars(const std::string& text);

}  // namespace windtunnel
