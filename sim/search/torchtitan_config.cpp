#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "search/launch_arguments.hpp"

namespace windtunnel {
namespace {

/// Tables and keys of a TOML file, in the order in which they are added.
class Toml {
 public:
  Toml& table(const std::string& name) {
    text_ += (text_.empty() ? "[" : "\n[") + name + "]\n";
    return *this;
  }
  Toml& add(const std::string& key, int number) { return line(key, std::to_string(number)); }
  Toml& add(const std::string& key, const std::string& word) {
    return line(key, "\"" + word + "\"");
  }
  Toml& line(const std::string& key, const std::string& value) {
    text_ += key + " = " + value + "\n";
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Its name in torch.distributed.pipelining, which torchtitan takes.
std::optional<std::string> schedule_of(const Schedule& schedule) {
  if (schedule.name == "1f1b") return "1F1B";
  if (schedule.name == "interleaved_1f1b") return "Interleaved1F1B";
  if (schedule.name == "gpipe") return "GPipe";
  if (schedule.name == "zero_bubble_v") return "ZBVZeroBubble";
  if (schedule.name == "dualpipe_v") return "DualPipeV";
  return std::nullopt;
}

/// Replicas that hold a whole copy, and those that share one: data parallel ways alone, context is counted apart.
std::pair<int, int> replicated_and_sharded(const Parallel& parallel) {
  if (parallel.zero_stage < 3) return {parallel.data, 1};
  if (parallel.zero_group == 0) return {1, parallel.data};
  const int sharded = std::max(1, parallel.zero_group / parallel.context);
  return {parallel.data / sharded, sharded};
}

void add_parallelism(Toml& toml, const Parallel& parallel, int micro_batch) {
  const auto [replicated, sharded] = replicated_and_sharded(parallel);
  toml.table("parallelism")
      .add("data_parallel_replicate_degree", replicated)
      .add("data_parallel_shard_degree", sharded)
      .add("tensor_parallel_degree", parallel.tensor)
      .add("context_parallel_degree", parallel.context)
      .add("pipeline_parallel_degree", parallel.pipeline);
  if (parallel.pipeline == 1) return;
  if (const auto schedule = schedule_of(*parallel.schedule))
    toml.add("pipeline_parallel_schedule", *schedule);
  toml.add("pipeline_parallel_microbatch_size", micro_batch);
}

void add_notes(const Plan& plan, LaunchArguments& launch) {
  const Parallel& parallel = plan.parallel;
  if (parallel.tensor > 1 && !parallel.sequence_parallel)
    launch.notes.emplace_back("torchtitan's tensor parallelism always splits sequences too");
  if (parallel.zero_stage == 1 || parallel.zero_stage == 2)
    launch.notes.push_back("torchtitan shards everything or nothing: ZeRO " +
                           std::to_string(parallel.zero_stage) + " is written as plain replicas");
  if (parallel.pipeline > 1 && !schedule_of(*parallel.schedule))
    launch.notes.push_back("torchtitan does not run the schedule " + parallel.schedule->name);
  if (plan.training.precision == Precision::nvfp4)
    launch.notes.emplace_back("torchtitan has no nvfp4");
}

}  // namespace

LaunchArguments torchtitan_config(const Plan& plan, int sequence) {
  const Training& training = plan.training;
  const bool has_pipeline = plan.parallel.pipeline > 1;
  Toml toml;
  toml.table("training")
      .add("seq_len", sequence)
      .add("local_batch_size",
           has_pipeline ? plan.microbatches * training.micro_batch : training.micro_batch)
      .add("global_batch_size", training.global_batch);
  add_parallelism(toml, plan.parallel, training.micro_batch);
  toml.table("activation_checkpoint").add("mode", std::string(name_of(training.recompute)));
  const Precision precision = training.precision;
  if (precision == Precision::fp8 || precision == Precision::mxfp8)
    toml.table("model").line("converters",
                             precision == Precision::fp8 ? "[\"float8\"]" : "[\"mx\"]");
  LaunchArguments launch;
  launch.arguments.push_back(toml.take());
  add_notes(plan, launch);
  return launch;
}

}  // namespace windtunnel
