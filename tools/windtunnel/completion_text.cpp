#include "windtunnel/completion_text.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/text_list.hpp"
#include "windtunnel/command_line.hpp"

namespace windtunnel {
namespace {

/// Long and short names.
std::string names_of(const std::vector<CompletionOption>& options) {
  std::vector<std::string> names;
  for (const CompletionOption& option : options) {
    names.push_back(option.name);
    if (!option.short_name.empty()) names.push_back(option.short_name);
  }
  return joined(names, " ");
}

std::string names_of(const std::vector<CompletionCommand>& commands) {
  return joined(commands, " ", std::mem_fn(&CompletionCommand::name));
}

/// `text` between single quotes of a shell; quotes and what zsh reads as syntax are left out.
std::string quoted(const std::string& text) {
  std::string plain;
  for (const char each : text)
    if (each != '\'' && each != '[' && each != ']' && each != ':' && each != '`') plain += each;
  return "'" + plain + "'";
}

/// `text` with the pointers in place of @POINTERS@.
std::string with_pointers(std::string text, const CompletionGrammar& grammar) {
  const std::string mark = "@POINTERS@";
  return text.replace(text.find(mark), mark.size(), joined(grammar.pointers, " "));
}

/// How the helpers of each script complete a value; in fish behind the option, nothing for files.
struct ShellActions {
  const char *bash, *zsh, *fish;
};
const ShellActions& actions_of(Completion completion) {
  static constexpr std::array<ShellActions, 6> table{{
      {"COMPREPLY=($(compgen -f -- \"$current\"))", "_files", ""},
      {"_windtunnel_names scenarios", "{_windtunnel_names scenarios}",
       " -a '(__windtunnel_names scenarios)'"},
      {"_windtunnel_names platforms", "{_windtunnel_names platforms}",
       " -a '(__windtunnel_names platforms)'"},
      {"_windtunnel_names models", "{_windtunnel_names models}",
       " -a '(__windtunnel_names models)'"},
      {"_windtunnel_pointers ''", "{_windtunnel_pointers}", " -f -a '(__windtunnel_pointers)'"},
      {"_windtunnel_pointers =", "{_windtunnel_pointers -q -S =}",
       " -f -a '(__windtunnel_pointers =)'"},
  }};
  return table.at(static_cast<std::size_t>(completion));
}

std::string bash_action(const CompletionOption& option) {
  if (option.choices.empty()) return actions_of(option.completion).bash;
  return "COMPREPLY=($(compgen -W \"" + joined(option.choices, " ") + "\" -- \"$current\"))";
}

/// "    rank--emit | rank-o) … ; return ;;" for the options that take a value. `command` is a pattern.
std::string bash_values(const std::string& command, const std::vector<CompletionOption>& options) {
  std::string text;
  for (const CompletionOption& option : options) {
    if (!option.takes_value) continue;
    text += "    " + command + option.name;
    if (!option.short_name.empty()) text += " | " + command + option.short_name;
    text += ") " + bash_action(option) + "; return ;;\n";
  }
  return text;
}

constexpr const char* bash_helpers = R"bash(# bash completion for windtunnel
# Each sets COMPREPLY to what begins with $current, a variable of the caller.
_windtunnel_names() {  # KIND: built-in names of that kind, and files
  COMPREPLY=($(compgen -f -- "$current") $(compgen -W "$(windtunnel list "$1" 2>/dev/null | cut -d' ' -f1)" -- "$current"))
}
_windtunnel_pointers() {  # ENDING: pointers of the first scenario on the line, each with the ending
  local word pointers=
  for word in "${COMP_WORDS[@]:2}"; do
    [[ -f $word || $word == [A-Za-z0-9]* ]] || continue
    pointers=$(windtunnel show --pointers "$word" 2>/dev/null | cut -d= -f1) && [[ -n $pointers ]] && break
  done
  [[ -n $pointers ]] || pointers="@POINTERS@"
  COMPREPLY=($(compgen -S "$1" -W "$pointers" -- "$current"))
  [[ -z $1 ]] || compopt +o filenames -o nospace 2>/dev/null
}
_windtunnel() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} word command= choices= action= options=")bash";

std::string bash_text(const CompletionGrammar& grammar) {
  std::string text = with_pointers(bash_helpers, grammar) + names_of(grammar.options) + R"bash("
  # "--option=value" comes as three words.
  if [[ $current == = ]]; then current=
  elif [[ $previous == = && $COMP_CWORD -gt 1 ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " )bash" + names_of(grammar.commands) +
                     R"bash( " in *" $word "*) command=$word; break ;; esac
  done
  case $command in
)bash";
  for (const CompletionCommand& command : grammar.commands)
    text += "    " + command.name + ") options+=\" " + names_of(command.options) + "\" choices=\"" +
            joined(command.choices, " ") +
            "\" action=" + (command.completion == Completion::scenarios ? "scenarios" : "files") +
            " ;;\n";
  text += "  esac\n  case $command$previous in\n" + bash_values("*", grammar.options);
  for (const CompletionCommand& command : grammar.commands)
    text += bash_values(command.name, command.options);
  text += R"bash(  esac
  if [[ -n $choices && $previous == "$command" && $current != -* ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -z $command ]]; then
    COMPREPLY=($(compgen -W ")bash" +
          names_of(grammar.commands) + R"bash(" -- "$current"))
  elif [[ $action == scenarios ]]; then
    _windtunnel_names scenarios
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _windtunnel windtunnel
)bash";
  return text;
}

std::string zsh_arguments(const std::vector<CompletionOption>& options) {
  std::string text;
  for (const CompletionOption& option : options) {
    const std::string value = option.choices.empty() ? actions_of(option.completion).zsh
                                                     : "(" + joined(option.choices, " ") + ")";
    const std::string about =
        "'['" + quoted(option.about) + "']" + (option.takes_value ? ":value:" + value + "'" : "'");
    text += " \\\n        " + quoted(option.name) + (option.takes_value ? "=" : "") + about;
    if (!option.short_name.empty())
      text += " \\\n        " + quoted(option.short_name) + (option.takes_value ? "+" : "") + about;
  }
  return text;
}

constexpr const char* zsh_helpers = R"zsh(#compdef windtunnel
_windtunnel_names() {  # KIND: built-in names of that kind, and files
  local -a names
  names=(${${(f)"$(windtunnel list $1 2>/dev/null)"}%% *})
  compadd -a names
  _files
}
_windtunnel_pointers() {  # OPTION...: pointers of the first scenario on the line, with these options of compadd
  local word
  local -a pointers
  for word in ${words[2,-1]}; do
    [[ -f $word || $word == [A-Za-z0-9]* ]] || continue
    pointers=(${${(f)"$(windtunnel show --pointers $word 2>/dev/null)"}%%=*})
    (( $#pointers )) && break
  done
  (( $#pointers )) || pointers=(@POINTERS@)
  compadd "$@" -a pointers
}
_windtunnel() {
  local -a commands
  commands=(
)zsh";

std::string zsh_text(const CompletionGrammar& grammar) {
  std::string text = with_pointers(zsh_helpers, grammar);
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
        (command.choices.empty() ? ""
                                 : " \\\n        '1:kind:(" + joined(command.choices, " ") + ")'") +
        " \\\n        '*:file:" + actions_of(command.completion).zsh + "' ;;\n";
  return text + "  esac\n}\n_windtunnel \"$@\"\n";
}

std::string fish_option(const CompletionOption& option, const std::string& condition) {
  const std::string values = option.choices.empty()
                                 ? actions_of(option.completion).fish
                                 : " -f -a '" + joined(option.choices, " ") + "'";
  return "complete -c windtunnel" + condition + " -l " + option.name.substr(2) +
         (option.short_name.empty() ? "" : " -s " + option.short_name.substr(1)) +
         (option.takes_value ? " -r" + values : "") + " -d " + quoted(option.about) + "\n";
}

constexpr const char* fish_helpers = R"fish(# fish completion for windtunnel
function __windtunnel_names # KIND: built-in names of that kind
    windtunnel list $argv[1] 2>/dev/null | string replace -r ' .*' ''
end
function __windtunnel_pointers # ENDING: pointers of the first scenario on the line, each with the ending
    for word in (commandline -opc)[3..]
        test -f $word; or string match -qr '^[A-Za-z0-9]' -- $word; or continue
        set -l pointers (windtunnel show --pointers $word 2>/dev/null | string replace -r '=.*' '')
        if set -q pointers[1]
            string replace -r '$' "$argv[1]" -- $pointers
            return
        end
    end
    string replace -r '$' "$argv[1]" -- @POINTERS@
end
)fish";

std::string fish_text(const CompletionGrammar& grammar) {
  std::string text = with_pointers(fish_helpers, grammar);
  for (const CompletionCommand& command : grammar.commands)
    text += "complete -c windtunnel -n __fish_use_subcommand -a " + command.name + " -d " +
            quoted(command.about) + "\n";
  for (const CompletionOption& option : grammar.options) text += fish_option(option, "");
  for (const CompletionCommand& command : grammar.commands) {
    const std::string chosen = " -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const CompletionOption& option : command.options) text += fish_option(option, chosen);
    if (!command.choices.empty())
      text += "complete -c windtunnel" + chosen + " -f -a '" + joined(command.choices, " ") + "'\n";
    else if (command.completion != Completion::files)
      text += "complete -c windtunnel" + chosen + actions_of(command.completion).fish + "\n";
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
