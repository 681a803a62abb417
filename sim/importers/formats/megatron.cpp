// Launch scripts of Megatron-LM and Megatron-DeepSpeed.
#include <string>
#include <utility>

#include "core/file_io.hpp"
#include "importers/megatron_settings.hpp"

namespace windtunnel {
namespace {

/// The arguments of a script, or of a YAML file that lists them ("--num-layers: 32").
Imported import_megatron(const ImportRequest& request, const Library& library) {
  const auto source = read_source_or_stdin(request.inputs.front());
  const std::string extension = request.inputs.front().extension().string();
  LaunchSettings settings = extension == ".yaml" || extension == ".yml"
                                ? read_yaml_settings(*source)
                                : read_launch_script(*source, request.options.arguments);
  for (LaunchSetting& setting : settings.settings) setting.key.erase(0, setting.key.rfind('.') + 1);
  return megatron_scenario(request, library, std::move(settings), "megatron-core-2026");
}

}  // namespace

namespace formats {
Importer megatron() {
  return {"megatron",
          "a launch script of Megatron-LM or Megatron-DeepSpeed, to a scenario",
          "the shell script that starts pretrain_gpt.py, or a YAML file of its arguments",
          {"--base", "--gpus", "--model", "--args"},
          Importer::Files::one,
          Importer::Result::file,
          import_megatron};
}
}  // namespace formats

}  // namespace windtunnel
