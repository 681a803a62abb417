#include "windtunnel/command_options.hpp"

#include <functional>
#include <sstream>
#include <string>

#include "codec/measured_codec.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "simulate/tasks.hpp"
#include "windtunnel/command_checks.hpp"

namespace windtunnel {
namespace {

constexpr int most_explained_steps = 100'000;
constexpr int most_gpus = 131'072;
constexpr int most_plans = 1'000'000, most_jobs = 1024, most_seconds = 1'000'000;

/// What can stand for a value that the help calls `type`.
Completion completion_of(const std::string& type) {
  if (type == "/POINTER=VALUE") return Completion::settings;
  if (type == "/POINTER") return Completion::pointers;
  if (type == "PLATFORM") return Completion::platforms;
  if (type == "MODEL") return Completion::models;
  return Completion::files;
}

/// Adds the options of one command. `type` stands for the value in the help.
class Options {
 public:
  explicit Options(CLI::App* command) : command_(command) {}

  template <class Value>
  CLI::Option* value(const std::string& name, Value& value, const char* type,
                     const std::string& about) {
    return command_->add_option(name, value, about)->type_name(type);
  }
  void flag(const char* name, bool& value, const char* about) {
    command_->add_flag(name, value, about);
  }
  void output(const char* name, std::string& file, const char* type, const char* about) {
    value(name, file, type, about)->check(output_name());
  }
  template <class Number>
  void number(const char* name, Number& number, int least, int most, const std::string& about,
              const char* type = "N") {
    value(name, number, type, about)->check(between(least, most));
  }
  /// One of the words between the bars of `words`.
  void word(const char* name, std::string& chosen, const char* words, const char* about) {
    value(name, chosen, words, about)
        ->check(CLI::IsMember(words_between_bars(words)).description(""));
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

}  // namespace

CLI::Validator output_name() {
  return {[](const std::string& name) {
            return name.empty() ? std::string("the name is empty") : std::string();
          },
          ""};
}

void add_report(CLI::App* command, CommandLine& line) {
  Options(command).output("--report", line.report, "OUT.html",
                          "Write an HTML page that opens from disk");
}

void add_run_options(CLI::App* run, CommandLine& line) {
  Options options(run);
  options.output("--trace", line.trace, "OUT", "Write a Chrome trace (.json or .json.gz)");
  options.flag("--trace-all", line.trace_all,
               "Write every device to the trace, even if viewers cannot load it");
  options.output("--rank-traces", line.rank_traces, "DIR",
                 "Write a trace of each simulated device, named by its first rank");
  add_report(run, line);
  run->add_flag("--memory", line.lists_memory,
                "Print the tensors that make up each stage's memory, the largest first");
  run->add_option_function<std::string>(
         "--detail", [&line](const std::string& detail) { line.by_layer = detail == "layer"; },
         "layer: simulate each kernel and collective of every layer as an event, and show them in "
         "a trace; times are those of pass, unless messages contend")
      ->type_name("pass|layer")
      ->check(CLI::IsMember({"pass", "layer"}).description(""));
  options.word("--engine", line.engine, "simgrid|native|heap",
               "What simulates the iteration (default simgrid): native shares links by the same "
               "rule, faster where messages contend; heap gives each message its links to itself");
  add_step_options(run, line);
  options.output("--out", line.out, "DIR",
                 "Write report.json, report.html and trace.json.gz to a folder");
}

void add_new_options(CLI::App* command, CommandLine& line) {
  Options options(command);
  options.value("--model", line.model, "MODEL",
                "A name that windtunnel list models prints, or a path");
  options.value("--platform", line.platform, "PLATFORM",
                "A name that windtunnel list platforms prints, or a path");
  options.list("--gpus", line.gpus, "N", "How many GPUs train it")->check(between(1, most_gpus));
  options.value("-o,--output", line.output, "OUT",
                "The file to write, which must not be there yet (default: standard output)");
}

void add_schedule_options(CLI::App* schedule, CommandLine& line) {
  Options options(schedule);
  constexpr int most = 1 << 20;
  options.number("--stages", line.stages, 1, most, "Pipeline stages of a named schedule");
  options.number("--microbatches", line.microbatches, 1, most, "Microbatches of a named schedule");
  options.number("--virtual", line.chunks, 1, most,
                 "Model chunks per device, for " + names_of_chunked_schedules() +
                     " (default: as few as possible)");
  options.value("--svg", line.svg, "OUT", "Write the drawing as a picture");
}

void add_device_options(CLI::App* device, CommandLine& line) {
  Options options(device);
  options.flag("--from-datasheet", line.from_datasheet,
               "Complete the file: what a data sheet does not give is scaled from the "
               "nearest measured GPU");
  options.flag("--kernels", line.kernels,
               "Score predictions of kernels that were measured alone on this GPU");
  options.output("--svg", line.svg, "OUT", "With --kernels: plot predicted against measured times");
  options.value("-o,--output", line.output, "OUT", "Write the completed file");
}

void add_explain_options(CLI::App* explain, CommandLine& line) {
  Options options(explain);
  options.number("--steps", line.steps, 1, most_explained_steps,
                 "Simulate N iterations with the scenario's noise: how often each resource was "
                 "critical, and what each kind of noise costs");
  options.jobs_of_steps(line);
  add_report(explain, line);
  options.number("--budget", line.budget, 0, most_seconds,
                 "Start no what-if after this time (default: simulate all)", "SECONDS");
}

void add_rank_options(CLI::App* rank, CommandLine& line) {
  Options options(rank);
  options.number("--top", line.rank.top, 1, most_plans, "How many plans to print (default 10)",
                 "K");
  options.number("--budget", line.budget, 0, most_plans,
                 "Most simulations (default: until the table is proven)");
  options.number("--jobs", line.jobs, 1, most_jobs,
                 "Simulations at the same time (default: one per core)");
  options.value("--why", line.rank.why, "PLAN",
                "Explain the place of one plan, such as tensor=8,pipeline=4,micro_batch=2");
  options.word("--method", line.rank.method, "amp|varuna|pipette|megatron",
               "Show which plan another method would pick, and simulate it");
  options.word("--emit", line.emit, "megatron|deepspeed|torchtitan",
               "Print the launch arguments or configuration of the best plan, or of --plan N");
  options.number("--plan", line.rank.plan, 1, most_plans,
                 "With --emit: the plan of this number in the table (default 1)");
  options.value("--host-map", line.rank.host_map, "OUT",
                "With --emit: write which GPU runs which rank");
  add_report(rank, line);
}

void add_compare_options(CLI::App* compare, CommandLine& line) {
  Options options(compare);
  options.value("--toggle", line.toggle, "/POINTER",
                "Run the one FILE without and with the value at the pointer; "
                "\"compression\" is short for /compression");
  options.flag("--break-even", line.break_even,
               "Find the network bandwidth at which each run is as fast as the first");
  add_report(compare, line);
}

void add_step_options(CLI::App* run, CommandLine& line) {
  Options options(run);
  constexpr int most_steps = 1'000'000;
  options.number("--steps", line.steps, 1, most_steps,
                 "Simulate N iterations, each with its own random draws of the scenario's noise "
                 "(engine native), and show how their times vary");
  options.jobs_of_steps(line);
  options.output("--csv", line.csv, "OUT.csv", "With --steps: write one row per step");
}

void add_job_options(CLI::App* job, CommandLine& line) {
  Options options(job);
  constexpr int most_draws = 1'000'000;
  options.number("--draws", line.draws, 1, most_draws,
                 "How many times to simulate the run (default 1000)");
  options.number("--jobs", line.jobs, 1, most_jobs,
                 "Number of threads, which changes no result (default: one per core)");
  add_report(job, line);
  options.output("--csv", line.csv, "OUT.csv", "Write one row per simulated run");
}

void add_sweep_options(CLI::App* sweep, CommandLine& line) {
  Options options(sweep);
  options.value("--out", line.out, "DIR",
                "Folder of the results; the same command continues an interrupted sweep");
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
  sweep->add_flag("--worker", line.worker)->group("");
  add_report(sweep, line);
}

void add_validate_options(CLI::App* validate, CommandLine& line) {
  Options options(validate);
  options.flag("--details", line.details,
               "Print every point, and the scores of memory, timers and the order of plans");
  options.list("--fail-above", line.fail_above, "METRIC=LIMIT",
               "Exit with 1 if a metric of a set is above the limit; may be repeated");
  options.value("--svg", line.svg, "OUT", "Write a scatter plot of predicted and measured times");
  options.value("--residuals", line.residuals, "FILE",
                "Write the errors of pairs, from which the order of two plans is judged, into this "
                "file of residuals");
  add_report(validate, line);
}

void add_calibrate_options(CLI::App* calibrate, CommandLine& line) {
  Options options(calibrate);
  constexpr int most = 1 << 20;
  options.list("--fit", line.calibrate.fit, "NAME[=LOW..HIGH][,NAME]",
               "Constants to fit: emax, memory_efficiency, nic_efficiency, "
               "in_node_collective_slowdown (arf), compute_efficiency, tensor_collective_overhead, "
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
  options
      .value("--prior", line.prior, "shipped|none",
             "What a fit starts from: shipped (default; what the rows do not identify keeps "
             "its value) or none (the rows alone decide; default with --residuals)")
      ->check(CLI::IsMember({"shipped", "none"}));
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

void add_import_options(CLI::App* command, CommandLine& line) {
  Options options(command);
  ImportOptions& import = line.import;
  constexpr int most = 1 << 28;
  options.value(
      "-o,--output", line.output, "OUT",
      "Where to write the platform, model, scenario or measured set; a file that is there "
      "is replaced");
  options.value(
      "--base", import.base, "PLATFORM",
      "Platform with the same GPU, or that a launch script is for, or the scenario of traced "
      "steps: a name or a path");
  options.value("--clean", import.clean, "WHAT",
                "phase: replace rates that mpiGraph's ring steps lowered by medians");
  options.value("--table", import.table, "TABLE",
                "Table of mpiGraph to read: send (default) or recv");
  options.value("--unit", import.unit, "UNIT", "Unit of mpiGraph's rates (default MiB/s)");
  options.number("--rails", import.rails, 1, most,
                 "Processes per node in mpiGraph's run, each with its own network card");
  options.number("--sequence", import.sequence, 1, most, "Sequence length of a model, in tokens");
  options.value("--model", import.model, "MODEL",
                "Model of a launch script that does not say its sizes: a name or a path");
  options.value("--args", import.arguments, "ARGUMENTS",
                "Variables and arguments that a launch script is called with: \"NNODES=4 7B\"");
  options.number("--gpus", import.gpus, 1, most,
                 "GPUs of a launch script that does not say how many");
}

void add_collective_options(CLI::App* collective, CommandLine& line) {
  Options options(collective);
  options.value("--platform", line.platform, "PLATFORM",
                "Required: a path, or a name that `windtunnel list platforms` prints");
  options
      .value("--gpus", line.gpus, "N",
             "Numbers of GPUs, whole nodes where they are more than one (default: one node or "
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
  add_report(collective, line);
}

void add_codec_options(CLI::App* codec, CommandLine& line) {
  Options options(codec);
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
  add_report(codec, line);
}

const std::string& import_kinds() {
  static const std::string text = [] {
    std::string kinds = "KIND is one of:";
    for (const Importer& importer : importers())
      kinds += std::string("\n") + importer.name + ": " + importer.what;
    return kinds;
  }();
  return text;
}

std::vector<std::string> words_between_bars(const std::string& text) {
  if (text.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, '|');) words.push_back(word);
  return words;
}

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

void refuse_option(const std::string& option, const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> known;
  for (const CLI::App* app : commands)
    if (app != nullptr)
      for (const CLI::Option* each : app->get_options())
        for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
  const std::string nearest = closest_match(option.substr(0, option.find('=')), known);
  throw UsageError("unknown option " + in_quotes(option) +
                   (nearest.empty() ? "" : " (did you mean " + in_quotes(nearest) + "?)"));
}

}  // namespace windtunnel
