#include "platform/software_json.hpp"

#include <optional>
#include <string_view>

#include "core/object_reader.hpp"
#include "platform/source_json.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double least_ratio = 1e-3;     ///< of an efficiency or factor
constexpr double most_factor = 1e3;      ///< no factor of a stack is larger
constexpr double most_state_bytes = 64;  ///< nor any state, in bytes a parameter

void read_launch(ObjectReader reader, SoftwareProfile& profile) {
  SoftwareProfile::LaunchFloor& launch = profile.launch;
  launch.layer_forward = required_quantity<Seconds>(reader, "layer_forward");
  launch.layer_backward = required_quantity<Seconds>(reader, "layer_backward");
  launch.collective = required_quantity<Seconds>(reader, "collective");
  launch.wide_tensor_factor = reader.optional_number("wide_tensor_factor", 1, 1, most_factor);
  launch.wide_tensor_ways = reader.optional_int("wide_tensor_ways", 8, 1, 1'000'000);
  launch.cluster_factor = reader.optional_number("cluster_factor", 1, least_ratio, most_factor);
  launch.sharpness = reader.optional_number("sharpness", 4, 1, 100);
  launch.head_share = reader.optional_number("head_share", 0, 0, most_factor);
  launch.embedding_share = reader.optional_number("embedding_share", 0, 0, most_factor);
  profile.sources.merge(read_sources(reader, "launch/"));
  reader.reject_unknown_keys();
}

void read_communication(ObjectReader& reader, SoftwareProfile& profile) {
  profile.in_node_collective_slowdown =
      reader.optional_number("in_node_collective_slowdown", 1, 1, most_factor);
  profile.overlap_backward_tensor_collectives =
      reader.optional_bool("overlap_backward_tensor_collectives", true);
  profile.pipeline_send = reader.optional_enum<PipelineSend>(
      "pipeline_send", PipelineSend::eager,
      {{"eager", PipelineSend::eager}, {"blocking_pairs", PipelineSend::blocking_pairs}});
  profile.scatter_pipeline_messages = reader.optional_bool("scatter_pipeline_messages", true);
  profile.gather_scattered_messages = reader.optional_bool("gather_scattered_messages", false);
  const std::vector<std::pair<std::string, GradientType>> types = {
      {"fp16", GradientType::fp16}, {"bf16", GradientType::bf16}, {"fp32", GradientType::fp32}};
  profile.gradient_type =
      reader.optional_enum<GradientType>("gradient_type", GradientType::fp32, types);
  if (reader.take("embedding_gradient_type") != nullptr)
    profile.embedding_gradient_type =
        reader.required_enum<GradientType>("embedding_gradient_type", types);
  profile.exposed_gather_factor =
      reader.optional_number("exposed_gather_factor", 0, 0, most_factor);
}

std::optional<double> optional_ratio(ObjectReader& reader, std::string_view key) {
  if (reader.take(key) == nullptr) return std::nullopt;
  return reader.required_number(key, least_ratio, 1);
}

void read_compute(ObjectReader& reader, SoftwareProfile& profile) {
  profile.compute_efficiency =
      reader.optional_number("compute_efficiency", 1, least_ratio, most_factor);
  profile.embedding_and_head_as_layers =
      reader.optional_bool("embedding_and_head_as_layers", false);
  profile.gradient_accumulation_bytes =
      reader.optional_number("gradient_accumulation_bytes", 6, 0, most_factor);
  profile.optimizer_bytes = reader.optional_number("optimizer_bytes", 30, 0, most_factor);
  profile.cross_entropy_bytes = reader.optional_number("cross_entropy_bytes", 30, 0, most_factor);
  profile.fused_kernels = reader.optional_bool("fused_kernels", true);
  profile.iteration_overhead =
      optional_quantity<Seconds>(reader, "iteration_overhead", "2 ms", {"0 s", "1 h"});
  profile.flash_forward_efficiency = optional_ratio(reader, "flash_forward_efficiency");
  profile.flash_backward_efficiency = optional_ratio(reader, "flash_backward_efficiency");
}

StateBytes read_states(ObjectReader reader, const std::string& prefix, Sources& sources) {
  StateBytes states;
  states.weights = reader.required_number("weights", 0, most_state_bytes);
  states.gradients = reader.required_number("gradients", 0, most_state_bytes);
  states.stale_gradients = reader.optional_number("stale_gradients", 0, 0, most_state_bytes);
  states.optimizer = reader.required_number("optimizer", 0, most_state_bytes);
  states.step_temporary = reader.optional_number("step_temporary", 0, 0, most_state_bytes);
  states.gradients_freed_each_step = reader.optional_bool("gradients_freed_each_step", true);
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return states;
}

void read_memory(ObjectReader reader, SoftwareProfile& profile) {
  profile.states_fp16 =
      read_states(reader.child("states_fp16"), "memory/states_fp16/", profile.sources);
  profile.states_bf16 =
      read_states(reader.child("states_bf16"), "memory/states_bf16/", profile.sources);
  profile.allocator_slack = reader.optional_number("allocator_slack", 1.206, 1, 10);
  profile.fragmentation = reader.optional_number("fragmentation", 1.065, 1, 10);
  profile.fixed_work = optional_quantity<Bytes>(reader, "fixed_work", "46 MiB");
  if (reader.take("extra_context") != nullptr)
    profile.extra_context = required_quantity<Bytes>(reader, "extra_context");
  profile.sources.merge(read_sources(reader, "memory/"));
  reader.reject_unknown_keys();
}

}  // namespace

SoftwareProfile read_software(JsonValue& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  SoftwareProfile profile;
  profile.name = reader.required_string("name");
  read_preamble(reader);
  profile.profiled = reader.optional_bool("profiled", false);
  read_compute(reader, profile);
  read_communication(reader, profile);
  profile.sources = read_sources(reader);
  read_launch(reader.child("launch"), profile);
  read_memory(reader.child("memory"), profile);
  reader.reject_unknown_keys();
  return profile;
}

}  // namespace windtunnel
