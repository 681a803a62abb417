// Configurations of NeMo, 1.x and 2.x.
#include <string>
#include <utility>

#include "core/file_io.hpp"
#include "importers/launch_scenario.hpp"

namespace windtunnel::formats {
namespace {

/// A YAML file, or a script with its keys ("model.micro_batch_size=4").
Imported import_nemo(const ImportRequest& request, const Library& library) {
  const auto source = read_source_or_stdin(request.inputs.front());
  LaunchSettings settings = request.inputs.front().extension() == ".sh"
                                ? read_launch_script(*source, request.options.arguments)
                                : read_yaml_settings(*source, request.options.arguments);
  for (LaunchSetting& setting : settings.settings)
    for (const std::string prefix : {"training.", "trainer.", "strategy.", "ddp.", "plugins.",
                                     "model.", "optim.config.", "config.", "data."})
      if (setting.key.starts_with(prefix)) setting.drop_beginning(prefix.size());
  // "Does nothing when transformer_engine=True" (megatron_gpt_config.yaml of NeMo 1.23), whose attention is fused.
  const bool is_fused = settings.is_on("transformer-engine") || settings.is_on("mcore-gpt");
  std::erase_if(settings.settings, [&](const LaunchSetting& each) {
    return each.value.empty() || (is_fused && each.key == "use-flash-attention");  // null
  });
  return megatron_scenario(request, library, std::move(settings), "nemo-2024");
}

}  // namespace

Importer nemo() {
  return {"nemo",
          "a configuration of NeMo, to a scenario",
          "a YAML configuration of NeMo 1.x, or a script with its keys",
          {"--base", "--gpus", "--model", "--args"},
          import_nemo};
}

}  // namespace windtunnel::formats
