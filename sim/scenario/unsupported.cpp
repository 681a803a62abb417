#include <string>

#include "platform/platform_json.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

/// The first device in use whose rate of the chosen fused attention is not known; null where there is none.
const Device* device_without_flash(const Scenario& scenario) {
  const Training& training = scenario.plan.training;
  if (training.attention != Attention::flash) return nullptr;
  for (const NodeType& node : scenario.nodes)
    if (!scenario.software.knows_attention(node.device, training.attention_kernel,
                                           training.precision))
      return &node.device;
  return nullptr;
}

/// The kernels whose rates are known there: "cudnn, fp8".
std::string known_kernels(const Scenario& scenario, const Device& device) {
  const Precision precision = scenario.plan.training.precision;
  std::string names;
  for (const auto& [name, kernel] : all_names<FlashKernel>())
    if (scenario.software.knows_attention(device, kernel, precision) &&
        (kernel != FlashKernel::fp8 || is_quantized(precision)))
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

Problems unsupported_requests(const Scenario& scenario, JsonValue& tree,
                              const ReadOptions& options) {
  Problems refusals;
  const auto refuse = [&](const std::string& pointer, const std::string& what,
                          const std::string& suggestion = {}) {
    const JsonValue* value = find_at(tree, pointer);
    refusals.add({value == nullptr ? Origin{} : value->origin, pointer, what, suggestion});
  };
  if (scenario.placement_request == PlacementRequest::search &&
      options.left != LeftToCaller::neighbours_and_placement)
    refuse("/parallel/placement",
           "a placement is searched by run, show, explain and rank only, not where many scenarios "
           "are simulated");
  if (!scenario.neighbour_jobs.empty() && options.left == LeftToCaller::nothing)
    refuse("/neighbours",
           "a second job is simulated by run, show, explain, rank, compare and job only, not where "
           "many scenarios are simulated",
           "write what it sends: {link, rate, busy}");
  const Parallel& parallel = scenario.plan.parallel;
  if (scenario.placement_request == PlacementRequest::search && parallel.gathers_in_passes() &&
      parallel.replicas() > 1 && !unevenness(scenario.platform, scenario.plan.num_nodes).empty())
    refuse("/parallel/placement",
           "a placement is not searched for zero_stage 3: the search does not weigh gathers "
           "yet",
           "leave placement out, or give a permutation of nodes");
  if (scenario.placement_request == PlacementRequest::search && parallel.zero_stage < 3 &&
      (parallel.zero_group > 0 || scenario.plan.broadcasts_parameters()))
    refuse("/parallel/placement",
           parallel.zero_group > 0
               ? "a placement is not searched with a zero_group: the search knows one group "
                 "that reduces gradients"
               : "a placement is not searched where owners broadcast parameters "
                 "(broadcast_tensors)",
           "leave placement out, or give a permutation of nodes");
  if (parallel.schedule->is_both_ways()) {
    const std::string of = " under schedule " + parallel.schedule->name +
                           ", where two stages hold each part of the model";
    if (scenario.placement_request == PlacementRequest::search)
      refuse("/parallel/placement", "a placement is not searched" + of,
             "leave placement out, or give a permutation of nodes");
    if (scenario.plan.compression.data_gradients)
      refuse("/compression/data_gradients", "gradients are not compressed" + of,
             "leave data_gradients out");
  }
  if (const Device* device = device_without_flash(scenario)) {
    const Training& training = scenario.plan.training;
    const bool is_half = element_size(training.precision) == element_size(Precision::bf16);
    const std::string known = known_kernels(scenario, *device);
    if (!is_half)
      refuse("/training/precision",
             std::string("flash attention computes in 16 bits or fewer, but precision is ") +
                 name_of(training.precision),
             "write \"bf16\" or \"fp16\", or attention \"standard\"");
    else if (known.empty())
      refuse("/training/attention",
             "neither device \"" + device->name + "\" nor software profile \"" +
                 scenario.software.name +
                 "\" knows the rate of flash attention, so it is not simulated with them");
    else
      refuse("/training/attention_kernel",
             std::string("neither device \"") + device->name + "\" nor software profile \"" +
                 scenario.software.name + "\" knows the rate of attention kernel " +
                 name_of(training.attention_kernel),
             "they know " + known);
  }
  return refusals;
}

}  // namespace windtunnel
