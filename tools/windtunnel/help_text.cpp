#include "windtunnel/help_text.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace windtunnel {
namespace {

struct Example {
  const char* line;
  const char* purpose;
};

/// What is said of one command. Where `negative` is not empty, the command has exit code 1, and that is what it means.
struct Topic {
  std::string_view command;
  std::string_view negative;
  std::vector<Example> examples;
};

constexpr const char* does_not_fit = "done; the plan does not fit in the memory of its GPUs";

std::vector<Topic> topics_of_simulations() {
  return {
      {"",
       "done, with a negative verdict: does not fit, above a limit, some points failed",
       {{"windtunnel run gpt3-175b-512xa100", "one iteration of a shipped scenario"},
        {"windtunnel run mine.json --set /nodes=32", "one of your own, on another number of nodes"},
        {"windtunnel explain mine.json", "why it takes that long, and what would make it faster"},
        {"windtunnel help rank", "the options of a command, with examples"}}},
      {"run",
       does_not_fit,
       {{"windtunnel run gpt-39b-512xa100 --set /training/micro_batch=2", "change a value"},
        {"windtunnel run mine.json --out results", "also write the page, the report and the trace"},
        {"windtunnel show --resolved mine.json | windtunnel run - --json",
         "a scenario from standard input, the report as JSON"},
        {"windtunnel run gpt3-175b-512xa100 --set /noise=mlperf-small --steps 200",
         "200 iterations with noise: percentiles, and how many are slow"}}},
      {"check",
       "",
       {{"windtunnel check mine.json", "every problem at once, each with its line"},
        {"windtunnel check mine.json --set /parallel/tensor=4 --set /parallel/data=16",
         "whether a changed plan is still legal"}}},
      {"show",
       "",
       {{"windtunnel show --resolved mine.json", "every value, with its origin"},
        {"windtunnel show --pointers mine.json",
         "what --set can change, with the current values"}}},
      {"list",
       "",
       {{"windtunnel list models", "names with parameter counts"},
        {"windtunnel list platforms --json", "the same for a program"}}},
      {"rank",
       "done; no plan can be recommended, or the plan of --why is not legal or does not fit",
       {{"windtunnel rank rank-gpt-39b-512xa100 --top 3", "the three fastest plans that fit"},
        {"windtunnel rank rank-gpt-39b-512xa100 --why tensor=8,pipeline=8", "why not this one"},
        {"windtunnel rank mine.json --emit megatron --host-map mine.hosts",
         "launch arguments of the best plan"}}},
      {"compare",
       "done; one of the runs does not fit in memory",
       {{"windtunnel compare gpt-8.3b-128xa100 gpt-8.3b-64xv100", "two clusters"},
        {"windtunnel compare optimus-cc-8.3b-cb --toggle compression --break-even",
         "whether a compression pays, and on which network"}}},
      {"schedule",
       "",
       {{"windtunnel schedule check 1f1b --stages 4 --microbatches 8", "bubble, passes in flight"},
        {"windtunnel schedule draw interleaved_1f1b --stages 4 --microbatches 8 --virtual 2",
         "a drawing in text; --svg OUT writes a picture"}}},
      {"sweep",
       "done; some points failed",
       {{"windtunnel sweep sweep-gpt-39b-cluster-size --dry-run", "the points that it has"},
        {"windtunnel sweep sweep-gpt-39b-cluster-size --out points --report points.html",
         "simulate all points on all cores; the same command continues an interrupted sweep"},
        {"windtunnel sweep sweep-gpt-39b-cluster-size --out points --status",
         "how many points are done"}}},
  };
}

std::vector<Topic> topics_of_jobs_and_measurements() {
  return {
      {"job",
       "done; the plan, or one of a sweep's, does not fit in memory or cannot be made",
       {{"windtunnel job job-llama3-405b-16384xh100", "the training run of Llama 3 405B"},
        {"windtunnel job job-llama3-70b-clusters", "every point of its sweep: days against cost"},
        {"windtunnel job job-llama3-70b-2048xa100 --report days.html --csv draws.csv",
         "a page with charts, and every draw as a row"},
        {"windtunnel job job-llama3-70b-2048xa100 --set /job/restart/spare_nodes=8",
         "with more spare nodes"}}},
      {"validate",
       "done; above a limit of --fail-above, points that failed, or nothing to score",
       {{"windtunnel validate", "every published set, one line each"},
        {"windtunnel validate megatron-sc21-table1 --details", "every row of one set"},
        {"windtunnel validate iterations.json --fail-above mape=0.10",
         "your own measurements, as a test"}}},
      {"calibrate",
       "done, but there was nothing to calibrate on, a constant ended at a bound of its range, or "
       "no "
       "constant of the file could be identified; no file is written",
       {{"windtunnel calibrate iterations.json --fit nic_efficiency", "fit one constant"},
        {"windtunnel calibrate --advise gpt-39b-512xa100", "say which runs to measure next"},
        {"windtunnel calibrate iterations.json --fit compute_efficiency --predict gpt-39b-512xa100",
         "predict a plan by the fit and by measured runs near it"},
        {"windtunnel calibrate iterations.json --fit compute_efficiency --draws 200",
         "how fits to three of the rows change the error of the others"},
        {"windtunnel calibrate iterations.json --fit /platform/node_types/0/compute_efficiency "
         "--platform cluster.json -o fitted.json",
         "write a copy of your platform with the fitted number"}}},
      {"explain",
       does_not_fit,
       {{"windtunnel explain gpt-39b-512xa100 --report why.html", "the same as a page"}}},
  };
}

std::vector<Topic> topics_of_files_and_devices() {
  return {
      {"import",
       "",
       {{"windtunnel import mpigraph mpigraph.log --base a100-80gb-4hdr --rails 4 -o cluster.json",
         "the bandwidth of every link"},
        {"windtunnel import hf-config config.json -o my-model.json", "a model from HuggingFace"},
        {"windtunnel import kineto rank*.json.gz", "which rank or link slows a job down"},
        {"windtunnel import kineto trace.json.gz", "where the time of a real step went"},
        {"windtunnel import straggler-trace timeline.json.gz",
         "what stragglers cost a job, and which cause costs most"}}},
      {"device",
       "",
       {{"windtunnel device our-gpu.json --from-datasheet -o full.json",
         "a GPU of which only a data sheet is known"},
        {"windtunnel device h200-sxm --kernels", "how well single kernels are predicted"}}},
      {"probe",
       "",
       {{"windtunnel probe --script >probe.py",
         "then, where the GPUs are: python3 probe.py, or torchrun --nproc_per_node=8 probe.py"},
        {"windtunnel import probe probe.json --base selene-a100 -o measured.json",
         "a platform with the measured numbers"}}},
      {"codec",
       "",
       {{"windtunnel codec gradient.npy --codec powersgd --rank 4", "on a tensor of your own"},
        {"windtunnel codec --synthetic gradient --rows 256 --columns 256",
         "on a synthetic tensor"}}},
      {"completion",
       "",
       {{"source <(windtunnel completion bash)", "for this shell"},
        {"windtunnel completion fish >windtunnel.fish", "to put into fish's completions folder"}}},
      {"help", "", {{"windtunnel help sweep", "the same as windtunnel sweep --help"}}},
  };
}

const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = [] {
    std::vector<Topic> topics = topics_of_simulations();
    for (const auto more : {topics_of_jobs_and_measurements, topics_of_files_and_devices})
      for (Topic& topic : more()) topics.push_back(std::move(topic));
    return topics;
  }();
  return all;
}

std::string examples_text(const std::vector<Example>& examples) {
  std::string text = "\nExamples:\n";
  for (const Example& example : examples)
    text += std::string("  ") + example.line + "\n      " + example.purpose + "\n";
  return text;
}

std::string codes_text(const Topic& topic) {
  std::string text = "\nExit codes:\n  0   done\n";
  if (!topic.negative.empty()) text += "  1   " + std::string(topic.negative) + "\n";
  text +=
      "  2   bad usage or bad input\n"
      "  3   a file cannot be read or written, or something is missing on this machine\n"
      "  4   a bug of windtunnel\n";
  if (topic.command.empty() || topic.command == "sweep")
    text += "  75  interrupted; the same command goes on where it stopped\n";
  return text;
}

}  // namespace

std::string help_ending(const std::string& command) {
  const auto topic = std::find_if(topics().begin(), topics().end(),
                                  [&](const Topic& each) { return each.command == command; });
  if (topic == topics().end()) return {};
  return examples_text(topic->examples) + codes_text(*topic);
}

}  // namespace windtunnel
