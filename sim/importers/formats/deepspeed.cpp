// Configurations of DeepSpeed (ds_config.json).
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/launch_scenario.hpp"
#include "report/json_object.hpp"

namespace windtunnel::formats {
namespace {

/// Says what is taken for the settings that are "auto", and how to give other values.
void note_chosen(LaunchScenario& scenario, const std::vector<LaunchSetting>& chosen, int data) {
  const int global = scenario.at("/training/global_batch", 0),
            micro = scenario.at("/training/micro_batch", 1);
  std::vector<std::string> taken, left;
  for (const LaunchSetting& each : chosen) {
    const auto take = [&](const auto& value) { taken.push_back(each.written + " " + value); };
    if (each.key == "train-batch-size")
      take(std::to_string(global));
    else if (each.key == "train-micro-batch-size-per-gpu")
      take(std::to_string(micro));
    else if (each.key == "gradient-accumulation-steps")
      take(std::to_string(global / (micro * data)));
    else if (each.key.ends_with("16.enabled"))
      take(each.key.starts_with(scenario.is("/training/precision", "bf16") ? "b" : "f") ? "true"
                                                                                        : "false");
    else
      left.push_back(each.written);
  }
  const std::string beginning = "\"auto\" is chosen by the program that calls DeepSpeed: ";
  if (!taken.empty())
    scenario.note(beginning + listed(taken) +
                  " here; write others in place of \"auto\", or change them with `windtunnel run "
                  "--set /training/micro_batch=N --set /training/global_batch=N --set "
                  "/training/precision=fp16`");
  if (!left.empty()) scenario.note(beginning + listed(left) + " left to the defaults here");
}

Imported import_deepspeed(const ImportRequest& request, const Library& library) {
  Problems problems;
  const JsonValue config =
      parse_foreign_json(read_source_or_stdin(request.inputs.front()), problems);
  problems.throw_if_any();
  if (!config.is_object())
    throw option_error("import", request.kind, request.inputs.front().string() + " holds no object",
                       "give a configuration of DeepSpeed");
  if (request.options.model.empty())
    throw option_error("import", request.kind,
                       "a configuration of DeepSpeed does not say the model", "give --model MODEL");
  LaunchSettings settings = read_json_settings(config);
  std::vector<LaunchSetting> chosen;
  std::erase_if(settings.settings, [&](const LaunchSetting& each) {
    if (each.value == "auto") chosen.push_back(each);
    return each.value == "auto";
  });
  if (settings.settings.empty() && !chosen.empty())
    throw option_error("import", request.kind,
                       "all settings of " + request.inputs.front().string() +
                           " are \"auto\": the program that calls DeepSpeed chooses them",
                       "write its choices in their place, above all the stage of ZeRO");
  // Keys of stage 3 count in no other, and those of offloading where something is offloaded (deepspeed/runtime/zero/config.py).
  const int stage = settings.number("zero-optimization.stage");
  std::set<std::string> idle;
  for (const std::string block : {"offload-param", "offload-optimizer"})
    if (const std::string device = settings.text("zero-optimization." + block + ".device");
        device.empty() || device == "none")
      idle.insert("zero-optimization." + block + ".");
  if (stage != 3) idle.insert({"zero-optimization.stage3-", "zero-optimization.sub-group-size"});
  std::erase_if(settings.settings, [&](const LaunchSetting& each) {
    return std::ranges::any_of(
        idle, [&](const std::string& beginning) { return each.key.starts_with(beginning); });
  });
  LaunchScenario scenario(request, library, std::move(settings), detail::deepspeed_table);
  const char* const bucket = "zero-optimization.reduce-bucket-size";
  const char* const overlap = "zero-optimization.overlap-comm";
  if (stage != 3 && scenario.number(bucket) > 0)
    scenario.set_from(bucket, "/software/gradient_bucket", scenario.number(bucket));
  else if (stage != 3 && scenario.settings().find(bucket) != nullptr)
    scenario.warn(std::string(bucket) + " is \"" + scenario.text(bucket) +
                  "\", which is no number of elements: it is left out");
  for (const char* key : {bucket, overlap})
    if (stage == 3 && scenario.settings().find(key) != nullptr && scenario.text(key) != "true")
      scenario.note(key + (" " + scenario.text(key)) +
                    " is not used: ZeRO 3 scatters each layer's gradients behind the backward pass "
                    "of the next here");
  const JsonValue model = file_of_option("--model", request.options.model, model_files, library);
  if (request.options.sequence > 0)
    scenario.set("/model/sequence", request.options.sequence);
  else if (const JsonValue* const sequence = model.find("sequence"))
    scenario.note("the sequence, of which the file says nothing, is that of " +
                  request.options.model + ", " + canonical_text(*sequence) +
                  " tokens: --sequence N gives another");
  // train_batch_size = micro batch * accumulation steps * replicas (DeepSpeedConfig._batch_assertion()); of two it makes the third.
  const int samples = scenario.number("train-micro-batch-size-per-gpu") *
                      scenario.number("gradient-accumulation-steps");
  const int gpus = scenario.gpus(
      samples > 0 ? scenario.number("train-batch-size") / samples * scenario.gpus_of_replica() : 0);
  const int data = std::max(1, gpus / scenario.gpus_of_replica());
  if (scenario.at("/parallel/context", 1) > 1)  // Ulysses
    scenario.set_from("sequence-parallel-size", "/parallel/context_method", "all_to_all");
  // MiCS: so many ranks share one copy of the states (deepspeed/runtime/zero/mics.py); of all ranks it is nothing else than ZeRO 3.
  const char* const shard = "zero-optimization.mics-shard-size";
  if (const int ranks = scenario.number(shard); ranks > 1 && ranks < gpus)
    scenario.set_from(shard, "/parallel/zero_group", ranks);
  // "Only valid with ZeRO Stage 3" (deepspeed/runtime/zero/offload_config.py).
  const char* const fraction = "/training/optimizer_offload_fraction";
  const char* const ratio = "zero-optimization.offload-optimizer.ratio";
  if (const auto share = number_in(scenario.text(ratio));
      share && scenario.has(fraction) && scenario.at("/parallel/zero_stage", 0) == 3)
    scenario.set_from(ratio, fraction, *share);
  const int steps = std::max(1, scenario.number("gradient-accumulation-steps"));
  const int global = scenario.at("/training/global_batch", 0);
  scenario.set_default("/training/micro_batch",
                       global > 0 ? std::max(1, global / data / steps) : 1);
  if (global == 0)
    scenario.set("/training/global_batch", scenario.at("/training/micro_batch", 1) * steps * data);
  const bool is_auto = std::ranges::any_of(
      chosen, [](const LaunchSetting& each) { return each.key.ends_with("16.enabled"); });
  if (!is_auto && !scenario.has("/training/precision"))
    scenario.note("neither bf16 nor fp16 is enabled: DeepSpeed trains in fp32");
  scenario.set_default("/training/precision", is_auto ? "bf16" : "fp32");
  note_chosen(scenario, chosen, data);
  scenario.note(
      "whether activations are recomputed is said by the program that calls DeepSpeed "
      "(gradient_checkpointing of Transformers): where they are, write \"recompute\": \"full\" "
      "into /training");
  return scenario.finish("deepspeed-2024", gpus);
}

}  // namespace

Importer deepspeed() {
  return {"deepspeed",
          "a configuration of DeepSpeed, to a scenario",
          "a JSON configuration of DeepSpeed",
          {"--base", "--gpus", "--model", "--sequence"},
          import_deepspeed};
}

}  // namespace windtunnel::formats
