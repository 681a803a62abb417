#include "scenario/scenario.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/problem.hpp"
#include "platform/platform_json.hpp"

namespace windtunnel {
namespace {

/// The product of the degrees of the `parallel` block; none where it has none, or one that is no degree.
std::optional<std::int64_t> gpus_of_degrees(const JsonValue& written) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::int64_t product = 1;
  bool has_any = false;
  for (const char* key : {"tensor", "context", "pipeline", "data"}) {
    const JsonValue* const value = find_at(written, std::string("/parallel/") + key);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_integer()) return std::nullopt;
    const std::int64_t degree = std::get<std::int64_t>(value->content);
    if (degree < 1 || degree > most / product) return std::nullopt;
    product *= degree;
    has_any = true;
  }
  return has_any ? std::optional(product) : std::nullopt;
}

/// The context degree, which no other plan replaces; gpus_of_degrees() must have accepted it.
std::int64_t context_of(const JsonValue& written) {
  const JsonValue* const value = find_at(written, "/parallel/context");
  return value == nullptr || value->is_null() ? 1 : std::get<std::int64_t>(value->content);
}

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

Scenario read_with_any_plan(const JsonValue& written, const ReadWithValues& read) {
  std::optional<InputError> own;
  try {
    return read({});
  } catch (const InputError& error) {
    const auto is_of_plan = [](const Problem& problem) {
      return problem.pointer.starts_with("/parallel") ||
             problem.pointer == "/training/global_batch" ||
             problem.pointer == "/training/micro_batch";
    };
    if (!std::ranges::all_of(error.problems(), is_of_plan)) throw;
    own = error;
  }
  const JsonValue* const nodes = written.find("nodes");
  const bool leaves_data = nodes != nullptr && !nodes->is_null();
  const std::optional<std::int64_t> gpus = leaves_data ? std::nullopt : gpus_of_degrees(written);
  if (!leaves_data && !gpus) throw *own;
  constexpr std::array<std::int64_t, 4> tensor{8, 4, 2, 1};
  constexpr std::array<std::int64_t, 21> pipeline{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                                  12, 13, 14, 15, 16, 18, 20, 24, 30, 32};
  for (const std::int64_t stages : pipeline)
    for (const std::int64_t degree : tensor) {
      JsonValue data;
      if (gpus) {
        const std::int64_t of_replica = degree * stages * context_of(written);
        if (*gpus % of_replica != 0) continue;
        data = JsonValue(*gpus / of_replica);
      }
      try {
        return read({{"/training/micro_batch", JsonValue(std::int64_t{1})},
                     {"/parallel/tensor", JsonValue(degree)},
                     {"/parallel/pipeline", JsonValue(stages)},
                     {"/parallel/data", data},
                     {"/parallel/stage_layers", JsonValue()}});
      } catch (const InputError&) {
        continue;
      }
    }
  throw *own;
}

std::vector<PlanRejection> move_to_nodes(Scenario& scenario, const std::vector<NodeId>& nodes) {
  const auto num_nodes = static_cast<int>(nodes.size());
  Platform platform = on_nodes(scenario.platform, nodes);
  ClusterShape cluster = first_nodes(platform, num_nodes);
  cluster.nodes_given = true;
  auto made = make_plan(scenario.model, scenario.plan.training, scenario.plan.parallel, cluster,
                        scenario.software, scenario.plan.compression);
  if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&made))
    return std::move(*rejections);
  scenario.nodes = types_of_nodes(platform, num_nodes);
  scenario.platform = std::move(platform);
  scenario.plan = std::get<Plan>(std::move(made));
  return {};
}

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
           "a second job is simulated by run, show, explain, rank, compare and job only, not in "
           "sweeps, measurement sets or job's clusters",
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
  if (parallel.schedule->is_bidirectional()) {
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

SearchLists supported_values(const Scenario& scenario) {
  const JsonValue* const supports = find_at(scenario.resolved, "/software/supports");
  if (supports == nullptr) return {};
  JsonValue copy = *supports;
  Problems problems;
  return read_supported(ObjectReader(copy, "/software/supports", problems));
}

}  // namespace windtunnel
