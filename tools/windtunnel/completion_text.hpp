#pragma once

#include <string>
#include <vector>

namespace windtunnel {

/// Kinds of values that a shell can complete.
enum class Completion {
  files,
  scenarios,  ///< names that `windtunnel list scenarios` prints, and files
  platforms,  ///< likewise
  models,     ///< likewise
  pointers,   ///< what `windtunnel show --pointers` prints of the scenario on the line
  settings,   ///< pointers, each with "=" behind it
};

/// An option as a shell needs it to complete a command line.
struct CompletionOption {
  std::string name;        ///< "--json"
  std::string short_name;  ///< "-o", or empty
  std::string about;
  bool takes_value = false;
  std::vector<std::string> choices;           ///< of the value, where it is one of a few words
  Completion completion = Completion::files;  ///< of the value, where it is not
};
struct CompletionCommand {
  std::string name, about;
  std::vector<CompletionOption> options;
  std::vector<std::string> choices;  ///< of the first argument, where it is one of a few words
  Completion completion = Completion::files;  ///< of the others
};
struct CompletionGrammar {
  std::vector<CompletionOption> options;  ///< of every command
  std::vector<CompletionCommand> commands;
  std::vector<std::string> pointers;  ///< to be offered where the line names no scenario
};

/// A script for `shell` (bash, zsh or fish) that completes commands, options and values. Throws UsageError for another shell.
///   windtunnel completion bash > /usr/share/bash-completion/completions/windtunnel
std::string completion_text(const CompletionGrammar& grammar, const std::string& shell);

}  // namespace windtunnel
