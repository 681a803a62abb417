#include "windtunnel/completion_text.hpp"

#include "windtunnel/command_line.hpp"

namespace windtunnel {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Long and short names.
std::string names_of(const std::vector<CompletionOption>& options) {
  std::vector<std::string> names;
  for (const CompletionOption& option : options) {
    names.push_back(option.name);
    if (!option.short_name.empty()) names.push_back(option.short_name);
  }
  return joined(names);
}

std::string names_of(const std::vector<CompletionCommand>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CompletionCommand& command : commands) names.push_back(command.name);
  return joined(names);
}

/// `text` between single quotes of a shell; quotes and what zsh reads as syntax are left out.
std::string quoted(const std::string& text) {
  std::string plain;
  for (const char each : text)
    if (each != '\'' && each != '[' && each != ']' && each != ':' && each != '`') plain += each;
  return "'" + plain + "'";
}

std::string bash_text(const CompletionGrammar& grammar) {
  std::string text = R"bash(# bash completion for windtunnel
_windtunnel() {
  local current=${COMP_WORDS[COMP_CWORD]} word command= choices= options=")bash" +
                     names_of(grammar.options) + R"bash("
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " )bash" + names_of(grammar.commands) +
                     R"bash( " in *" $word "*) command=$word; break ;; esac
  done
  case $command in
)bash";
  for (const CompletionCommand& command : grammar.commands)
    text += "    " + command.name + ") options+=\" " + names_of(command.options) + "\" choices=\"" +
            joined(command.choices) + "\" ;;\n";
  text += R"bash(  esac
  case $command${COMP_WORDS[COMP_CWORD-1]} in
)bash";
  for (const CompletionCommand& command : grammar.commands)
    for (const CompletionOption& option : command.options)
      if (!option.choices.empty())
        text += "    " + command.name + option.name + ") COMPREPLY=($(compgen -W \"" +
                joined(option.choices) + "\" -- \"$current\")); return ;;\n";
  text += R"bash(  esac
  if [[ -n $choices && ${COMP_WORDS[COMP_CWORD-1]} == "$command" && $current != -* ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -z $command ]]; then
    COMPREPLY=($(compgen -W ")bash" +
          names_of(grammar.commands) + R"bash(" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current") $(compgen -W "$(windtunnel list scenarios 2>/dev/null | cut -d' ' -f1)" -- "$current"))
  fi
}
complete -o filenames -F _windtunnel windtunnel
)bash";
  return text;
}

std::string zsh_arguments(const std::vector<CompletionOption>& options) {
  std::string text;
  for (const CompletionOption& option : options) {
    const std::string value =
        option.choices.empty() ? "_files" : "(" + joined(option.choices) + ")";
    const std::string about =
        "'['" + quoted(option.about) + "']" + (option.takes_value ? ":value:" + value + "'" : "'");
    text += " \\\n        " + quoted(option.name) + (option.takes_value ? "=" : "") + about;
    if (!option.short_name.empty())
      text += " \\\n        " + quoted(option.short_name) + (option.takes_value ? "+" : "") + about;
  }
  return text;
}

std::string zsh_text(const CompletionGrammar& grammar) {
  std::string text = "#compdef windtunnel\n_windtunnel() {\n  local -a commands\n  commands=(\n";
  for (const CompletionCommand& command : grammar.commands)
    text += "    " + quoted(command.name) + "':'" + quoted(command.about) + "\n";
  text += R"(  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
)";
  for (const CompletionCommand& command : grammar.commands)
    text +=
        "    " + command.name + ")\n      _arguments" + zsh_arguments(grammar.options) +
        zsh_arguments(command.options) +
        (command.choices.empty() ? "" : " \\\n        '1:kind:(" + joined(command.choices) + ")'") +
        " \\\n        '*:file:_files' ;;\n";
  return text + "  esac\n}\n_windtunnel \"$@\"\n";
}

std::string fish_option(const CompletionOption& option, const std::string& condition) {
  return "complete -c windtunnel" + condition + " -l " + option.name.substr(2) +
         (option.short_name.empty() ? "" : " -s " + option.short_name.substr(1)) +
         (option.takes_value ? " -r" : "") +
         (option.choices.empty() ? "" : " -f -a '" + joined(option.choices) + "'") + " -d " +
         quoted(option.about) + "\n";
}

std::string fish_text(const CompletionGrammar& grammar) {
  std::string text = "# fish completion for windtunnel\n";
  for (const CompletionCommand& command : grammar.commands)
    text += "complete -c windtunnel -n __fish_use_subcommand -a " + command.name + " -d " +
            quoted(command.about) + "\n";
  for (const CompletionOption& option : grammar.options) text += fish_option(option, "");
  for (const CompletionCommand& command : grammar.commands) {
    const std::string chosen = " -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const CompletionOption& option : command.options) text += fish_option(option, chosen);
    if (!command.choices.empty())
      text += "complete -c windtunnel" + chosen + " -f -a '" + joined(command.choices) + "'\n";
  }
  return text;
}

}  // namespace

std::string completion_text(const CompletionGrammar& grammar, const std::string& shell) {
  if (shell == "bash") return bash_text(grammar);
  if (shell == "zsh") return zsh_text(grammar);
  if (shell == "fish") return fish_text(grammar);
  throw UsageError("there is no completion for \"" + shell + "\" (bash, zsh or fish)");
}

}  // namespace windtunnel
