#pragma once

#include <string>
#include <vector>

namespace windtunnel {

/// What a shell has to know to complete a command line.
struct CompletionOption {
  std::string name;        ///< "--json"
  std::string short_name;  ///< "-o", or empty
  std::string about;
  bool takes_value = false;
  std::vector<std::string> choices;  ///< of the value, where it is one of a few words
};
struct CompletionCommand {
  std::string name, about;
  std::vector<CompletionOption> options;
  std::vector<std::string> choices;  ///< of the first argument; empty: a file or a scenario
};
struct CompletionGrammar {
  std::vector<CompletionOption> options;  ///< of every command
  std::vector<CompletionCommand> commands;
};

/// A script for `shell` (bash, zsh or fish) that completes commands, options and files. Throws UsageError for another shell.
///   windtunnel completion bash > /usr/share/bash-completion/completions/windtunnel
std::string completion_text(const CompletionGrammar& grammar, const std::string& shell);

}  // namespace windtunnel
