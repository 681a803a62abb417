#include "search/launch_arguments.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "plan/pipeline_layout.hpp"
#include "search/testing.hpp"

namespace windtunnel {
namespace {

Plan plan_of(const std::string& parallel, const std::string& training = "") {
  return scenario_from(R"({"model": {"layers": 12, "hidden": 1024, "heads": 16, "sequence": 1024,
                                     "vocab": 51200},
                           "platform": "selene-a100", "nodes": 2,
                           "training": {"global_batch": 64, "micro_batch": 2)" +
                       training + R"(}, "parallel": )" + parallel + "}")
      .plan;
}

std::string words(const LaunchArguments& launch) {
  std::string text;
  for (const std::string& argument : launch.arguments) text += (text.empty() ? "" : " ") + argument;
  return text;
}

bool has(const LaunchArguments& launch, const std::string& argument) {
  return std::count(launch.arguments.begin(), launch.arguments.end(), argument) == 1;
}

TEST_CASE("a plain plan is the degrees, the batches and the precision") {
  CHECK(words(megatron_arguments(plan_of(R"({"tensor": 8, "pipeline": 2})"))) ==
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --global-batch-size 64 "
        "--micro-batch-size 2 --fp16");
}

TEST_CASE("what a plan adds, Megatron-LM is told") {
  const LaunchArguments launch = megatron_arguments(
      plan_of(R"({"tensor": 4, "pipeline": 2, "schedule": "interleaved_1f1b", "virtual_pipeline": 3,
                  "sequence_parallel": true, "zero_stage": 1, "overlap_gradient_reduce": true})",
              R"(, "precision": "bf16", "recompute": "selective")"));
  for (const char* argument : {"--num-virtual-stages-per-pipeline-rank 3", "--sequence-parallel",
                               "--bf16", "--recompute-granularity selective",
                               "--use-distributed-optimizer", "--overlap-grad-reduce"}) {
    CAPTURE(argument);
    CHECK(has(launch, argument));
  }
}

TEST_CASE("gradients of another format than Megatron-LM's own are an argument") {
  const auto of = [](const char* precision, const char* gradients) {
    return words(megatron_arguments(
        plan_of(R"({"data": 16})", std::string(R"(, "precision": ")") + precision +
                                       R"(", "gradient_dtype": ")" + gradients + '"')));
  };
  const auto says = [](const std::string& text, const char* argument) {
    return text.find(argument) != std::string::npos;
  };
  CHECK(says(of("bf16", "bf16"), "--grad-reduce-in-bf16"));
  CHECK(says(of("fp16", "fp32"), "--accumulate-allreduce-grads-in-fp32"));
  CHECK(!says(of("bf16", "fp32"), "grad"));
  CHECK(!says(of("fp16", "fp16"), "grad"));
}

TEST_CASE("a fused cross entropy and a recipe of fp8 are arguments") {
  const auto of = [](const std::string& training) {
    return megatron_arguments(plan_of(R"({"data": 16})", training));
  };
  const LaunchArguments fused = of(R"(, "cross_entropy": "in_place")");
  CHECK(has(fused, "--cross-entropy-loss-fusion"));
  CHECK(has(fused, "--cross-entropy-fusion-impl te"));
  const LaunchArguments compiled = of(R"(, "cross_entropy": "vocab_parallel_compiled")");
  CHECK(has(compiled, "--cross-entropy-loss-fusion"));
  CHECK(words(compiled).find("fusion-impl") == std::string::npos);
  const LaunchArguments own = of(R"(, "cross_entropy": "vocab_parallel")");
  CHECK(words(own).find("cross-entropy") == std::string::npos);
  CHECK(of(R"(, "cross_entropy": "chunked")").notes.size() == own.notes.size() + 1);
  const Plan blocks = scenario_from(R"({"model": "llama3-8b", "platform": "dgx-h100", "nodes": 1,
      "training": {"global_batch": 8, "micro_batch": 1, "precision": "fp8", "fp8_recipe": "block"},
      "parallel": {"data": 8}})")
                          .plan;
  CHECK(has(megatron_arguments(blocks), "--fp8-recipe blockwise"));
}

TEST_CASE("recomputation of some layers is Megatron-LM's method block, or left out with a word") {
  const auto of = [](const char* layers) {
    return megatron_arguments(
        plan_of(R"({"tensor": 8, "pipeline": 2})",
                std::string(R"(, "recompute": "full", "recompute_layers": )") + layers));
  };
  CHECK(has(of(R"({"first": 3})"), "--recompute-method block"));
  CHECK(has(of(R"({"first": 3})"), "--recompute-num-layers 3"));
  CHECK(has(of(R"({"every": 2})"), "--recompute-method uniform"));
  CHECK(of(R"({"every": 2})").notes.size() == of(R"({"first": 3})").notes.size() + 1);
}

TEST_CASE("degrees of expert and expert tensor parallelism are arguments where there are any") {
  const Plan plan =
      scenario_from(R"({"model": {"layers": 12, "hidden": 1024, "heads": 16, "sequence": 1024,
      "vocab": 51200, "moe": {"experts": 8, "top_k": 2, "ffn_hidden": 1024}}, "platform": "selene-a100", "nodes": 2,
      "training": {"global_batch": 64, "micro_batch": 2}, "parallel": {"data": 16, "expert": 8, "expert_tensor": 2}})")
          .plan;
  CHECK(has(megatron_arguments(plan), "--expert-model-parallel-size 8"));
  CHECK(has(megatron_arguments(plan), "--expert-tensor-parallel-size 2"));
  Plan whole = plan;
  whole.parallel.tensor = 2;
  whole.parallel.expert_tensor = 1;
  CHECK(has(megatron_arguments(whole), "--expert-tensor-parallel-size 1"));
  CHECK(words(megatron_arguments(plan_of(R"({"tensor": 8, "pipeline": 2})"))).find("expert") ==
        std::string::npos);
}

TEST_CASE("four groups of four replicas that share out states are so many optimizer instances") {
  const LaunchArguments launch =
      megatron_arguments(plan_of(R"({"data": 16, "zero_stage": 1, "zero_group": 4})"));
  CHECK(has(launch, "--num-distributed-optimizer-instances 4"));
}

TEST_CASE("sharded parameters are Megatron-FSDP") {
  const LaunchArguments launch = megatron_arguments(plan_of(R"({"data": 16, "zero_stage": 3})"));
  CHECK(has(launch, "--use-megatron-fsdp"));
  CHECK(has(launch, "--data-parallel-sharding-strategy optim_grads_params"));
}

TEST_CASE("a schedule that Megatron-LM cannot be asked for is said") {
  const auto notes = [](const char* schedule) {
    return megatron_arguments(plan_of(R"({"tensor": 8, "pipeline": 2, "schedule": ")" +
                                      std::string(schedule) + "\"}"))
        .notes.size();
  };
  CHECK(notes("gpipe") == notes("1f1b") + 1);
}

TEST_CASE("of the rank orders Megatron-LM knows two") {
  const LaunchArguments second = megatron_arguments(
      plan_of(R"({"tensor": 4, "pipeline": 2, "rank_order": "tensor-pipeline-data"})"));
  CHECK(has(second, "--use-tp-pp-dp-mapping"));
  const LaunchArguments other = megatron_arguments(
      plan_of(R"({"tensor": 4, "pipeline": 2, "rank_order": "data-tensor-pipeline"})"));
  CHECK(other.notes.size() == second.notes.size() + 1);
}

TEST_CASE("uneven stages become a layout that reads back as the same layers") {
  const Plan plan = plan_of(
      R"({"tensor": 4, "pipeline": 4, "stage_layers": [4, 6, 2, 0], "virtual_pipeline": 1})");
  CHECK(pipeline_layout(plan) == "Et*4|t*6|t*2|L");
  CHECK(std::get<PipelineLayout>(read_pipeline_layout(pipeline_layout(plan))).layers ==
        plan.stage_layers);
  CHECK(has(megatron_arguments(plan), "--pipeline-model-parallel-layout 'Et*4|t*6|t*2|L'"));
}

TEST_CASE("with several chunks a layout has a part for each") {
  const Plan plan = plan_of(R"({"tensor": 8, "pipeline": 2, "schedule": "interleaved_1f1b",
                                "virtual_pipeline": 2, "stage_layers": [8, 4]})");
  CHECK(pipeline_layout(plan) == "Et*4|t*2|t*4|t*2L");
  CHECK_FALSE(has(megatron_arguments(plan), "--num-virtual-stages-per-pipeline-rank 2"));
}

TEST_CASE("the host map has a line a rank") {
  const std::string map = host_map(plan_of(R"({"tensor": 8, "pipeline": 2})"), {});
  CHECK(map.starts_with("# rank node gpu\n0 node0 0\n1 node0 1\n"));
  CHECK(map.ends_with("\n15 node1 7\n"));
  CHECK(std::count(map.begin(), map.end(), '\n') == 17);
}

TEST_CASE("DeepSpeed's batch is microbatch times accumulation times replicas") {
  const LaunchArguments launch =
      deepspeed_config(plan_of(R"({"tensor": 2, "data": 8, "zero_stage": 2})"));
  const std::string& config = launch.arguments.front();
  // 64 = 2 * 4 * 8
  CHECK(config.find("\"train_batch_size\": 64") != std::string::npos);
  CHECK(config.find("\"train_micro_batch_size_per_gpu\": 2") != std::string::npos);
  CHECK(config.find("\"gradient_accumulation_steps\": 4") != std::string::npos);
  CHECK(config.find("\"stage\": 2") != std::string::npos);
}

TEST_CASE("what DeepSpeed's JSON cannot say is in the notes") {
  const auto notes = [](const std::string& parallel, const std::string& training = "") {
    return words({deepspeed_config(plan_of(parallel, training)).notes, {}});
  };
  const auto says = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(notes(R"({"data": 16})") ==
        "the data-parallel degree follows from the number of processes: 16 make 16");
  const std::string sharded = notes(R"({"tensor": 4, "pipeline": 2, "data": 2, "zero_stage": 3,
                                     "stage_layers": [7, 5]})",
                                    R"(, "recompute": "full")");
  for (const char* part : {"--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2",
                           "--checkpoint-activations", "refuses zero_stage 3", "stage_layers"})
    CHECK_MESSAGE(says(sharded, part), part);
  CHECK(says(notes(R"({"data": 16, "zero_stage": 3, "reshard_after_forward": false})"),
             "reshard_after_forward"));
  CHECK(says(notes(R"({"tensor": 4, "sequence_parallel": true})"), "--sequence-parallel"));
  CHECK(says(notes(R"({"pipeline": 2, "data": 8, "schedule": "gpipe"})"), "schedule gpipe"));
  CHECK(says(notes(R"({"data": 16})", R"(, "recompute": "selective")"), "whole layers"));
  const std::string config =
      deepspeed_config(
          plan_of(R"({"data": 16})", R"(, "precision": "bf16", "gradient_dtype": "fp32",
                               "exp_avg_dtype": "bf16")"))
          .arguments.front();
  CHECK(says(config, R"("communication_data_type": "fp32")"));
  CHECK_FALSE(says(config, "offload_optimizer"));
  // ZeRO 3 is simulated with gathers and scatters that overlap, always.
  CHECK(says(deepspeed_config(plan_of(R"({"data": 16, "zero_stage": 3})")).arguments.front(),
             "\"overlap_comm\": true"));
  CHECK_FALSE(says(deepspeed_config(plan_of(R"({"data": 16})", R"(, "precision": "bf16",
                       "gradient_dtype": "bf16")"))
                       .arguments.front(),
                   "communication_data_type"));
  CHECK(says(notes(R"({"data": 16})", R"(, "exp_avg_dtype": "bf16")"), "optimizer's states"));
}

TEST_CASE("torchtitan gets its degrees, its batches and what it cannot do") {
  const LaunchArguments sharded = torchtitan_config(
      plan_of(R"({"tensor": 2, "data": 8, "zero_stage": 3})", R"(, "recompute": "full")"), 2048);
  const std::string& code = sharded.arguments.front();
  for (const char* line :
       {"import FullAC\n", "def with_plan(config):\n", "training.max_context_length = 2048\n",
        "num_tokens_per_microbatch_per_dp_rank = 4096  # 2 sequences\n",
        "num_tokens_per_train_step = 131072  # 64 sequences\n",
        "data_parallel_replicate_degree = 1\n", "data_parallel_shard_degree = 8\n",
        "fsdp_reshard_after_forward = \"always\"\n", "tensor_parallel_degree = 2\n",
        "enable_sequence_parallel = False\n", "context_parallel_degree = 1\n",
        "pipeline_parallel_degree = 1\n", "config.activation_checkpoint = FullAC.Config()\n"})
    CHECK_MESSAGE(code.find(line) != std::string::npos, line);
  CHECK(code.find("schedule") == std::string::npos);
  CHECK(words({sharded.notes, {}}).find("torchtitan has no fp16") != std::string::npos);
  CHECK(words({sharded.notes, {}}).find("adapters") == std::string::npos);
  const LaunchArguments adapted =
      torchtitan_config(plan_of(R"({"data": 16})", R"(, "lora_rank": 8)"), 2048);
  CHECK(words({adapted.notes, {}}).find("adapters belong to the model") != std::string::npos);
  // 12 layers in 2 stages, 64 sequences over 8 replicas in microbatches of 2.
  const LaunchArguments stages =
      torchtitan_config(plan_of(R"({"pipeline": 2, "data": 8, "zero_stage": 1,
                                    "stage_layers": [7, 5]})"),
                        2048);
  for (const char* line :
       {"pipeline_parallel_schedule = \"1F1B\"\n", "num_pp_microbatches = 4\n",
        "layers = [7, 5]  # of each part", "data_parallel_shard_degree = 8\n",
        "fsdp_reshard_after_forward = \"never\"\n", "config.activation_checkpoint = None\n"})
    CHECK_MESSAGE(stages.arguments.front().find(line) != std::string::npos, line);
  CHECK(words({stages.notes, {}}).find("torchtitan has no ZeRO 1") != std::string::npos);
}

TEST_CASE("a plan's compression is left out with a word") {
  const Plan plain = plan_of(R"({"data": 16})");
  const Plan compressed =
      scenario_from(
          R"({"model": {"layers": 12, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 51200},
          "platform": "selene-a100", "nodes": 2, "training": {"global_batch": 64, "micro_batch": 2},
          "parallel": {"data": 16},
          "compression": {"data_gradients": {"codec": "fixed", "ratio": 10}}})")
          .plan;
  const auto says = [](const LaunchArguments& launch) {
    return words({launch.notes, {}}).find("the plan's compression is left out") !=
           std::string::npos;
  };
  CHECK(says(megatron_arguments(compressed)));
  CHECK(says(torchtitan_config(compressed, 1024)));
  CHECK(says(deepspeed_config(compressed)));
  CHECK_FALSE(says(megatron_arguments(plain)));
  CHECK_FALSE(says(torchtitan_config(plain, 1024)));
}

TEST_CASE("DeepSpeed offloads a share of the optimizer with ZeRO 3 alone") {
  const auto at = [](int stage, double share) {
    Plan plan = plan_of(R"({"data": 16})");
    plan.parallel.zero_stage = stage;
    plan.training.optimizer_offload = share;
    const LaunchArguments launch = deepspeed_config(plan);
    return launch.arguments.front() + words({launch.notes, {}});
  };
  const auto says = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(says(at(3, 0.5), "\"ratio\": 0.5"));
  CHECK_FALSE(says(at(3, 0.5), "all states go to the host"));
  CHECK_FALSE(says(at(2, 0.5), "ratio"));
  CHECK(says(at(2, 0.5), "all states go to the host"));
  CHECK_FALSE(says(at(2, 1), "all states go to the host"));
  CHECK(says(at(0, 1), "offload_optimizer has no effect"));
  CHECK_FALSE(says(at(0, 0), "offload"));
}

TEST_CASE("eight bits are a converter of torchtitan's models") {
  const Plan plan = scenario_from(R"({"model": "llama3-8b", "platform": "dgx-h100", "nodes": 1,
      "training": {"global_batch": 8, "micro_batch": 1, "precision": "fp8", "attention": "flash"},
      "parallel": {"data": 8}})")
                        .plan;
  CHECK(words({torchtitan_config(plan, 8192).notes, {}}).find("Float8LinearConverter.Config()") !=
        std::string::npos);
}

TEST_CASE("parts of the model are listed for torchtitan in the order of the model") {
  // Chunks of two stages: 0 and 2 on the first, 1 and 3 on the second.
  const LaunchArguments launch =
      torchtitan_config(plan_of(R"({"tensor": 8, "pipeline": 2, "schedule": "interleaved_1f1b",
                                    "virtual_pipeline": 2, "stage_layers": [8, 4]})"),
                        1024);
  CHECK(launch.arguments.front().find("layers = [4, 2, 4, 2]  # of each part") !=
        std::string::npos);
  CHECK(launch.arguments.front().find("\"Interleaved1F1B\"") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
