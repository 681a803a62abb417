#include "windtunnel/command_table.hpp"

#include <algorithm>

#include "plan/schedule.hpp"
#include "windtunnel/command_checks.hpp"
#include "windtunnel/command_options.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

constexpr const char* does_not_fit = "done; the plan does not fit in the memory of its GPUs";

ExitCode help_command(const CommandLine& line) {
  print_result(line, line.help);
  return exit_done;
}

ExitCode completion_command(const CommandLine& line) {
  print_result(completion_text(line.grammar, line.arguments.front()));
  return exit_done;
}

void add_probe_options(CLI::App* probe, CommandLine& line) {
  probe->add_flag(
      "--script", line.script,
      "Print the script; it needs Python and PyTorch, and takes less than five minutes");
}

void any_arguments(const CommandLine&) {}

std::vector<Command> make_commands() {
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
       .carry_out = new_command,
       .add_options = add_new_options,
       .check = any_arguments,
       .takes_set = false,
       .examples = {{"windtunnel new --model llama3-70b --platform dgx-h100 --gpus 512 -o my.json",
                     "a commented file; on a terminal it asks for what is left out"},
                    {"windtunnel new --model llama3-8b --platform dgx-h100 --gpus 8 | "
                     "windtunnel run -",
                     "simulated at once"}}},
      {.name = "check",
       .summary = "Read and check a scenario, no more",
       .carry_out = check_command,
       .examples = {{"windtunnel check mine.json", "every problem at once, each with its line"},
                    {"windtunnel check mine.json --set /parallel/tensor=4 --set /parallel/data=16",
                     "whether a changed plan is still legal"}}},
      {.name = "show",
       .summary = "Print the whole scenario with the origin of each value, or its network",
       .carry_out = show_command,
       .examples = {{"windtunnel show --resolved mine.json", "every value, with its origin"},
                    {"windtunnel show --pointers mine.json",
                     "what --set can change, with the current values"},
                    {"windtunnel show --network mine.json",
                     "the fabric, its bisection bandwidth and taper"},
                    {"windtunnel show --simgrid mine.json >cluster.xml",
                     "the machine for a simulation with SimGrid"}}},
      {.name = "list",
       .summary = "Print what is built in",
       .argument = "KIND",
       .about = "models, platforms, devices, software, noise, scenarios, codecs, fabrics or keys",
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
       .summary = "Lay runs side by side: times, where they went, bytes, memory",
       .about = "Scenarios (as run takes them) or reports of run --json, two or more; one with "
                "--toggle. Timelines instead where one is a trace, of PyTorch's profiler or of run "
                "--trace",
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
       .summary = "Simulate a training run of weeks: days, failures, money",
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
       .carry_out = calibrate_command,
       .add_options = add_calibrate_options,
       .check = check_calibrate,
       .negative = "done, but there was nothing to calibrate on, a constant ended at a bound of "
                   "its range, or no constant of the file could be identified; no file is written",
       .examples =
           {{"windtunnel calibrate iterations.json --fit nic_efficiency", "fit one constant"},
            {"windtunnel calibrate --advise gpt-39b-512xa100", "say which runs to measure next"},
            {"windtunnel calibrate iterations.json --fit compute_efficiency --predict "
             "gpt-39b-512xa100",
             "predict a plan by the fit and by measured runs near it"},
            {"windtunnel calibrate iterations.json --fit compute_efficiency --draws 200",
             "how fits to three of the rows change the error of the others"},
            {"windtunnel calibrate iterations.json --fit /platform/node_types/0/compute_efficiency "
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
       .summary = "Make one of our files of a log or another tool's file",
       .argument = "KIND IN",
       .about = import_kinds(),
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
       .carry_out = device_command,
       .add_options = add_device_options,
       .takes_set = false,
       .examples = {{"windtunnel device our-gpu.json --from-datasheet -o full.json",
                     "a GPU of which only a data sheet is known"},
                    {"windtunnel device h200-sxm --kernels",
                     "how well single kernels are predicted"}}},
      {.name = "probe",
       .summary = "Print a PyTorch script that measures a GPU, a node or two, for import probe",
       .argument = "",
       .about = {},
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
       .carry_out = completion_command,
       .takes_set = false,
       .examples = {{"source <(windtunnel completion bash)", "for this shell"},
                    {"windtunnel completion fish >windtunnel.fish",
                     "to put into fish's completions folder"}}},
      {.name = "help",
       .summary = "Print help, of a command where one is named",
       .argument = "COMMAND",
       .about = "One of the commands",
       .carry_out = help_command,
       .examples = {{"windtunnel help sweep", "the same as windtunnel sweep --help"}}}};
}

/// Of the program itself.
const Command program{
    .name = "",
    .negative = "done, with a negative verdict: does not fit, above a limit, some points failed",
    .examples = {
        {"windtunnel run gpt3-175b-512xa100", "one iteration of a shipped scenario"},
        {"windtunnel run mine.json --set /nodes=32", "one of your own, on another number of nodes"},
        {"windtunnel explain mine.json", "why it takes that long, and what would make it faster"},
        {"windtunnel help rank", "the options of a command, with examples"}}};

}  // namespace

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
    text += "  75  interrupted; the same command goes on where it stopped\n";
  return text;
}

}  // namespace windtunnel
