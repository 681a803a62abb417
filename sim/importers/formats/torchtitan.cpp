// Configurations of torchtitan up to 0.2, in TOML.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

/// Keys of torchtitan/config/job_config.py, torchtitan 0.1 and 0.2.
const std::vector<LaunchKey>& torchtitan_keys() {
  static const std::vector<LaunchKey> keys{
      {"training.seq-len", "/model/sequence"},
      {"training.local-batch-size", "/training/micro_batch"},
      {"training.batch-size", "/training/micro_batch"},
      {"parallelism.tensor-parallel-degree", "/parallel/tensor"},
      {"training.tensor-parallel-degree", "/parallel/tensor"},
      {"parallelism.pipeline-parallel-degree", "/parallel/pipeline"},
      {"experimental.pipeline-parallel-degree", "/parallel/pipeline"},
      {"parallelism.context-parallel-degree", "/parallel/context"},
      {"experimental.context-parallel-degree", "/parallel/context"},
      {"parallelism.expert-parallel-degree", "/parallel/expert"},
      {"parallelism.pipeline-parallel-schedule",
       "/parallel/schedule",
       {{"1F1B", R"("1f1b")"},
        {"Interleaved1F1B", R"("interleaved_1f1b")"},
        {"GPipe", R"("gpipe")"},
        {"ZBVZeroBubble", R"("zero_bubble_v")"},
        {"DualPipeV", R"("dualpipe_v")"}}},
      {"parallelism.enable-async-tensor-parallel",
       "/parallel/async_tensor_parallel",
       {{"true", "true"}, {"false", nullptr}}},
      {"experimental.enable-async-tensor-parallel",
       "/parallel/async_tensor_parallel",
       {{"true", "true"}, {"false", nullptr}}},
      {"parallelism.fsdp-reshard-after-forward",
       "/parallel/reshard_after_forward",
       {{"always", "true"}, {"never", "false"}, {"default", nullptr}}},
      {"activation-checkpoint.mode",
       "/training/recompute",
       {{"full", R"("full")"}, {"selective", R"("selective")"}, {"none", R"("none")"}}},
      {"compile.enable", "/training/compile", {{"true", "true"}, {"false", "false"}}},
      {"training.compile", "/training/compile", {{"true", "true"}, {"false", "false"}}},
      {"training.mixed-precision-param",
       "/training/precision",
       {{"float32", R"("fp32")"}, {"bfloat16", R"("bf16")"}}},
  };
  return keys;
}

/// "llama3-70b" of llama3 and 70B.
std::string shipped_model(const Library& library, const LaunchSettings& settings) {
  const LaunchSetting* const name = settings.find("model.name");
  const LaunchSetting* const flavor = settings.find("model.flavor");
  if (name == nullptr || flavor == nullptr) return {};
  std::string wanted = name->value + "-" + flavor->value;
  for (char& c : wanted)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (wanted == "deepseek-v3-671b") wanted = "deepseek-v3";
  const std::vector<std::string> names = library.names("models");
  return std::count(names.begin(), names.end(), wanted) > 0 ? wanted : "";
}

Imported import_torchtitan(const ImportRequest& request, const Library& library) {
  LaunchSettings settings = read_toml_settings(*read_source_or_stdin(request.inputs.front()));
  ImportRequest with_model = request;
  if (with_model.options.model.empty()) with_model.options.model = shipped_model(library, settings);
  LaunchScenario scenario(with_model, library, std::move(settings), torchtitan_keys(),
                          {"activation-checkpoint.",
                           "checkpoint.",
                           "comm.",
                           "compile.components",
                           "debug.",
                           "experimental.custom",
                           "fault-tolerance.",
                           "float8.",
                           "job.",
                           "lr-scheduler.",
                           "memory-estimation.",
                           "metrics.",
                           "model.",
                           "mx.",
                           "optimizer.",
                           "parallelism.data-parallel",
                           "parallelism.pipeline-parallel-microbatch",
                           "parallelism.pipeline-parallel-layers",
                           "profiling.",
                           "quantize.",
                           "training.data",
                           "training.deterministic",
                           "training.enable-cpu",
                           "training.gc",
                           "training.global-batch",
                           "training.max-norm",
                           "training.mixed-precision-reduce",
                           "training.seed",
                           "training.steps",
                           "training.warmup",
                           "validation.",
                           "training.data-parallel"});
  const auto says = [&](const char* key, const char* value) {
    const LaunchSetting* const setting = scenario.settings().find(key);
    return setting != nullptr && setting->value.find(value) != std::string::npos;
  };
  int gpus = request.options.gpus;
  const int ways = scenario.ways();
  const int replicate = std::max(1, scenario.number("parallelism.data-parallel-replicate-degree"));
  int shard = std::max(scenario.number("parallelism.data-parallel-shard-degree"),
                       scenario.number("training.data-parallel-shard-degree"));
  if (gpus == 0) gpus = shard > 0 ? replicate * shard * ways : 0;  // -1: whatever is left
  if (gpus == 0) return scenario.finish("torchtitan-2025", 0);     // which asks for --gpus
  const int data = std::max(1, gpus / ways);
  if (shard == 0) shard = std::max(1, data / replicate);
  const int context = scenario.at("/parallel/context", 1);
  scenario.set("/parallel/zero_stage", json_of(shard * context > 1 ? 3 : 0));
  if (replicate > 1 && shard > 1) scenario.set("/parallel/zero_group", json_of(shard * context));
  if (scenario.at("/parallel/tensor", 1) > 1)
    scenario.set("/parallel/sequence_parallel", JsonValue(true));
  const bool is_fp8 = says("model.converters", "float8") ||
                      says("float8.enable-float8-linear", "true") ||
                      says("model.converters", "quantize.linear.float8");
  if (!scenario.has("/training/precision")) scenario.set("/training/precision", JsonValue("bf16"));
  if (is_fp8) scenario.set("/training/precision", JsonValue("fp8"));
  if (says("model.converters", "mx")) scenario.set("/training/precision", JsonValue("mxfp8"));
  if (says("activation-checkpoint.mode", "selective"))
    scenario.note(
        "selective activation checkpointing is that of Megatron's attention core; torchtitan's op "
        "list saves other tensors");
  scenario.set("/training/attention", JsonValue("flash"));
  if (!scenario.has("/training/compile")) scenario.set("/training/compile", JsonValue(false));
  if (!scenario.has("/training/micro_batch"))
    scenario.set("/training/micro_batch", json_of(8));  // torchtitan's default
  // With a pipeline, local_batch_size is cut into microbatches.
  const int local = scenario.at("/training/micro_batch", 1);
  const int global = scenario.number("training.global-batch-size");
  scenario.set("/training/global_batch", json_of(global > 0 ? global : local * data));
  if (scenario.at("/parallel/pipeline", 1) > 1)
    scenario.set("/training/micro_batch",
                 json_of(std::clamp(
                     scenario.number("parallelism.pipeline-parallel-microbatch-size"), 1, local)));
  return scenario.finish("torchtitan-2025", gpus);
}

}  // namespace

namespace formats {
Importer torchtitan() {
  return {"torchtitan",
          "a configuration of torchtitan, to a scenario",
          "a TOML configuration of torchtitan (releases up to 0.2)",
          {"--base", "--gpus", "--model"},
          Importer::Files::one,
          Importer::Result::file,
          import_torchtitan};
}
}  // namespace formats

}  // namespace windtunnel
