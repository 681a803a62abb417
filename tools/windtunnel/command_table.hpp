#pragma once

#include <string>
#include <vector>

#include "windtunnel/command_checks.hpp"
#include "windtunnel/command_line.hpp"

namespace CLI {
class App;
}

namespace windtunnel {

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
  ExitCode (*carry_out)(const CommandLine&) = nullptr;
  void (*add_options)(CLI::App*, CommandLine&) = nullptr;
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

/// What --help says below the options: examples, each with what it is for, and the exit codes.
std::string help_ending(const Command& command);

}  // namespace windtunnel
