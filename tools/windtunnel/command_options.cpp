#include "windtunnel/command_options.hpp"

#include <sstream>
#include <string>

#include "codec/measured_codec.hpp"
#include "core/problem.hpp"
#include "simulate/tasks.hpp"
#include "windtunnel/command_checks.hpp"

namespace windtunnel {
namespace {

constexpr int most_explained_steps = 100'000;
constexpr int most_plans = 1'000'000, most_jobs = 1024, most_seconds = 1'000'000;

/// What can stand for a value that the help calls `type`.
Completion completion_of(const std::string& type) {
  if (type == "/POINTER=VALUE") return Completion::settings;
  if (type == "/POINTER") return Completion::pointers;
  if (type == "PLATFORM") return Completion::platforms;
  return Completion::files;
}

}  // namespace

CLI::Validator output_name() {
  return {[](const std::string& name) {
            return name.empty() ? std::string("the name is empty") : std::string();
          },
          ""};
}

void add_report(CLI::App* command, CommandLine& line) {
  command->add_option("--report", line.report, "Write an HTML page that opens from disk")
      ->type_name("OUT.html")
      ->check(output_name());
}

void add_run_options(CLI::App* run, CommandLine& line) {
  run->add_option("--trace", line.trace, "Write a Chrome trace (.json or .json.gz)")
      ->type_name("OUT")
      ->check(output_name());
  run->add_flag("--trace-all", line.trace_all,
                "Write every device to the trace, even if viewers cannot load it");
  run->add_option("--rank-traces", line.rank_traces,
                  "Write a trace of each simulated device, named by its first rank")
      ->type_name("DIR")
      ->check(output_name());
  add_report(run, line);
  run->add_flag("--memory", line.lists_memory,
                "Print the tensors that make up each stage's memory, the largest first");
  run->add_option_function<std::string>(
         "--detail", [&line](const std::string& detail) { line.by_layer = detail == "layer"; },
         "layer: simulate each kernel and collective of every layer as an event, and show them in "
         "a "
         "trace; times are those of pass, unless messages contend")
      ->type_name("pass|layer")
      ->check(CLI::IsMember({"pass", "layer"}).description(""));
  run->add_option(
         "--engine", line.engine,
         "What simulates the iteration (default simgrid): native shares links by the same "
         "rule, faster where messages contend; heap gives each message its links to itself")
      ->type_name("simgrid|native|heap")
      ->check(CLI::IsMember({"simgrid", "native", "heap"}).description(""));
  add_step_options(run, line);
  run->add_option("--out", line.out, "Write report.json, report.html and trace.json.gz to a folder")
      ->type_name("DIR")
      ->check(output_name());
}

void add_schedule_options(CLI::App* schedule, CommandLine& line) {
  const auto add = [schedule](const char* name, int& value, const std::string& about) {
    schedule->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 20));
  };
  add("--stages", line.stages, "Pipeline stages of a named schedule");
  add("--microbatches", line.microbatches, "Microbatches of a named schedule");
  add("--virtual", line.chunks,
      "Model chunks per device, for " + names_of_chunked_schedules() +
          " (default: as few as possible)");
  schedule->add_option("--svg", line.svg, "Write the drawing as a picture")->type_name("OUT");
}

void add_device_options(CLI::App* device, CommandLine& line) {
  device->add_flag("--from-datasheet", line.from_datasheet,
                   "Complete the file: what a data sheet does not give is scaled from the "
                   "nearest measured GPU");
  device->add_flag("--kernels", line.kernels,
                   "Score predictions of kernels that were measured alone on this GPU");
  device->add_option("--svg", line.svg, "With --kernels: plot predicted against measured times")
      ->type_name("OUT")
      ->check(output_name());
  device->add_option("-o,--output", line.output, "Write the completed file")->type_name("OUT");
}

void add_explain_options(CLI::App* explain, CommandLine& line) {
  explain
      ->add_option("--steps", line.steps,
                   "Simulate N iterations with the scenario's noise: how often each resource was "
                   "critical, and what each kind of noise costs")
      ->type_name("N")
      ->check(between(1, most_explained_steps));
  explain
      ->add_option(
          "--jobs", line.jobs,
          "With --steps: number of threads, which changes no result (default: one per core)")
      ->type_name("N")
      ->check(between(1, most_jobs));
  add_report(explain, line);
  explain
      ->add_option("--budget", line.budget,
                   "Start no what-if after this time (default: simulate all)")
      ->type_name("SECONDS")
      ->check(between(0, most_seconds));
}

void add_rank_options(CLI::App* rank, CommandLine& line) {
  rank->add_option("--top", line.top, "How many plans to print (default 10)")
      ->type_name("K")
      ->check(between(1, most_plans));
  rank->add_option("--budget", line.budget, "Most simulations (default: until the table is proven)")
      ->type_name("N")
      ->check(between(0, most_plans));
  rank->add_option("--jobs", line.jobs, "Simulations at the same time (default: one per core)")
      ->type_name("N")
      ->check(between(1, most_jobs));
  rank->add_option("--why", line.why,
                   "Explain the place of one plan, such as tensor=8,pipeline=4,micro_batch=2")
      ->type_name("PLAN");
  rank->add_option("--method", line.method,
                   "Show which plan another method would pick, and simulate it")
      ->type_name("amp|varuna|pipette|megatron")
      ->check(CLI::IsMember({"amp", "varuna", "pipette", "megatron"}).description(""));
  rank->add_option("--emit", line.emit,
                   "Print the launch arguments or configuration of the best plan")
      ->type_name("megatron|deepspeed|torchtitan")
      ->check(CLI::IsMember({"megatron", "deepspeed", "torchtitan"}).description(""));
  rank->add_option("--host-map", line.host_map, "With --emit: write which GPU plays which rank")
      ->type_name("OUT");
}

void add_compare_options(CLI::App* compare, CommandLine& line) {
  compare
      ->add_option("--toggle", line.toggle,
                   "Run the one FILE without and with the value at the pointer; "
                   "\"compression\" is short for /compression")
      ->type_name("/POINTER");
  compare->add_flag("--break-even", line.break_even,
                    "Find the network bandwidth at which each run is as fast as the first");
  add_report(compare, line);
}

void add_step_options(CLI::App* run, CommandLine& line) {
  constexpr int most_steps = 1'000'000;
  run->add_option("--steps", line.steps,
                  "Simulate N iterations, each with its own random draws of the scenario's noise "
                  "(engine native), and show how their times vary")
      ->type_name("N")
      ->check(between(1, most_steps));
  run->add_option(
         "--jobs", line.jobs,
         "With --steps: number of threads, which changes no result (default: one per core)")
      ->type_name("N")
      ->check(between(1, most_jobs));
  run->add_option("--csv", line.csv, "With --steps: write one row per step")
      ->type_name("OUT.csv")
      ->check(output_name());
}

void add_job_options(CLI::App* job, CommandLine& line) {
  constexpr int most_draws = 1'000'000;
  job->add_option("--draws", line.draws, "How many times to simulate the run (default 1000)")
      ->type_name("N")
      ->check(between(1, most_draws));
  job->add_option("--jobs", line.jobs,
                  "Number of threads, which changes no result (default: one per core)")
      ->type_name("N")
      ->check(between(1, most_jobs));
  add_report(job, line);
  job->add_option("--csv", line.csv, "Write one row per simulated run")
      ->type_name("OUT.csv")
      ->check(output_name());
}

void add_sweep_options(CLI::App* sweep, CommandLine& line) {
  const auto add = [sweep](const char* name, std::string& value, const char* about,
                           const char* type) {
    sweep->add_option(name, value, about)->type_name(type);
  };
  add("--out", line.out, "Folder of the results; the same command continues an interrupted sweep",
      "DIR");
  sweep
      ->add_option("--jobs", line.jobs, "Points simulated at the same time (default: one per core)")
      ->type_name("N")
      ->check(between(1, 1 << 16));
  add("--shard", line.shard,
      "Simulate only part i of n (default: as Slurm, Open MPI or PMI number this process)", "i/n");
  add("--time-limit", line.time_limit,
      "Longest time for one point, such as \"90 s\": 1 us to 240 h", "TIME");
  add("--memory-limit", line.memory_limit,
      "Most memory for one point, such as \"4 GB\": 64 MB to 1 PB", "SIZE");
  sweep->add_flag("--retry-failed", line.retry_failed, "Simulate failed points again");
  sweep->add_flag("--dry-run", line.dry_run, "List the points and stop");
  sweep->add_flag("--status", line.status, "Merge and count the results so far, and stop");
  sweep->add_flag("--worker", line.worker)->group("");
  add_report(sweep, line);
}

void add_validate_options(CLI::App* validate, CommandLine& line) {
  validate->add_flag("--details", line.details,
                     "Print every point, and the scores of memory, timers and the order of plans");
  validate
      ->add_option("--fail-above", line.fail_above,
                   "Exit with 1 if a metric of a set is above the limit; may be repeated")
      ->type_name("METRIC=LIMIT")
      ->allow_extra_args(false);
  validate->add_option("--svg", line.svg, "Write a scatter plot of predicted and measured times")
      ->type_name("OUT");
  add_report(validate, line);
}

void add_calibrate_options(CLI::App* calibrate, CommandLine& line) {
  calibrate
      ->add_option(
          "--fit", line.fit,
          "Constants to fit: emax, memory_efficiency, nic_efficiency, "
          "in_node_collective_slowdown (arf), compute_efficiency, tensor_collective_overhead, "
          "kernel_launch, flash_forward, flash_backward, or a "
          "JSON pointer to any number of a scenario; may be repeated")
      ->type_name("NAME[=LOW..HIGH][,NAME]")
      ->allow_extra_args(false);
  const auto add = [calibrate](const char* name, std::string& value, const char* about,
                               const char* type) {
    calibrate->add_option(name, value, about)->type_name(type);
  };
  add("--advise", line.advise,
      "Fit nothing: name the runs to measure next that make the prediction of this scenario most "
      "certain",
      "FILE");
  add("--predict", line.predict,
      "Predict this scenario with the fitted constants, anchored by measured rows near it", "FILE");
  calibrate
      ->add_option("--prior", line.prior,
                   "What a fit starts from: shipped (default; what the rows do not identify keeps "
                   "its value) or none (the rows alone decide; default with --residuals)")
      ->type_name("shipped|none")
      ->check(CLI::IsMember({"shipped", "none"}));
  const auto add_number = [calibrate](const char* name, int& value, const char* about) {
    calibrate->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 20));
  };
  add_number(
      "--draws", line.fit_draws,
      "Write nothing: fit N times to randomly drawn rows, and show how the error of the other "
      "rows changes");
  add_number("--rows", line.fit_rows, "Rows per draw (default 3)");
  calibrate->add_flag("--memory", line.memory,
                      "Train a correction of the memory account instead, and write it to -o");
  add("--device", line.device, "Device to copy with the fitted numbers", "FILE");
  add("--software", line.software, "Software profile to copy with the fitted numbers", "FILE");
  add("--platform", line.platform, "Platform to copy with the fitted numbers", "FILE");
  add("-o,--output", line.output, "Where to write the copy", "OUT");
  add("--residuals", line.residuals,
      "Write held-out residuals, from which prediction intervals are made", "OUT");
}

void add_import_options(CLI::App* command, CommandLine& line) {
  const auto add = [command](const char* name, std::string& value, const char* about,
                             const char* type) {
    command->add_option(name, value, about)->type_name(type);
  };
  add("-o,--output", line.output, "Where to write the platform, model or measured set", "OUT");
  add("--base", line.import.base,
      "Platform with the same GPU, for what the file does not contain, or the scenario of traced "
      "steps: a name or a path",
      "PLATFORM");
  add("--clean", line.import.clean,
      "phase: replace rates that mpiGraph's ring steps lowered by medians", "WHAT");
  add("--table", line.import.table, "Table of mpiGraph to read: send (default) or recv", "TABLE");
  add("--unit", line.import.unit, "Unit of mpiGraph's rates (default MiB/s)", "UNIT");
  const auto add_number = [command](const char* name, int& value, const char* about) {
    command->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 28));
  };
  add_number("--rails", line.import.rails,
             "Processes per node in mpiGraph's run, each with its own network card");
  add_number("--sequence", line.import.sequence, "Sequence length of a model, in tokens");
}

void add_codec_options(CLI::App* codec, CommandLine& line) {
  CodecRequest& request = line.codec;
  codec->add_option("--synthetic", request.synthetic, "Instead of a file: gradient or activation")
      ->type_name("KIND");
  const auto side = [codec](const char* name, std::size_t& value, const char* about) {
    codec->add_option(name, value, about)->type_name("N")->check(between(1, 1 << 16));
  };
  side("--rows", request.rows, "Rows of a synthetic tensor (default 1024)");
  side("--columns", request.columns, "Columns of a synthetic tensor (default 1024)");
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
                   "Also compare the sums of N messages without and with error feedback")
      ->type_name("N")
      ->check(between(1, 1 << 20));
  codec->add_option("-o,--output", line.output, "Write the JSON document into a file")
      ->type_name("OUT");
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
