#include "windtunnel/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <sstream>

#include "codec/measured_codec.hpp"
#include "core/problem.hpp"
#include "plan/schedule.hpp"
#include "scenario/known_pointers.hpp"
#include "scenario/overrides.hpp"
#include "windtunnel/help_text.hpp"

namespace windtunnel {
namespace {

constexpr int most_plans = 1'000'000, most_jobs = 1024;
constexpr const char* commands_there_are =
    "run, check, show, list, compare, rank, schedule, sweep, validate, calibrate, explain, import, "
    "codec, completion and help";

constexpr const char* list_kinds = "models|platforms|devices|software|scenarios|codecs";

constexpr const char* common_options = "Options of every command";

/// A number in these bounds, which the help does not repeat: their problem is told with them.
CLI::Validator between(auto least, auto most) { return CLI::Range(least, most).description(""); }

std::string in_quotes(const std::string& word) { return "\"" + word + "\""; }

/// A file or folder to write; "" would be no output at all, as from a variable of a shell that is not set.
CLI::Validator output_name() {
  return {[](const std::string& name) {
            return name.empty() ? std::string("the name is empty") : std::string();
          },
          ""};
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
      text += make_group(common_options, false, program->get_options());
    const std::string command = app->get_parent() == nullptr ? "" : app->get_name();
    return text + help_ending(command);
  }

  std::string make_usage(const CLI::App* app, std::string) const override {
    if (app->get_parent() == nullptr) return "Usage: windtunnel COMMAND [OPTIONS]\n";
    std::string usage = "Usage: windtunnel " + app->get_name();
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional()) usage += " " + option->get_name(true);
    return usage + (app->get_name() == "show" ? " --resolved|--pointers" : "") + " [OPTIONS]\n";
  }
};

/// The grammar, and what CLI11 puts the words into.
class Grammar {
 public:
  Grammar() {
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
      throw UsageError("option " + what.substr(0, what.find(':')) + " needs a value");
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
    app_.add_option("--seed", seed_, "Seed of what is random (default 0)")
        ->type_name("N")
        ->group(group);
    app_.add_flag("-q,--quiet", quiet_, "Print results and errors only")->group(group);
    app_.add_option(
            "--color", colour_,
            "Colours in what is printed (default auto: on a terminal, unless NO_COLOR is set)")
        ->type_name("auto|always|never")
        ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
        ->group(group);
    app_.add_flag("-V,--version", version_, "Print the version")->group(group);
    app_.add_flag("-h,--help", help_, "Print help, of a command where one is named")->group(group);
  }

  CLI::App* add_command(const char* name, const char* what, const char* argument,
                        const std::string& about) {
    CLI::App* command = app_.add_subcommand(name, what);
    command->group("Commands");
    command->set_help_flag();
    command->allow_extras();
    command->add_option(argument, line_.arguments, about)->type_name("");
    return command;
  }

  void add_commands() {
    const char* const file =
        "A path, a name that `windtunnel list scenarios` prints, or - for standard input";
    CLI::App* run =
        add_command("run", "Simulate one training iteration of a scenario", "FILE", file);
    run->add_option("--trace", line_.trace, "Write a Chrome trace (.json or .json.gz)")
        ->type_name("OUT")
        ->check(output_name());
    run->add_flag("--trace-all", line_.trace_all,
                  "Every device in the trace, even where that is more than viewers load");
    run->add_option("--rank-traces", line_.rank_traces,
                    "Write a trace of each simulated device, named by its first rank")
        ->type_name("DIR")
        ->check(output_name());
    add_report(run);
    run->add_option(
           "--detail", detail_,
           "layer: every layer of every pass as events, kernels and collectives, for a trace that "
           "shows them; times are those of pass, unless messages contend")
        ->type_name("pass|layer")
        ->check(CLI::IsMember({"pass", "layer"}).description(""));
    run->add_option("--out", line_.out,
                    "Write report.json, report.html and trace.json.gz into a folder")
        ->type_name("DIR")
        ->check(output_name());
    add_command("check", "Read and check a scenario, no more", "FILE", file);
    CLI::App* show =
        add_command("show", "Print the whole scenario with the origin of each value", "FILE", file);
    show->add_flag("--resolved", resolved_, "Merged, with names and defaults filled in");
    show->add_flag("--pointers", line_.pointers,
                   "One line for each value that --set can change, as --set takes it");
    add_command("list", "Print what is built in", "KIND",
                "models, platforms, devices, software, scenarios or codecs");
    add_rank(file);
    add_compare();
    add_schedule();
    add_sweep(file);
    CLI::App* validate =
        add_command("validate", "Predict published measurements and score the predictions", "SET",
                    "Paths or names of measurement sets; none: all of validation/");
    validate->add_flag("--details", line_.details,
                       "Print every point, and memory, timers and the order of plans");
    validate
        ->add_option("--fail-above", line_.fail_above,
                     "Exit with 1 when a set's metric is above; may be repeated")
        ->type_name("METRIC=LIMIT")
        ->allow_extra_args(false);
    validate->add_option("--svg", line_.svg, "Write a scatter plot of predicted and measured times")
        ->type_name("OUT");
    add_report(validate);
    add_calibrate();
    add_report(add_command("explain",
                           "Show the critical path of an iteration, and what would change it",
                           "FILE", file));
    add_import();
    add_codec();
    add_command("completion", "Print a script that completes commands in a shell", "SHELL",
                "bash, zsh or fish");
    add_command("help", "Print help, of a command where one is named", "COMMAND",
                "One of the commands");
  }

  /// Not app_.help(): that is the help of the command which was typed.
  std::string program_help() const {
    return app_.get_formatter()->make_help(&app_, "", CLI::AppFormatMode::Normal);
  }

  /// Of `windtunnel help` and `windtunnel help COMMAND`.
  std::string help_of_arguments() const {
    if (line_.arguments.empty()) return program_help();
    if (line_.arguments.size() > 1)
      throw UsageError("help takes one COMMAND, these are " +
                       std::to_string(line_.arguments.size()));
    for (const CLI::App* command : app_.get_subcommands({}))
      if (command->get_name() == line_.arguments.front()) return command->help("windtunnel");
    refuse_command(line_.arguments.front());
  }

  static std::vector<CompletionOption> describe(const CLI::App& app) {
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

  /// What can stand for a value that the help calls `type`.
  static Completion completion_of(const std::string& type) {
    if (type == "/POINTER=VALUE") return Completion::settings;
    if (type == "/POINTER") return Completion::pointers;
    if (type == "PLATFORM") return Completion::platforms;
    return Completion::files;
  }

  /// Of "amp|varuna" both; nothing of a text without a bar.
  static std::vector<std::string> words_between_bars(const std::string& text) {
    if (text.find('|') == std::string::npos) return {};
    std::vector<std::string> words;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, '|');) words.push_back(word);
    return words;
  }

  /// What the first argument of a command can be, where that is one of a few words.
  std::vector<std::string> argument_choices(const std::string& command) const {
    if (command == "list") return words_between_bars(list_kinds);
    if (command == "schedule") return {"check", "draw"};
    if (command == "completion") return {"bash", "zsh", "fish"};
    if (command == "help") return command_names();
    std::vector<std::string> kinds;
    if (command == "import")
      for (const Importer& importer : importers()) kinds.emplace_back(importer.name);
    return kinds;
  }

  CompletionGrammar describe() const {
    CompletionGrammar grammar{describe(app_), {}, known_pointers()};
    for (const CLI::App* command : app_.get_subcommands({}))
      grammar.commands.push_back(
          {command->get_name(), command->get_description(), describe(*command),
           argument_choices(command->get_name()),
           takes_scenario(*command) ? Completion::scenarios : Completion::files});
    return grammar;
  }

  static bool takes_scenario(const CLI::App& command) {
    return command.get_option_no_throw("FILE") != nullptr;
  }

  std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const CLI::App* each : app_.get_subcommands({})) names.push_back(each->get_name());
    return names;
  }

  void add_rank(const char* file) {
    CLI::App* rank = add_command(
        "rank", "Search the parallel plans of a scenario and print the best", "FILE", file);
    rank->add_option("--top", line_.top, "How many plans to print (default 10)")
        ->type_name("K")
        ->check(between(1, most_plans));
    rank->add_option("--budget", line_.budget, "Simulations at most (default: until it is proven)")
        ->type_name("N")
        ->check(between(0, most_plans));
    rank->add_option("--jobs", line_.jobs, "Simulations at the same time (default: one a core)")
        ->type_name("N")
        ->check(between(1, most_jobs));
    rank->add_option("--why", line_.why,
                     "Say why a plan is where it is, as in tensor=8,pipeline=4,micro_batch=2")
        ->type_name("PLAN");
    rank->add_option("--method", line_.method,
                     "Show what another method would pick, and what that costs by simulation")
        ->type_name("amp|varuna|pipette|megatron")
        ->check(CLI::IsMember({"amp", "varuna", "pipette", "megatron"}).description(""));
    rank->add_option("--emit", line_.emit, "Print what launches the best plan")
        ->type_name("megatron|deepspeed")
        ->check(CLI::IsMember({"megatron", "deepspeed"}).description(""));
    rank->add_option("--host-map", line_.host_map, "With --emit: write which GPU plays which rank")
        ->type_name("OUT");
  }

  void add_compare() {
    CLI::App* compare = add_command(
        "compare", "Lay runs side by side: times, where they went, bytes, memory", "FILE",
        "Scenarios (as run takes them) or reports of run --json, two or more; one with --toggle. "
        "Timelines instead where one is a trace, of PyTorch's profiler or of run --trace");
    compare
        ->add_option("--toggle", line_.toggle,
                     "Run the one FILE without and with what stands at the pointer; "
                     "\"compression\" is short for /compression")
        ->type_name("/POINTER");
    compare->add_flag("--break-even", line_.break_even,
                      "Search the network bandwidth at which each run is as fast as the first");
    add_report(compare);
  }

  void add_report(CLI::App* command) {
    command->add_option("--report", line_.report, "Write an HTML page that opens from disk")
        ->type_name("OUT.html")
        ->check(output_name());
  }

  void add_schedule() {
    CLI::App* schedule = add_command(
        "schedule", "Say whether a pipeline schedule is legal, or draw it", "check|draw NAME|FILE",
        schedule_name_list() + "; or the path of a schedule file");
    const auto add = [schedule](const char* name, int& value, const std::string& about) {
      schedule->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 20));
    };
    add("--stages", line_.stages, "Pipeline stages of a named schedule");
    add("--microbatches", line_.microbatches, "Microbatches of a named schedule");
    add("--virtual", line_.chunks,
        "Model chunks a device of " + names_of_chunked_schedules() + " holds (default 1)");
    schedule->add_option("--svg", line_.svg, "Write the drawing as a picture")->type_name("OUT");
  }

  void add_sweep(const char* file) {
    CLI::App* sweep =
        add_command("sweep", "Simulate every point of a scenario's sweep", "FILE", file);
    const auto add = [sweep](const char* name, std::string& value, const char* about,
                             const char* type) {
      sweep->add_option(name, value, about)->type_name(type);
    };
    add("--out", line_.out, "Folder of the results; the same again goes on where it stopped",
        "DIR");
    sweep
        ->add_option("--jobs", line_.jobs,
                     "Points simulated at the same time (default: one a core)")
        ->type_name("N")
        ->check(between(1, 1 << 16));
    add("--shard", line_.shard,
        "Do part i of n only (default: as Slurm, Open MPI or PMI number this process)", "i/n");
    add("--time-limit", line_.time_limit,
        "Longest time for one point, such as \"90 s\": 1 us to 240 h", "TIME");
    add("--memory-limit", line_.memory_limit,
        "Most memory for one point, such as \"4 GB\": 64 MB to 1 PB", "SIZE");
    sweep->add_flag("--retry-failed", line_.retry_failed, "Do failed points again");
    sweep->add_flag("--dry-run", line_.dry_run, "List the points and stop");
    sweep->add_flag("--status", line_.status, "Merge and count what is done so far, and stop");
    sweep->add_flag("--worker", line_.worker)->group("");
    add_report(sweep);
  }

  void add_calibrate() {
    CLI::App* calibrate =
        add_command("calibrate", "Fit named constants to measurements, with held-out errors", "SET",
                    "Paths or names of measurement sets");
    calibrate
        ->add_option("--fit", line_.fit,
                     "Constants to fit: emax, memory_efficiency, nic_efficiency, "
                     "in_node_collective_slowdown (arf), compute_efficiency, layer_forward, "
                     "layer_backward, flash_forward, flash_backward, exposed_gather_factor, or a "
                     "JSON pointer to any number of a scenario; may be repeated")
        ->type_name("NAME[=LOW..HIGH][,NAME]")
        ->allow_extra_args(false);
    const auto add = [calibrate](const char* name, std::string& value, const char* about,
                                 const char* type) {
      calibrate->add_option(name, value, about)->type_name(type);
    };
    calibrate->add_flag("--memory", line_.memory,
                        "Train a correction of the memory account instead; -o takes its file");
    add("--device", line_.device, "Device to copy with the fitted numbers", "FILE");
    add("--software", line_.software, "Software profile to copy likewise", "FILE");
    add("--platform", line_.platform, "Platform to copy likewise", "FILE");
    add("-o,--output", line_.output, "Where the copy goes", "OUT");
    add("--residuals", line_.residuals,
        "Write held-out residuals, which prediction intervals are made of", "OUT");
  }

  void add_import() {
    CLI::App* command =
        add_command("import", "Make one of our files of a log or another tool's file", "KIND IN",
                    import_kinds().c_str());
    const auto add = [command](const char* name, std::string& value, const char* about,
                               const char* type) {
      command->add_option(name, value, about)->type_name(type);
    };
    add("-o,--output", line_.output, "Where the platform or model goes", "OUT");
    add("--base", line_.import.base,
        "Platform of the same GPU that says what the file cannot know: a name or a path",
        "PLATFORM");
    add("--clean", line_.import.clean,
        "phase: put medians in place of what mpiGraph's ring steps lowered", "WHAT");
    add("--table", line_.import.table, "Which table of mpiGraph: send (default) or recv", "TABLE");
    add("--unit", line_.import.unit, "Of mpiGraph's rates (default MiB/s)", "UNIT");
    const auto add_number = [command](const char* name, int& value, const char* about) {
      command->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 28));
    };
    add_number("--rails", line_.import.rails,
               "Processes a node, each with its own network card, that mpiGraph had");
    add_number("--sequence", line_.import.sequence, "Sequence length of a model, in tokens");
  }

  static const std::string& import_kinds() {
    static const std::string text = [] {
      std::string kinds = "KIND is one of:";
      for (const Importer& importer : importers())
        kinds += std::string("\n") + importer.name + ": " + importer.what;
      return kinds;
    }();
    return text;
  }

  void add_codec() {
    CLI::App* codec = add_command("codec", "Measure what codecs do to a real tensor", "FILE.npy",
                                  "A NumPy array of float16, float32 or float64");
    CodecRequest& request = line_.codec;
    codec->add_option("--synthetic", request.synthetic, "Instead of a file: gradient or activation")
        ->type_name("KIND");
    const auto side = [codec](const char* name, std::size_t& value, const char* about) {
      codec->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 16));
    };
    side("--rows", request.rows, "Of a synthetic tensor (default 1024)");
    side("--columns", request.columns, "Likewise");
    const auto list = [codec](const std::string& name, auto& values, const std::string& about,
                              const char* type) {
      return codec->add_option(name, values, about)->type_name(type)->allow_extra_args(false);
    };
    std::string names;
    for (const MeasuredCodec& each : measured_codecs())
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    list("--codec", request.codecs, names + " or all (default); may be repeated", "NAME");
    for (const MeasuredCodec& each : measured_codecs())
      if (const CodecKey* key = setting_of(each.name))
        list(std::string("--") + key->name, request.settings[key->name], each.option_text,
             each.option_type)
            ->check(key->type == CodecKey::Type::whole_number
                        ? between(static_cast<int>(key->least), static_cast<int>(key->most))
                        : between(key->least, key->most));
    codec
        ->add_option("--error-feedback", request.feedback_messages,
                     "Also add up N messages, without and with error feedback")
        ->type_name("N")
        ->check(between(1, 1 << 20));
    codec->add_option("-o,--output", line_.output, "Write the JSON document into a file")
        ->type_name("OUT");
  }

  [[noreturn]] void refuse_option(const std::string& option, CLI::App* command) const {
    std::vector<std::string> known;
    for (const CLI::App* app :
         {static_cast<const CLI::App*>(&app_), static_cast<const CLI::App*>(command)})
      if (app != nullptr)
        for (const CLI::Option* each : app->get_options())
          for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
    const std::string nearest = closest_match(option.substr(0, option.find('=')), known);
    throw UsageError("unknown option " + in_quotes(option) +
                     (nearest.empty() ? "" : " (did you mean " + in_quotes(nearest) + "?)"));
  }

  void refuse_unknown_words(CLI::App* command) const {
    const std::vector<std::string> words = app_.remaining(true);
    const auto is_option = [](const std::string& word) {
      return word.size() > 1 && word[0] == '-';
    };
    const auto word = std::find_if_not(words.begin(), words.end(), is_option);
    if (command == nullptr && word != words.end()) refuse_command(*word);
    const auto option = std::find_if(words.begin(), words.end(), is_option);
    if (option != words.end()) refuse_option(*option, command);
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
    line_.by_layer = detail_ == "layer";
    line_.colour = colour_ == "always"  ? ColourChoice::always
                   : colour_ == "never" ? ColourChoice::never
                                        : ColourChoice::automatic;
    const auto [end, error] =
        std::from_chars(seed_.data(), seed_.data() + seed_.size(), line_.seed);
    if (error != std::errc{} || end != seed_.data() + seed_.size())
      throw UsageError("--seed is " + in_quotes(seed_) +
                       ", which is not a whole number from 0 to 2^64 - 1");
    for (const std::string& set : sets_) {
      const std::size_t equals = set.find('=');
      if (equals == std::string::npos)
        throw UsageError("--set is " + in_quotes(set) +
                         ", which has no \"=\" (write --set /parallel/tensor=8)");
      line_.overrides.emplace_back(set.substr(0, equals), set.substr(equals + 1));
    }
    expect_independent(line_.overrides);
    if (line_.command == "calibrate")
      check_calibrate();
    else if (line_.command == "schedule")
      check_schedule();
    else if (line_.command == "import")
      check_import();
    else if (line_.command == "compare")
      check_compare();
    else if (line_.command == "codec")
      check_codec();
    else if (line_.command != "validate")
      check_one_argument();
    if (!line_.host_map.empty() && line_.emit.empty())
      throw UsageError("--host-map belongs to --emit");
    if (!line_.emit.empty() && !line_.why.empty())
      throw UsageError("--why explains a plan and --emit prints the best one: use one of them");
    if (line_.command == "show" && resolved_ == line_.pointers)
      throw UsageError(resolved_ ? "show prints one thing: --resolved or --pointers"
                                 : "show needs to be told what (write show --resolved FILE)");
    if (line_.command == "sweep") check_sweep();
    if (line_.trace_all && line_.trace.empty() && line_.out.empty())
      throw UsageError("--trace-all belongs to --trace or --out");
    if (!line_.report.empty() && !line_.report.ends_with(".html") &&
        !line_.report.ends_with(".htm"))
      throw UsageError("--report is " + in_quotes(line_.report) + ", which does not end in .html");
    if (!line_.trace.empty() && !line_.trace.ends_with(".json") &&
        !line_.trace.ends_with(".json.gz"))
      throw UsageError("--trace is " + in_quotes(line_.trace) +
                       ", which ends in neither .json nor .json.gz");
  }

  void check_sweep() const {
    if (line_.worker && line_.arguments.front() == "-")
      throw UsageError(
          "windtunnel-mpi starts many processes, of which one could read standard input: name a "
          "file");
    if (line_.out.empty() && !line_.dry_run)
      throw UsageError("sweep needs --out DIR, the folder of its results (or --dry-run)");
    if (line_.dry_run + line_.status + line_.worker > 1)
      throw UsageError("sweep takes one of --dry-run and --status");
    if (!line_.report.empty() && line_.dry_run)
      throw UsageError("--report shows results, and sweep --dry-run has none");
  }

  void check_calibrate() const {
    if (line_.arguments.empty())
      throw UsageError("calibrate needs a SET (a path, or a name as validate takes it)");
    if (line_.memory) {
      if (!line_.fit.empty() || !line_.residuals.empty() || !line_.device.empty() ||
          !line_.software.empty() || !line_.platform.empty())
        throw UsageError("--memory fits no constants: it goes with -o alone");
      return;
    }
    const int files = !line_.device.empty() + !line_.software.empty() + !line_.platform.empty();
    if (files > 1)
      throw UsageError("calibrate writes one file: --device, --software or --platform");
    if ((files == 1) != !line_.output.empty())
      throw UsageError(files == 1
                           ? "-o OUT is missing: where the fitted copy goes"
                           : "-o needs --device, --software or --platform: the file to copy");
  }

  void check_import() const {
    std::string kinds;
    for (const Importer& importer : importers())
      kinds += (kinds.empty() ? "" : ", ") + std::string(importer.name);
    if (line_.arguments.empty())
      throw UsageError("import needs to be told what: " + kinds +
                       " (windtunnel import KIND IN -o OUT)");
    if (line_.arguments.size() == 1)
      throw UsageError("import " + line_.arguments[0] +
                       " needs a file to import (windtunnel import KIND IN -o OUT)");
  }

  void check_codec() const {
    const CodecRequest& request = line_.codec;
    if (line_.arguments.size() + (request.synthetic.empty() ? 0 : 1) != 1)
      throw UsageError("codec takes one FILE.npy, or --synthetic gradient or activation");
    if (request.synthetic.empty() && request.rows + request.columns > 0)
      throw UsageError("--rows and --columns belong to --synthetic: a file has its own shape");
    if (!line_.overrides.empty()) throw UsageError("codec reads no scenario: it takes no --set");
  }

  void check_compare() const {
    const std::size_t files = line_.arguments.size();
    if (!line_.toggle.empty() && files != 1)
      throw UsageError("compare --toggle takes one FILE, these are " + std::to_string(files));
    if (line_.toggle.empty() && files < 2)
      throw UsageError(files == 0 ? "compare needs two or more FILEs, or one with --toggle"
                                  : "compare needs a second FILE beside " +
                                        in_quotes(line_.arguments[0]) + ", or --toggle /POINTER");
  }

  void check_schedule() const {
    const std::string usage =
        "windtunnel schedule check 1f1b --stages 4 --microbatches 8, or schedule check FILE";
    if (line_.arguments.empty() || (line_.arguments[0] != "check" && line_.arguments[0] != "draw"))
      throw UsageError("schedule needs to be told what: check or draw (" + usage + ")");
    if (line_.arguments.size() != 2)
      throw UsageError("schedule " + line_.arguments[0] + " takes one NAME or FILE (" + usage +
                       ")");
    if (!line_.svg.empty() && line_.arguments[0] != "draw")
      throw UsageError("--svg belongs to schedule draw");
  }

  void check_one_argument() const {
    const std::string what = line_.command == "list"         ? "KIND"
                             : line_.command == "completion" ? "SHELL"
                                                             : "FILE";
    if (line_.arguments.size() == 1) return;
    if (line_.arguments.empty())
      throw UsageError(
          line_.command + " needs a " + what + " (" +
          (what == "FILE"
               ? "a path, a name that `windtunnel list scenarios` prints, or - for standard input"
           : what == "KIND" ? "models, platforms, devices, software, scenarios or codecs"
                            : "bash, zsh or fish") +
          ")");
    throw UsageError(line_.command + " takes one " + what + ", these are " +
                     std::to_string(line_.arguments.size()) + ": " + in_quotes(line_.arguments[0]) +
                     ", " + in_quotes(line_.arguments[1]) +
                     (line_.arguments.size() > 2 ? ", ..." : ""));
  }

  CLI::App app_{"Predicts how long LLM training takes on a cluster, and says why.", "windtunnel"};
  CommandLine line_;
  std::vector<std::string> sets_;
  std::string seed_ = "0", colour_ = "auto", detail_ = "pass";
  bool json_ = false, quiet_ = false, version_ = false, help_ = false, resolved_ = false;
};

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  return Grammar().parse(argc, argv);
}

}  // namespace windtunnel
