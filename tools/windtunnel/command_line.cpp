#include "windtunnel/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "core/mapped.hpp"
#include "core/number_in.hpp"
#include "core/problem.hpp"
#include "scenario/overrides.hpp"
#include "windtunnel/commands.hpp"

namespace windtunnel {
namespace {

constexpr const char* commands_there_are =
    "run, new, check, show, list, compare, rank, schedule, sweep, job, validate, calibrate, "
    "explain, "
    "import, device, probe, codec, collective, completion and help";

constexpr const char* common_options = "Options of every command";

/// The completion of a value that the help calls `type`.
Completion completion_of(const std::string& type) {
  if (type == "/POINTER=VALUE") return Completion::settings;
  if (type == "/POINTER") return Completion::pointers;
  if (type == "PLATFORM") return Completion::platforms;
  if (type == "MODEL") return Completion::models;
  return Completion::files;
}

/// The options of a command, or of all commands, as a shell completes them.
std::vector<CompletionOption> options_of(const CLI::App& app) {
  std::vector<CompletionOption> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_lnames().empty())
      continue;  // hidden; an argument
    const std::vector<std::string>& brief = option->get_snames();
    const std::string type = option->get_type_name();
    options.push_back({"--" + option->get_lnames().front(),
                       brief.empty() ? "" : "-" + brief.front(), option->get_description(),
                       option->get_items_expected_max() > 0, words_between_bars(type),
                       completion_of(type)});
  }
  return options;
}

/// UsageError: none of these commands (null: none) has `option`.
[[noreturn]] void refuse_option(const std::string& option,
                                const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> known;
  for (const CLI::App* app : commands)
    if (app != nullptr)
      for (const CLI::Option* each : app->get_options())
        for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
  const std::string nearest = closest_match(option.substr(0, option.find('=')), known);
  throw UsageError("unknown option " + in_quotes(option) +
                   (nearest.empty() ? "" : " (did you mean " + in_quotes(nearest) + "?)"));
}

/// CLI11's help, with a usage line as people write the command, and what every command has in common below each of them.
class UsageFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = Formatter::make_help(app, std::move(name), mode);
    while (text.ends_with('\n')) text.pop_back();
    text += '\n';
    if (const CLI::App* program = app->get_parent(); program != nullptr)
      text += make_group(common_options, false, program->get_options([&](const CLI::Option* each) {
        return each->get_name() != "--set" || command_named(app->get_name()).takes_set;
      }));
    return text + help_ending(command_named(app->get_parent() == nullptr ? "" : app->get_name()));
  }

  std::string make_usage(const CLI::App* app, std::string) const override {
    if (app->get_parent() == nullptr) return "Usage: windtunnel COMMAND [OPTIONS]\n";
    const Command& command = command_named(app->get_name());
    const std::string& needed = command.usage.empty() ? command.argument : command.usage;
    return "Usage: windtunnel " + command.name + " " + needed + (needed.empty() ? "" : " ") +
           "[OPTIONS]\n";
  }
};

/// The grammar, and what CLI11 puts the words into. Only commands among the words get their options: making those of all takes longer than `--version` does.
class Grammar {
 public:
  Grammar(int argc, const char* const* argv) : words_(argv, argv + argc) {
    app_.set_help_flag();
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    app_.allow_extras();
    const auto formatter = std::make_shared<UsageFormatter>();
    formatter->label("Positionals", "Arguments");
    app_.formatter(formatter);
    add_options();
    add_commands();
  }

  CommandLine parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string what = error.what();
      const bool is_repeated = what.find("At Most") != std::string::npos;
      throw UsageError("option " + what.substr(0, what.find(':')) +
                       (is_repeated ? " is given twice" : " needs a value"));
    } catch (const CLI::ParseError& error) {
      throw UsageError(error.what());
    }
    const auto chosen = app_.get_subcommands();
    if (!chosen.empty()) line_.command = chosen.front()->get_name();
    refuse_unknown_words(chosen.empty() ? nullptr : chosen.front());
    if (version_) line_.command = "version";
    if (help_ || line_.command.empty()) {
      line_.help = chosen.empty() ? program_help() : chosen.front()->help("windtunnel");
      line_.command = "help";
    } else if (line_.command == "help") {
      line_.help = help_of_arguments();
    }
    if (line_.command == "completion") line_.grammar = describe();
    if (line_.command != "help" && line_.command != "version") check();
    return std::move(line_);
  }

 private:
  void add_options() {
    const char* const group = common_options;
    app_.add_option("--set", sets_, "Change a value of the scenario; may be repeated")
        ->type_name("/POINTER=VALUE")
        ->allow_extra_args(false)
        ->group(group);
    app_.add_flag("--json", json_, "Print the result as one JSON document")->group(group);
    app_.add_option("--seed", seed_, "Seed of random numbers (default 0)")
        ->type_name("N")
        ->group(group);
    app_.add_flag("-q,--quiet", quiet_, "Print results and errors only")->group(group);
    app_.add_option("--color", colour_,
                    "Colours of the output (default auto: on a terminal, unless NO_COLOR is set)")
        ->type_name("auto|always|never")
        ->check(one_of({"auto", "always", "never"}))
        ->group(group);
    app_.add_flag("-V,--version", version_, "Print the version")->group(group);
    app_.add_flag("-h,--help", help_, "Print help, for a command if one is named")->group(group);
  }

  /// A script that completes commands has the options of all.
  bool is_asked_for(std::string_view command) const {
    return std::ranges::any_of(words_, [command](std::string_view word) {
      return word == command || word == "completion";
    });
  }

  void add_commands() {
    for (const Command& each : commands()) {
      CLI::App* command = app_.add_subcommand(each.name, each.summary);
      command->group("Commands");
      command->set_help_flag();
      command->allow_extras();
      if (!each.argument.empty())
        command->add_option(each.argument, line_.arguments, each.about)->type_name("");
      if (each.add_options && is_asked_for(each.name)) each.add_options(command, line_);
    }
  }

  /// Not app_.help(): that is the help of the command which was typed.
  std::string program_help() const {
    return app_.get_formatter()->make_help(&app_, "", CLI::AppFormatMode::Normal);
  }

  /// The text of `windtunnel help` and `windtunnel help COMMAND`.
  std::string help_of_arguments() const {
    if (line_.arguments.empty()) return program_help();
    if (line_.arguments.size() > 1)
      throw UsageError("help takes one COMMAND, these are " +
                       std::to_string(line_.arguments.size()));
    for (const CLI::App* command : app_.get_subcommands({}))
      if (command->get_name() == line_.arguments.front()) return command->help("windtunnel");
    refuse_command(line_.arguments.front());
  }

  CompletionGrammar describe() const {
    CompletionGrammar grammar{options_of(app_), {}, known_pointers()};
    for (const CLI::App* command : app_.get_subcommands({}))
      grammar.commands.push_back(
          {command->get_name(), command->get_description(), options_of(*command),
           command->get_name() == "help" ? command_names()
                                         : command_named(command->get_name()).choices,
           takes_scenario(*command) ? Completion::scenarios : Completion::files});
    return grammar;
  }

  static bool takes_scenario(const CLI::App& command) {
    return command.get_option_no_throw("FILE") != nullptr;
  }

  std::vector<std::string> command_names() const {
    return mapped(app_.get_subcommands({}), &CLI::App::get_name);
  }

  void refuse_unknown_words(CLI::App* command) const {
    const std::vector<std::string> words = app_.remaining(true);
    const auto is_option = [](const std::string& word) {
      return word.size() > 1 && word[0] == '-';
    };
    const auto word = std::ranges::find_if_not(words, is_option);
    if (command == nullptr && word != words.end()) refuse_command(*word);
    const auto option = std::ranges::find_if(words, is_option);
    if (option != words.end()) refuse_option(*option, {&app_, command});
    if (word != words.end()) throw UsageError("unexpected " + in_quotes(*word));
  }

  [[noreturn]] void refuse_command(const std::string& word) const {
    const std::string nearest = closest_match(word, command_names());
    throw UsageError("unknown command " + in_quotes(word) + " (" +
                     (nearest.empty() ? std::string("there are ") + commands_there_are
                                      : "did you mean " + in_quotes(nearest) + "?") +
                     ")");
  }

  void check() {
    line_.format = json_ ? ResultFormat::json : ResultFormat::text;
    line_.verbosity = quiet_ ? Verbosity::quiet : Verbosity::normal;
    line_.colour = colour_ == "always"  ? ColourChoice::always
                   : colour_ == "never" ? ColourChoice::never
                                        : ColourChoice::automatic;
    const auto seed = number_in<std::uint64_t>(seed_);
    if (!seed)
      throw UsageError("--seed is " + in_quotes(seed_) +
                       ", which is not a whole number from 0 to 2^64 - 1");
    line_.seed = *seed;
    for (const std::string& set : sets_) {
      const std::size_t equals = set.find('=');
      if (equals == std::string::npos)
        throw UsageError("--set is " + in_quotes(set) +
                         ", which has no \"=\" (write --set /parallel/tensor=8)");
      line_.overrides.emplace_back(set.substr(0, equals), set.substr(equals + 1));
    }
    const Command& command = command_named(line_.command);
    if (!command.takes_set && !sets_.empty())
      throw UsageError(line_.command + " changes no values of a scenario: it takes no --set");
    expect_independent(line_.overrides);
    command.check(line_);
    check_outputs(line_);
  }

  const std::vector<std::string_view> words_;
  CLI::App app_{"Predicts how long LLM training takes on a cluster, and says why.", "windtunnel"};
  CommandLine line_;
  std::vector<std::string> sets_;
  std::string seed_ = "0", colour_ = "auto";
  bool json_ = false, quiet_ = false, version_ = false, help_ = false;
};

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  return Grammar(argc, argv).parse(argc, argv);
}

}  // namespace windtunnel
