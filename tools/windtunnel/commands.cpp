#include "windtunnel/commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "codec/measured_codec.hpp"
#include "core/number_in.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "plan/schedule.hpp"
#include "probe_script.hpp"
#include "questions/collective.hpp"
#include "scenario/key_table.hpp"
#include "simulate/tasks.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

constexpr int most_explained_steps = 100'000;
constexpr int most_gpus = 131'072;
constexpr int most_plans = 1'000'000, most_jobs = 1024, most_seconds = 1'000'000;

/// A number in these bounds, which the help does not repeat: their problem is told with them.
template <class Number>
CLI::Validator between(Number least, Number most) {
  return {[least, most](const std::string& text) {
            const std::optional<Number> number = number_in<Number>(text);
            if (number && *number >= least && *number <= most) return std::string();
            return in_quotes(text) + " is no " + (std::is_integral_v<Number> ? "whole " : "") +
                   "number from " + CLI::detail::to_string(least) + " to " +
                   CLI::detail::to_string(most);
          },
          ""};
}

/// Refuses "", as from a variable of a shell that is not set: it would be as if the option were not there.
CLI::Validator not_empty(const char* what) {
  return {[what](const std::string& text) {
            return text.empty() ? std::string("the ") + what + " is empty" : std::string();
          },
          ""};
}

/// Adds the options of one command. `type` stands for the value in the help.
class Options {
 public:
  Options(CLI::App* command) : command_(command) {}

  template <class Value>
  CLI::Option* value(const std::string& name, Value& value, const char* type,
                     const std::string& about) {
    CLI::Option* const option = command_->add_option(name, value, about)->type_name(type);
    if constexpr (std::is_same_v<Value, std::string>) option->check(not_empty("value"));
    return option;
  }
  CLI::Option* flag(const char* name, bool& value, const char* about) {
    return command_->add_flag(name, value, about);
  }
  void output(const char* name, std::string& file, const char* type, const char* about) {
    command_->add_option(name, file, about)->type_name(type)->check(not_empty("name"));
  }
  void report(CommandLine& line) {
    output("--report", line.report, "OUT.html", "Write an HTML page that opens from disk");
  }
  template <class Number>
  void number(const char* name, Number& number, int least, int most, const std::string& about,
              const char* type = "N") {
    value(name, number, type, about)->check(between(least, most));
  }
  /// One of the words between the bars of `words`.
  void word(const char* name, std::string& chosen, const char* words, const char* about) {
    value(name, chosen, words, about)->check(one_of(words_between_bars(words)));
  }
  template <class Values>
  CLI::Option* list(const std::string& name, Values& values, const char* type,
                    const std::string& about) {
    return value(name, values, type, about)->allow_extra_args(false);
  }
  void jobs_of_steps(CommandLine& line) {
    number("--jobs", line.jobs, 1, most_jobs,
           "With --steps: number of threads, which changes no result (default: one per core)");
  }

 private:
  CLI::App* command_;
};

void add_run_options(Options options, CommandLine& line) {
  options.output("--trace", line.trace, "OUT", "Write a Chrome trace (.json or .json.gz)");
  options.flag("--trace-all", line.trace_all,
               "Write every device to the trace, even if viewers cannot load it");
  options.output("--rank-traces", line.rank_traces, "DIR",
                 "Write a trace of each simulated device, named by its first rank");
  options.report(line);
  options.flag("--memory", line.lists_memory,
               "Print the tensors that make up each stage's memory, the largest first");
  options.word(
      "--detail", line.detail, "pass|layer",
      "layer: simulate each kernel and collective of every layer as an event, and show them in "
      "a trace; times are those of pass, unless messages contend");
  options.word("--engine", line.engine, "simgrid|native|heap",
               "What simulates the iteration (default simgrid): native shares links by the same "
               "rule, faster where messages contend; heap gives each message its links to itself");
  constexpr int most_steps = 1'000'000;
  options.number("--steps", line.steps, 1, most_steps,
                 "Simulate N iterations, each with its own random draws of the scenario's noise "
                 "(engine native), and show how their times vary; --trace writes the first");
  options.jobs_of_steps(line);
  options.output("--csv", line.csv, "OUT.csv", "With --steps: write one row per step");
  options.output("--out", line.out, "DIR",
                 "Write report.json, report.html and trace.json.gz to a folder");
}

void add_new_options(Options options, CommandLine& line) {
  options.value("--model", line.model, "MODEL",
                "A name that windtunnel list models prints, or a path");
  options.value("--platform", line.platform, "PLATFORM",
                "A name that windtunnel list platforms prints, or a path");
  options.list("--gpus", line.gpus, "N", "How many GPUs train it")->check(between(1, most_gpus));
  constexpr int most = 1 << 28;
  options.number(
      "--global-batch", line.global_batch, 1, most,
      "Samples per iteration (default: about 4 M tokens, and one for each GPU at least)");
  options.number("--sequence", line.sequence, 1, most,
                 "Tokens of a sample (default: as the model's file has it)");
  options.number("--lora-rank", line.lora_rank, 1, most_adapter_rank,
                 "Train low-rank adapters of this rank alone (LoRA)");
  options.value("-o,--output", line.output, "OUT",
                "The file to write, which must not exist (default: standard output)");
}

void add_schedule_options(Options options, CommandLine& line) {
  constexpr int most = 1 << 20;
  options.number("--stages", line.stages, 1, most, "Pipeline stages of a named schedule");
  options.number("--microbatches", line.microbatches, 1, most, "Microbatches of a named schedule");
  options.number("--virtual", line.chunks, 1, most,
                 "Model chunks per device, for " + names_of_chunked_schedules() +
                     " (default: as few as possible)");
  options.value("--svg", line.svg, "OUT", "Write the drawing as a picture");
}

void add_device_options(Options options, CommandLine& line) {
  options.flag("--from-datasheet", line.from_datasheet,
               "Complete the file: what a data sheet does not give is scaled from the "
               "nearest measured GPU");
  options.flag("--kernels", line.kernels,
               "Score predictions of kernels that were measured alone on this GPU");
  options.output("--svg", line.svg, "OUT", "With --kernels: plot predicted against measured times");
  options.value("-o,--output", line.output, "OUT", "Write the completed file");
}

void add_explain_options(Options options, CommandLine& line) {
  options.number("--steps", line.steps, 1, most_explained_steps,
                 "Simulate N iterations with the scenario's noise: how often each resource was "
                 "critical, and what each kind of noise costs");
  options.jobs_of_steps(line);
  options.report(line);
  options.number("--budget", line.budget, 0, most_seconds,
                 "Start no what-if after this time (default: simulate all)", "SECONDS");
}

void add_rank_options(Options options, CommandLine& line) {
  options.number("--top", line.rank.top, 1, most_plans, "How many plans to print (default 10)",
                 "K");
  options.number("--budget", line.budget, 0, most_plans,
                 "Most simulations (default: until the table is proven)");
  options.number("--jobs", line.jobs, 1, most_jobs,
                 "Simulations at the same time (default: one per core)");
  options.value("--why", line.rank.why, "PLAN",
                "Explain the place of one plan, such as tensor=8,pipeline=4,micro_batch=2");
  options
      .list("--avoid", line.rank.avoid, "NAMES",
            "Leave nodes out, and all nodes below a switch: node3,leaf1 (repeatable)")
      ->delimiter(',');
  options.word("--method", line.rank.method, "amp|varuna|pipette|megatron",
               "Show which plan another method would pick, and simulate it");
  options.word("--emit", line.emit, "megatron|deepspeed|torchtitan",
               "Print the launch arguments or configuration of the best plan, or of --plan N");
  options.number("--plan", line.rank.plan, 1, most_plans,
                 "With --emit: the plan of this number in the table (default 1)");
  options.value("--host-map", line.rank.host_map, "OUT",
                "With --emit: write which GPU runs which rank");
  options.report(line);
}

void add_compare_options(Options options, CommandLine& line) {
  options.value("--toggle", line.toggle, "/POINTER",
                "Run the one FILE without and with the value at the pointer; "
                "\"compression\" is short for /compression");
  options.flag("--break-even", line.break_even,
               "Find the network bandwidth at which each run is as fast as the first");
  options.report(line);
}

void add_job_options(Options options, CommandLine& line) {
  constexpr int most_draws = 1'000'000;
  options.number("--draws", line.draws, 1, most_draws,
                 "How many times to simulate the run (default 1000)");
  options.number("--jobs", line.jobs, 1, most_jobs,
                 "Number of threads, which changes no result (default: one per core)");
  options.report(line);
  options.output("--csv", line.csv, "OUT.csv", "Write one row per simulated run");
}

void add_sweep_options(Options options, CommandLine& line) {
  options.value("--out", line.out, "DIR",
                "Folder of the results (results.csv and results.jsonl); the same command continues "
                "an interrupted sweep");
  options.number("--jobs", line.jobs, 1, 1 << 16,
                 "Points simulated at the same time (default: one per core)");
  options.value(
      "--shard", line.sweep.shard, "i/n",
      "Simulate only part i of n (default: as Slurm, Open MPI or PMI number this process)");
  options.value("--time-limit", line.sweep.time_limit, "TIME",
                "Longest time for one point, such as \"90 s\": 1 us to 240 h");
  options.value("--memory-limit", line.sweep.memory_limit, "SIZE",
                "Most memory for one point, such as \"4 GB\": 64 MB to 1 PB");
  options.value("--baseline", line.baseline, "POINT",
                "Show speed-ups over this point: its label, its number, or its values as "
                "'{\"/nodes\": 8}'");
  options.flag("--retry-failed", line.sweep.retry_failed, "Simulate failed points again");
  options.flag("--dry-run", line.dry_run, "List the points and stop");
  options.flag("--status", line.status, "Merge and count the results so far, and stop");
  options.flag("--worker", line.worker, "")->group("");
  options.report(line);
}

void add_validate_options(Options options, CommandLine& line) {
  options.flag("--details", line.details,
               "Print every point, and the scores of memory, timers and the order of plans");
  options.list("--fail-above", line.fail_above, "METRIC=LIMIT",
               "Exit with 1 if a metric of a set is above the limit; may be repeated");
  options.value("--svg", line.svg, "OUT", "Write a scatter plot of predicted and measured times");
  options.value("--residuals", line.residuals, "FILE",
                "Write the errors of pairs, from which the order of two plans is judged, into this "
                "file of residuals");
  options.report(line);
}

void add_calibrate_options(Options options, CommandLine& line) {
  constexpr int most = 1 << 20;
  options.list(
      "--fit", line.calibrate.fit, "NAME[=LOW..HIGH][,NAME]",
      "Constants to fit: emax, memory_efficiency, nic_efficiency, "
      "in_node_collective_slowdown (arf), compute_efficiency (with --platform the nodes', else "
      "the stack's), tensor_collective_overhead, "
      "kernel_launch, flash_forward, flash_backward, or a "
      "JSON pointer to any number of a scenario; may be repeated");
  options.value("--advise", line.calibrate.advise_name, "FILE",
                "Fit nothing: name the runs to measure next that make the prediction of this "
                "scenario most certain");
  options.value("--against", line.calibrate.against_name, "FILE",
                "With --advise: name the runs that make it most certain which of the two "
                "scenarios, of one stack and platform, is the faster one");
  options.value(
      "--predict", line.calibrate.predict_name, "FILE",
      "Predict this scenario with the fitted constants, anchored by measured rows near it");
  options.word("--prior", line.prior, "shipped|none",
               "What a fit starts from: shipped (default; what the rows do not identify keeps "
               "its value) or none (the rows alone decide; default with --residuals)");
  options.number("--draws", line.fit_draws, 1, most,
                 "Write nothing: fit N times to randomly drawn rows, and show how the error of the "
                 "other rows changes");
  options.number("--rows", line.fit_rows, 1, most, "Rows per draw (default 3)");
  options.flag("--memory", line.memory,
               "Train a correction of the memory account instead, and write it to -o");
  options.value("--device", line.device, "FILE", "Device to copy with the fitted numbers");
  options.value("--software", line.software, "FILE",
                "Software profile to copy with the fitted numbers");
  options.value("--platform", line.platform, "FILE", "Platform to copy with the fitted numbers");
  options.value("-o,--output", line.output, "OUT", "Where to write the copy");
  options.value("--residuals", line.residuals, "OUT",
                "Write held-out residuals, from which prediction intervals are made");
}

void add_import_options(Options options, CommandLine& line) {
  ImportOptions& import = line.import;
  constexpr int most = 1 << 28;
  options.value("-o,--output", line.output, "OUT",
                "Where to write the platform, model, scenario or measurement set; an existing file "
                "is replaced");
  options.value(
      "--base", import.base, "PLATFORM",
      "Platform with the same GPU, or that a launch script is for, or the scenario of traced "
      "steps: a name or a path");
  options.value("--clean", import.clean, "WHAT",
                "phase: replace rates of disturbed steps of mpiGraph by medians");
  options.value("--table", import.table, "TABLE",
                "Table of mpiGraph to read: send (default of a log) or recv");
  options.value("--unit", import.unit, "UNIT", "Unit of mpiGraph's rates (default MiB/s)");
  options.number("--rails", import.rails, 1, most,
                 "Processes per node in mpiGraph's run, each with its own network card");
  options.number("--sequence", import.sequence, 1, most,
                 "Sequence length in tokens, for hf-config and deepspeed");
  options.value("--model", import.model, "MODEL",
                "Model of a launch script that does not say its sizes: a name or a path");
  options.value("--args", import.arguments, "ARGUMENTS",
                "Variables and arguments that a launch script is called with: \"NNODES=4 7B\"");
  options.number("--gpus", import.gpus, 1, most,
                 "GPUs of a launch script that does not say how many");
  options.output("--report", line.report, "OUT.html",
                 "Write what kineto or straggler-trace found as an HTML page that opens from disk");
}

void add_collective_options(Options options, CommandLine& line) {
  options.value("--platform", line.platform, "PLATFORM",
                "Required: a path, or a name that `windtunnel list platforms` prints");
  options
      .value("--gpus", line.gpus, "N",
             "Numbers of GPUs: within a node, or whole nodes (default: one node or "
             "NVLink domain)")
      ->delimiter(',')
      ->check(between(2, most_gpus));
  options
      .value("--bytes", line.bytes, "SIZE",
             "The reduced or gathered tensor; of an all-to-all what a GPU sends (default: 1MiB to "
             "4GiB)")
      ->delimiter(',');
  options.word("--algorithm", line.algorithm, "flat|hierarchical|ring|tree|nvls_tree",
               "One algorithm instead of the library's choice (flat), as with NCCL_ALGO");
  options.report(line);
}

void add_codec_options(Options options, CommandLine& line) {
  CodecRequest& request = line.codec;
  options.value("--synthetic", request.synthetic, "KIND",
                "Instead of a file: gradient or activation");
  options.number("--rows", request.rows, 1, 1 << 16, "Rows of a synthetic tensor (default 1024)");
  options.number("--columns", request.columns, 1, 1 << 16,
                 "Columns of a synthetic tensor (default 1024)");
  const std::string names = listed(measured_codecs(), std::mem_fn(&MeasuredCodec::name));
  options.list("--codec", request.codecs, "NAME", names + " or all (default); may be repeated");
  for (const MeasuredCodec& each : measured_codecs())
    if (const CodecKey* key = setting_of(each.name))
      options
          .list(std::string("--") + key->name, request.settings[key->name], each.option_type,
                each.option_text)
          ->check(key->type == CodecKey::Type::whole_number
                      ? between(static_cast<int>(key->least), static_cast<int>(key->most))
                      : between(key->least, key->most));
  options.number("--error-feedback", request.feedback_messages, 1, 1 << 20,
                 "Also compare the sums of N messages without and with error feedback");
  options.value("-o,--output", line.output, "OUT", "Write the JSON document into a file");
  options.report(line);
}

void add_show_options(Options options, CommandLine& line) {
  options.flag("--resolved", line.resolved, "Merged, with names and defaults filled in (default)");
  options.flag("--pointers", line.pointers,
               "One line for each value that --set can change, as --set takes it");
  options.flag("--network", line.network,
               "The fabric between the nodes, and what it carries from half of them to the rest");
  options.flag("--simgrid", line.simgrid, "The machine as a platform file for SimGrid");
}

void check_show(const CommandLine& line) {
  check_one_argument(line);
  const int shown = line.resolved + line.pointers + line.network + line.simgrid;
  refuse_if(shown > 1, "show prints one thing: --resolved, --pointers, --network or --simgrid");
}

void check_sweep(const CommandLine& line) {
  check_one_argument(line);
  refuse_if(line.worker && line.arguments.front() == "-",
            "windtunnel-mpi starts many processes, of which one could read standard input: name a "
            "file");
  refuse_if(line.out.empty() && !line.dry_run,
            "sweep needs --out DIR, the folder of its results (or --dry-run)");
  refuse_if(line.dry_run + line.status + line.worker > 1,
            "sweep takes one of --dry-run and --status");
  refuse_if(!line.report.empty() && line.dry_run,
            "--report shows results, and sweep --dry-run has none");
}

void check_validate(const CommandLine& line) {
  refuse_if(!line.residuals.empty() && (!line.arguments.empty() || !line.overrides.empty()),
            "--residuals takes the errors of all sets as shipped: it goes without SETs and --set");
}

void check_calibrate(const CommandLine& line) {
  if (!line.calibrate.advise_name.empty()) {
    refuse_if(line.memory || !line.residuals.empty() || !line.output.empty() ||
                  !line.calibrate.predict_name.empty() || !line.prior.empty() || line.fit_draws > 0,
              "--advise writes no file: it goes with SETs and --fit alone");
    return;
  }
  refuse_if(!line.calibrate.against_name.empty(),
            "--against names the plan that the one of --advise is decided against");
  refuse_if(
      line.fit_draws > 0 && (line.memory || line.calibrate.fit.empty() || !line.residuals.empty() ||
                             !line.output.empty() || !line.calibrate.predict_name.empty()),
      "--draws tries fits and keeps none: it goes with SETs and --fit alone");
  refuse_if(line.fit_rows > 0 && line.fit_draws == 0,
            "--rows says how many rows a draw has: it goes with --draws");
  refuse_if(line.arguments.empty(),
            "calibrate needs a SET (a path, or a name as validate takes it)");
  if (line.memory) {
    refuse_if(!line.calibrate.fit.empty() || !line.residuals.empty() || !line.device.empty() ||
                  !line.software.empty() || !line.platform.empty() ||
                  !line.calibrate.predict_name.empty() || !line.prior.empty(),
              "--memory fits no constants: it goes with -o alone");
    return;
  }
  const int files = !line.device.empty() + !line.software.empty() + !line.platform.empty();
  refuse_if(files > 1, "calibrate writes one file: --device, --software or --platform");
  if ((files == 1) != !line.output.empty())
    throw UsageError(files == 1 ? "-o OUT is missing: where the fitted copy goes"
                                : "-o needs --device, --software or --platform: the file to copy");
}

void check_import(const CommandLine& line) {
  const std::string kinds = listed(importers(), std::mem_fn(&Importer::name));
  if (line.arguments.empty())
    throw UsageError("import needs to be told what: " + kinds +
                     " (windtunnel import KIND IN -o OUT)");
  if (line.arguments.size() == 1)
    throw UsageError("import " + line.arguments[0] +
                     " needs a file to import (windtunnel import KIND IN -o OUT)");
}

void check_probe(const CommandLine& line) {
  refuse_if(!line.script,
            "probe measures nothing itself, it prints the script that does (write windtunnel probe "
            "--script >probe.py, and run it where the GPUs are)");
}

void check_codec(const CommandLine& line) {
  const CodecRequest& request = line.codec;
  refuse_if(line.arguments.size() + (request.synthetic.empty() ? 0 : 1) != 1,
            "codec takes one FILE.npy, or --synthetic gradient or activation");
  refuse_if(request.synthetic.empty() && request.rows + request.columns > 0,
            "--rows and --columns belong to --synthetic: a file has its own shape");
}

void check_collective(const CommandLine& line) {
  const auto known = enumerators<CollectiveOperation>();
  const std::string kinds = listed(known, dashed_name<CollectiveOperation>);
  if (line.arguments.size() != 1) throw UsageError("collective takes one KIND: " + kinds);
  if (std::ranges::none_of(
          known, [&](CollectiveOperation each) { return line.arguments[0] == dashed_name(each); }))
    throw UsageError("there is no collective " + in_quotes(line.arguments[0]) + " (write " + kinds +
                     ")");
  refuse_if(line.platform.empty(),
            "collective needs --platform, a name that `windtunnel list platforms` prints");
  refuse_if(
      line.arguments[0] == dashed_name(CollectiveOperation::all_to_all) && !line.algorithm.empty(),
      "an all-to-all goes pair by pair: it takes no --algorithm");
}

void check_compare(const CommandLine& line) {
  const std::size_t files = line.arguments.size();
  if (!line.toggle.empty() && files != 1)
    throw UsageError("compare --toggle takes one FILE, these are " + std::to_string(files));
  if (line.toggle.empty() && files < 2)
    throw UsageError(files == 0 ? "compare needs two or more FILEs, or one with --toggle"
                                : "compare needs a second FILE beside " +
                                      in_quotes(line.arguments[0]) + ", or --toggle /POINTER");
}

void check_schedule(const CommandLine& line) {
  const std::string usage =
      "windtunnel schedule check 1f1b --stages 4 --microbatches 8, or schedule check FILE";
  if (line.arguments.empty() || (line.arguments[0] != "check" && line.arguments[0] != "draw"))
    throw UsageError("schedule needs to be told what: check or draw (" + usage + ")");
  if (line.arguments.size() != 2)
    throw UsageError("schedule " + line.arguments[0] + " takes one NAME or FILE (" + usage + ")");
  refuse_if(!line.svg.empty() && line.arguments[0] != "draw", "--svg belongs to schedule draw");
}

/// The options that launch the best plan.
void check_emit(const CommandLine& line) {
  refuse_if(!line.rank.host_map.empty() && line.emit.empty(), "--host-map belongs to --emit");
  refuse_if(line.rank.plan > 1 && line.emit.empty(), "--plan belongs to --emit");
  refuse_if(!line.rank.avoid.empty() && !(line.rank.why.empty() && line.rank.method.empty()),
            "--avoid belongs to rank without --why and --method, which do not compare");
  refuse_if(!line.emit.empty() && !line.rank.why.empty(),
            "--why explains a plan and --emit writes one: use one of them");
}

void check_steps(const CommandLine& line) {
  if (line.steps == 0) {
    refuse_if(!line.csv.empty(), "--csv belongs to --steps");
    refuse_if(line.jobs > 0, "--jobs belongs to --steps");
    return;
  }
  refuse_if(!line.engine.empty(),
            "--engine belongs to run without --steps: the native engine simulates many");
  if (line.command == "explain") {
    refuse_if(!line.report.empty() || line.budget,
              "--report and --budget belong to explain without --steps");
    return;
  }
  refuse_if(!line.out.empty() || line.lists_memory,
            "--out and --memory show one iteration: leave out --steps, or write the steps with "
            "--csv or --report, and the first of them with --trace or --rank-traces");
}

constexpr const char* does_not_fit = "done; the plan does not fit in the memory of its GPUs";

ExitCode help_command(const CommandLine& line) {
  print_result(line, line.help);
  return exit_done;
}

/// The program measures nothing itself: GPUs are measured from PyTorch, where they are.
ExitCode probe_command(const CommandLine&) {
  print_result(probe_script);
  return exit_done;
}

ExitCode completion_command(const CommandLine& line) {
  print_result(completion_text(line.grammar, line.arguments.front()));
  return exit_done;
}

void add_probe_options(Options options, CommandLine& line) {
  options.flag("--script", line.script,
               "Print the script; it needs Python and PyTorch, and takes less than five minutes");
}

void any_arguments(const CommandLine&) {}

std::vector<Command> make_commands() {
  std::vector<std::string> import_kinds;
  std::string about_imports = "KIND is one of:";
  for (const Importer& importer : importers()) {
    import_kinds.emplace_back(importer.name);
    about_imports += std::string("\n") + importer.name + ": " + importer.what;
  }
  return {
      {.name = "run",
       .summary = "Simulate one training iteration of a scenario",
       .carry_out = run_command,
       .add_options = add_run_options,
       .negative = does_not_fit,
       .examples = {{"windtunnel run gpt-39b-512xa100 --set /training/micro_batch=2",
                     "change a value"},
                    {"windtunnel run mine.json --out results",
                     "also write the page, the report and the trace"},
                    {"windtunnel show --resolved mine.json | windtunnel run - --json",
                     "a scenario from standard input, the report as JSON"},
                    {"windtunnel run gpt3-175b-512xa100 --set /noise=mlperf-small --steps 200",
                     "200 iterations with noise: percentiles, and how many are slow"}}},
      {.name = "new",
       .summary = "Write a first scenario: a model, a platform, and a plan that fits",
       .argument = "",
       .about = {},
       .usage = "--model MODEL --platform PLATFORM --gpus N",
       .carry_out = new_command,
       .add_options = add_new_options,
       .check = any_arguments,
       .examples = {{"windtunnel new --model llama3-70b --platform dgx-h100 --gpus 512 -o my.json",
                     "a commented file; on a terminal it asks for what is left out"},
                    {"windtunnel new --model llama3-70b --platform dgx-h100 --gpus 512 "
                     "--global-batch 1024 --sequence 4096",
                     "with a batch of your own"},
                    {"windtunnel new --model llama3-70b --platform dgx-h100 --gpus 8 "
                     "--lora-rank 16",
                     "fine-tuning with LoRA"},
                    {"windtunnel new --model llama3-8b --platform dgx-h100 --gpus 8 "
                     "--set /software=torchtitan-2025 --set /training/recompute=full",
                     "with a stack and a setting of your own"},
                    {"windtunnel new --model llama3-8b --platform dgx-h100 --gpus 16 "
                     "--set '/platform/node_types/0/nic_rate=100 Gbps'",
                     "with another network than the platform's"},
                    {"windtunnel new --model llama3-8b --platform dgx-h100 --gpus 8 | "
                     "windtunnel run -",
                     "simulated at once"}}},
      {.name = "check",
       .summary = "Check a scenario without simulating it",
       .carry_out = check_command,
       .examples = {{"windtunnel check mine.json", "every problem at once, each with its line"},
                    {"windtunnel check mine.json --set /parallel/tensor=4 --set /parallel/data=16",
                     "whether a changed plan is still legal"}}},
      {.name = "show",
       .summary = "Print the whole scenario with the origin of each value, or its network",
       .usage = "FILE [--resolved|--pointers|--network|--simgrid]",
       .carry_out = show_command,
       .add_options = add_show_options,
       .check = check_show,
       .examples = {{"windtunnel show mine.json", "every value, with its origin"},
                    {"windtunnel show --pointers mine.json",
                     "what --set can change, with the current values"},
                    {"windtunnel show --network mine.json",
                     "the fabric, its bisection bandwidth and oversubscription"},
                    {"windtunnel show --simgrid mine.json >cluster.xml",
                     "the machine for a simulation with SimGrid"}}},
      {.name = "list",
       .summary = "Print what is built in",
       .argument = "KIND",
       .about = "models, platforms, devices, software, noise, scenarios, codecs, fabrics, or keys "
                "(of training, "
                "parallel and search; the others are in docs/scenario-reference.md)",
       .choices = {"models", "platforms", "devices", "software", "noise", "scenarios", "codecs",
                   "fabrics", "keys"},
       .carry_out = list_command,
       .takes_set = false,
       .examples = {{"windtunnel list models", "names with parameter counts"},
                    {"windtunnel list platforms --json", "the same for a program"}}},
      {.name = "rank",
       .summary = "Search the parallel plans of a scenario and print the best",
       .carry_out = rank_command,
       .add_options = add_rank_options,
       .negative =
           "done; no plan can be recommended, or the plan of --why is not legal or does not fit",
       .examples = {{"windtunnel rank rank-gpt-39b-512xa100 --top 3",
                     "the three fastest plans that fit"},
                    {"windtunnel rank rank-gpt-39b-512xa100 --why tensor=8,pipeline=8",
                     "why not this one"},
                    {"windtunnel rank rank-gpt-39b-512xa100 --report plans.html",
                     "a page with time against memory"},
                    {"windtunnel rank mine.json --emit megatron --host-map mine.hosts",
                     "launch arguments of the best plan"}}},
      {.name = "compare",
       .summary = "Compare runs: times, where they go, bytes, memory",
       .about = "Scenarios (as run takes them) or reports of run --json, two or more; one with "
                "--toggle. Timelines instead where one is a trace, of PyTorch's profiler or of run "
                "--trace",
       .usage = "FILE FILE ...|FILE --toggle /POINTER",
       .carry_out = compare_command,
       .add_options = add_compare_options,
       .check = check_compare,
       .negative = "done; one of the runs does not fit in memory",
       .examples = {{"windtunnel compare gpt-8.3b-128xa100 gpt-8.3b-64xv100", "two clusters"},
                    {"windtunnel compare optimus-cc-8.3b-cb --toggle compression --break-even",
                     "whether a compression pays, and on which network"}}},
      {.name = "schedule",
       .summary = "Say whether a pipeline schedule is legal, or draw it",
       .argument = "check|draw NAME|FILE",
       .about = schedule_name_list() + "; or the path of a schedule file",
       .choices = {"check", "draw"},
       .carry_out = schedule_command,
       .add_options = add_schedule_options,
       .check = check_schedule,
       .takes_set = false,
       .examples =
           {{"windtunnel schedule check 1f1b --stages 4 --microbatches 8",
             "bubble, passes in flight"},
            {"windtunnel schedule draw interleaved_1f1b --stages 4 --microbatches 8 --virtual 2",
             "a drawing in text; --svg OUT writes a picture"}}},
      {.name = "sweep",
       .summary = "Simulate every point of a scenario's sweep",
       .usage = "FILE --out DIR|--dry-run",
       .carry_out = sweep_command,
       .add_options = add_sweep_options,
       .check = check_sweep,
       .negative = "done; some points failed",
       .examples =
           {{"windtunnel sweep sweep-gpt-39b-cluster-size --dry-run", "the points that it has"},
            {"windtunnel sweep sweep-gpt-39b-cluster-size --out points --report points.html",
             "simulate all points on all cores; the same command continues an interrupted sweep"},
            {"windtunnel sweep sweep-gpt-39b-cluster-size --out points --status",
             "how many points are done"}}},
      {.name = "job",
       .summary = "Simulate a whole training run: days, failures, money",
       .carry_out = job_command,
       .add_options = add_job_options,
       .negative = "done; the plan, or one of a sweep's, does not fit in memory or cannot be made",
       .examples = {{"windtunnel job job-llama3-405b-16384xh100",
                     "the training run of Llama 3 405B"},
                    {"windtunnel job job-llama3-70b-clusters",
                     "every point of its sweep: days against cost"},
                    {"windtunnel job job-llama3-70b-2048xa100 --report days.html --csv draws.csv",
                     "a page with charts, and every draw as a row"},
                    {"windtunnel job job-llama3-70b-2048xa100 --set /job/restart/spare_nodes=8",
                     "with more spare nodes"}}},
      {.name = "validate",
       .summary = "Predict published measurements and score the predictions",
       .argument = "SET",
       .about = "Paths or names of measurement sets; none: all of validation/",
       .usage = "[SET ...]",
       .carry_out = validate_command,
       .add_options = add_validate_options,
       .check = check_validate,
       .negative = "done; above a limit of --fail-above, points that failed, or nothing to score",
       .examples = {{"windtunnel validate", "every published set, one line each"},
                    {"windtunnel validate megatron-sc21-table1 --details", "every row of one set"},
                    {"windtunnel validate iterations.json --fail-above mape=0.10",
                     "your own measurements, as a test"}}},
      {.name = "calibrate",
       .summary = "Fit named constants to measurements, with held-out errors",
       .argument = "SET",
       .about = "Paths or names of measurement sets",
       .usage = "SET ...|--advise FILE",
       .carry_out = calibrate_command,
       .add_options = add_calibrate_options,
       .check = check_calibrate,
       .negative = "done, but there was nothing to calibrate on, a constant ended at a bound of "
                   "its range, or no constant of the file could be identified; no file is written",
       .examples = {{"windtunnel calibrate iterations.json --fit nic_efficiency",
                     "fit one constant"},
                    {"windtunnel calibrate --advise gpt-39b-512xa100",
                     "say which runs to measure next"},
                    {"windtunnel calibrate iterations.json --fit compute_efficiency --predict "
                     "gpt-39b-512xa100",
                     "predict a plan by the fit and by measured runs near it"},
                    {"windtunnel calibrate iterations.json --fit compute_efficiency --draws 200",
                     "how fits to three of the rows change the error of the others"},
                    {"windtunnel calibrate iterations.json --fit compute_efficiency "
                     "--platform cluster.json -o fitted.json",
                     "write a copy of your platform with the fitted number"}}},
      {.name = "explain",
       .summary = "Show the critical path of an iteration, and what would change it",
       .carry_out = explain_command,
       .add_options = add_explain_options,
       .negative = does_not_fit,
       .examples = {{"windtunnel explain gpt-39b-512xa100 --report why.html",
                     "the same as a page"}}},
      {.name = "import",
       .summary = "Turn a log or another tool's file into one of Windtunnel's",
       .argument = "KIND IN",
       .about = about_imports,
       .choices = import_kinds,
       .usage = "KIND IN ...",
       .carry_out = import_command,
       .add_options = add_import_options,
       .check = check_import,
       .takes_set = false,
       .examples = {{"windtunnel import mpigraph mpigraph.log --base a100-80gb-4hdr --rails 4 -o "
                     "cluster.json",
                     "the bandwidth of every link"},
                    {"windtunnel import hf-config config.json -o my-model.json",
                     "a model from HuggingFace"},
                    {"windtunnel import megatron pretrain.sh --base dgx-h100 -o scenario.json",
                     "a scenario from a launch script"},
                    {"windtunnel import kineto rank*.json.gz",
                     "which rank or link slows a job down"},
                    {"windtunnel import kineto trace.json.gz",
                     "where the time of a real step went"},
                    {"windtunnel import straggler-trace timeline.json.gz",
                     "what stragglers cost a job, and which cause costs most"}}},
      {.name = "device",
       .summary = "Complete the file of a GPU, or score its kernels",
       .argument = "NAME",
       .about = "A path, or a name that `windtunnel list devices` prints",
       .usage = "NAME ... --from-datasheet|--kernels",
       .carry_out = device_command,
       .add_options = add_device_options,
       .takes_set = false,
       .examples = {{"windtunnel device our-gpu.json --from-datasheet -o full.json",
                     "a GPU of which only a data sheet is known"},
                    {"windtunnel device h200-sxm --kernels",
                     "how well single kernels are predicted"}}},
      {.name = "probe",
       .summary = "Print a PyTorch script that measures one GPU, one node or two, for import probe",
       .argument = "",
       .about = {},
       .usage = "--script",
       .carry_out = probe_command,
       .add_options = add_probe_options,
       .check = check_probe,
       .takes_set = false,
       .examples =
           {{"windtunnel probe --script >probe.py",
             "then, where the GPUs are: python3 probe.py, or torchrun --nproc_per_node=8 probe.py"},
            {"windtunnel import probe probe.json --base selene-a100 -o measured.json",
             "a platform with the measured numbers"}}},
      {.name = "collective",
       .summary = "Time collectives on a platform",
       .argument = "KIND",
       .about = "all-reduce, all-gather, reduce-scatter or all-to-all",
       .usage = "KIND --platform PLATFORM",
       .carry_out = collective_command,
       .add_options = add_collective_options,
       .check = check_collective,
       .examples = {{"windtunnel collective all-reduce --platform dgx-h100 --gpus 8,16,64,512 "
                     "--bytes 1GiB",
                     "what growing costs"},
                    {"windtunnel collective all-to-all --platform gb200-nvl72 --gpus 72",
                     "in an NVLink domain, over sizes"}}},
      {.name = "codec",
       .summary = "Measure what codecs do to a real tensor",
       .argument = "FILE.npy",
       .about = "A NumPy array of float16, float32 or float64",
       .usage = "FILE.npy|--synthetic KIND",
       .carry_out = codec_command,
       .add_options = add_codec_options,
       .check = check_codec,
       .takes_set = false,
       .examples = {{"windtunnel codec gradient.npy --codec powersgd --rank 4",
                     "on a tensor of your own"},
                    {"windtunnel codec --synthetic gradient --rows 256 --columns 256 --report "
                     "codecs.html",
                     "on a synthetic tensor, with a page"}}},
      {.name = "completion",
       .summary = "Print a script that completes commands in a shell",
       .argument = "SHELL",
       .about = "bash, zsh or fish",
       .choices = {"bash", "zsh", "fish"},
       .carry_out = completion_command,
       .takes_set = false,
       .examples = {{"source <(windtunnel completion bash)", "for this shell"},
                    {"windtunnel completion fish >windtunnel.fish",
                     "to put into fish's completions folder"}}},
      {.name = "help",
       .summary = "Print help, for a command if one is named",
       .argument = "COMMAND",
       .about = "One of the commands",
       .usage = "[COMMAND]",
       .carry_out = help_command,
       .examples = {{"windtunnel help sweep", "the same as windtunnel sweep --help"}}}};
}

/// The entry of the program itself.
const Command program{
    .name = "",
    .negative = "done, with a negative verdict: does not fit, above a limit, some points failed",
    .examples = {
        {"windtunnel run gpt3-175b-512xa100", "one iteration of a shipped scenario"},
        {"windtunnel run mine.json --set /nodes=32", "one of your own, on another number of nodes"},
        {"windtunnel explain mine.json", "why it takes that long, and what would make it faster"},
        {"windtunnel help rank", "the options of a command, with examples"}}};

}  // namespace

std::string in_quotes(const std::string& word) { return "\"" + word + "\""; }

CLI::Validator one_of(std::vector<std::string> words) {
  return {[words = std::move(words)](const std::string& text) {
            if (std::ranges::find(words, text) != words.end()) return std::string();
            const std::string nearest = closest_match(text, words);
            return in_quotes(text) + " is none of " + listed(words) +
                   (nearest.empty() ? "" : " (did you mean " + in_quotes(nearest) + "?)");
          },
          ""};
}

std::vector<std::string> words_between_bars(const std::string& text) {
  if (text.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, '|');) words.push_back(word);
  return words;
}

void check_one_argument(const CommandLine& line) {
  const Command& command = command_named(line.command);
  const std::string& what = command.argument;
  if (line.arguments.size() == 1) return;
  if (line.command == "device" && !line.arguments.empty()) return;
  if (line.arguments.empty()) {
    std::string about = command.about;
    if (about.starts_with("A ")) about.front() = 'a';
    throw UsageError(line.command + " needs a " + what + " (" + about + ")");
  }
  throw UsageError(line.command + " takes one " + what + ", these are " +
                   std::to_string(line.arguments.size()) + ": " + in_quotes(line.arguments[0]) +
                   ", " + in_quotes(line.arguments[1]) +
                   (line.arguments.size() > 2 ? ", ..." : ""));
}

void check_outputs(const CommandLine& line) {
  check_emit(line);
  if (line.command == "run" || line.command == "explain") check_steps(line);
  refuse_if(line.trace_all && line.trace.empty() && line.out.empty(),
            "--trace-all belongs to --trace or --out");
  if (!line.report.empty() && !line.report.ends_with(".html") && !line.report.ends_with(".htm"))
    throw UsageError("--report is " + in_quotes(line.report) + ", which does not end in .html");
  if (!line.trace.empty() && !line.trace.ends_with(".json") && !line.trace.ends_with(".json.gz"))
    throw UsageError("--trace is " + in_quotes(line.trace) +
                     ", which ends in neither .json nor .json.gz");
}

const std::vector<Command>& commands() {
  static const std::vector<Command> table = make_commands();
  return table;
}

const Command& command_named(const std::string& name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? program : *found;
}

std::string help_ending(const Command& command) {
  std::string text = "\nExamples:\n";
  for (const Command::Example& example : command.examples)
    text += std::string("  ") + example.line + "\n      " + example.purpose + "\n";
  text += "\nExit codes:\n  0   done\n";
  if (!command.negative.empty()) text += "  1   " + command.negative + "\n";
  text +=
      "  2   bad usage or bad input\n"
      "  3   a file cannot be read or written, or something is missing on this machine\n"
      "  4   a bug of windtunnel\n";
  if (command.name.empty() || command.name == "sweep")
    text += "  75  interrupted; the same command continues\n";
  return text;
}

}  // namespace windtunnel
