#include "importers/gpu_comparison.hpp"

#include <algorithm>

#include "importers/gpu_model.hpp"
#include "importers/log_text.hpp"
#include "scenario/library_files.hpp"

namespace windtunnel {
namespace {

bool has_only(const Platform& platform, const GpuModel& model) {
  return std::all_of(
      platform.node_types.begin(), platform.node_types.end(),
      [&](const NodeType& type) { return gpu_model_in(type.device.name) == &model; });
}

/// Which built-in platforms could be the base instead.
std::string bases_with(const GpuModel& model, const Library& library) {
  std::string list;
  for (const std::string& name : library.names(platform_files.name)) try {
      if (has_only(BasePlatform(name, library).platform(), model))
        list += (list.empty() ? "" : ", ") + name;
    } catch (const InputError&) {
      continue;  // a broken file is no base, and not what is spoken of
    }
  const std::string gpu(model.name);
  if (!list.empty()) return "name a --base with " + gpu + " GPUs: " + list;
  return "no built-in platform has " + gpu +
         " GPUs: write a device file for it and a platform with it, and name that as --base "
         "(docs/platforms.md)";
}

}  // namespace

GpuComparison compare_gpus(const std::vector<NamedGpu>& named, const BasePlatform& base,
                           const Library& library) {
  const std::string& device = base.only_node().device.name;
  const GpuModel* ours = gpu_model_in(device);
  GpuComparison comparison;
  for (const NamedGpu& gpu : named) {
    const GpuModel* theirs = gpu_model_in(gpu.name);
    if (ours == nullptr || theirs == nullptr) {
      comparison.unknown.push_back(
          "the GPUs were not compared: " + file_and_line(gpu.origin) + " names " + gpu.name + ", " +
          base.name() + " has " + device + ", and " +
          (theirs == nullptr ? "the first" : "the second") +
          " is no model that is known here; make sure that they are the same");
    } else if (ours != theirs) {
      comparison.contradictions.push_back({gpu.origin,
                                           {},
                                           "the log is of " + gpu.name + " GPUs, but " +
                                               base.name() + " has another model, " + device,
                                           bases_with(*theirs, library)});
    }
  }
  return comparison;
}

}  // namespace windtunnel
