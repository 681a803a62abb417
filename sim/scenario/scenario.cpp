#include "scenario/scenario.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/problem.hpp"
#include "platform/platform_json.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

/// The product of the degrees of the `parallel` block; none where it has none, or one that is no degree.
std::optional<std::int64_t> gpus_of_degrees(const JsonValue& written) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::int64_t product = 1;
  bool has_any = false;
  for (const char* degree : {"tensor", "context", "pipeline", "data"}) {
    const JsonValue* const value = find_at(written, std::string("/parallel/") + degree);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_integer()) return std::nullopt;
    const std::int64_t ways = std::get<std::int64_t>(value->content);
    if (ways < 1 || ways > most / product) return std::nullopt;
    product *= ways;
    has_any = true;
  }
  return has_any ? std::optional(product) : std::nullopt;
}

/// The context degree, which no other plan replaces; gpus_of_degrees() must have accepted it.
std::int64_t context_of(const JsonValue& written) {
  const JsonValue* const value = find_at(written, "/parallel/context");
  return value == nullptr || value->is_null() ? 1 : std::get<std::int64_t>(value->content);
}

constexpr std::array kinds{model_files,    platform_files, device_files,
                           software_files, noise_files,    scenario_files};

bool holds_library(const fs::path& folder) {
  return file_type_of(folder / model_files.folder) == fs::file_type::directory &&
         file_type_of(folder / platform_files.folder) == fs::file_type::directory;
}

fs::path library_root() {
  if (const char* given = std::getenv("WINDTUNNEL_DATA"); given != nullptr && *given != '\0') {
    if (holds_library(given)) return given;
    throw EnvironmentError("WINDTUNNEL_DATA is \"" + std::string(given) +
                           "\", which holds no folders models/ and platforms/");
  }
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = executable.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (holds_library(folder)) return folder;
    if (folder == folder.parent_path()) break;
  }
  fs::path installed = executable.parent_path().parent_path() / "share" / "windtunnel";
  if (holds_library(installed)) return installed;
  throw EnvironmentError("no folder with models/ and platforms/ above the program or in " +
                         installed.string() +
                         "; set WINDTUNNEL_DATA to the folder that holds them");
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
  constexpr std::array<std::int64_t, 10> pipeline{1, 2, 3, 4, 5, 6, 8, 10, 16, 32};
  for (const std::int64_t stages : pipeline)
    for (const std::int64_t ways : tensor) {
      JsonValue data;
      if (gpus) {
        const std::int64_t of_replica = ways * stages * context_of(written);
        if (*gpus % of_replica != 0) continue;
        data = JsonValue(*gpus / of_replica);
      }
      try {
        return read({{"/training/micro_batch", JsonValue(std::int64_t{1})},
                     {"/parallel/tensor", JsonValue(ways)},
                     {"/parallel/pipeline", JsonValue(stages)},
                     {"/parallel/data", data},
                     {"/parallel/stage_layers", JsonValue()}});
      } catch (const InputError&) {
        continue;
      }
    }
  throw *own;
}

ClusterShape first_nodes(const Platform& platform, int nodes) {
  const int available = platform.available_nodes();
  const auto used = static_cast<std::size_t>(available == 0 ? nodes : std::min(nodes, available));
  ClusterShape cluster;
  for (const NodeType& type : platform.node_types) {
    const std::size_t left = used - cluster.gpus_by_node.size();
    cluster.gpus_by_node.insert(
        cluster.gpus_by_node.end(),
        type.count == 0 ? left : std::min(left, static_cast<std::size_t>(type.count)), type.gpus);
  }
  return cluster;
}

std::vector<NodeType> types_of_nodes(const Platform& platform, int nodes) {
  const auto used = static_cast<std::size_t>(nodes);
  std::vector<NodeType> types;
  types.reserve(used);
  for (const NodeType& type : platform.node_types) {
    const std::size_t left = used - types.size();
    NodeType bare = type;
    bare.device.sources.clear();
    if (bare.device.codecs) bare.device.codecs->sources.clear();
    types.insert(types.end(),
                 type.count == 0 ? left : std::min(left, static_cast<std::size_t>(type.count)),
                 bare);
  }
  WT_ENSURE(types.size() == used);
  return types;
}

int most_nodes(const Platform& platform) {
  const int most = platform.num_nodes(most_nodes_in_use);
  const FabricKind& kind = *platform.fabric.kind;
  return kind.most_nodes ? std::min(most, kind.most_nodes(platform).value_or(most)) : most;
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

std::optional<int> nodes_needed(const Platform& platform, std::int64_t ranks) {
  std::int64_t nodes = 0;
  for (const NodeType& type : platform.node_types) {
    if (type.gpus == 0) continue;  // not known
    const std::int64_t most = most_nodes_in_use - nodes;
    const std::int64_t count = type.count == 0 ? most : std::min<std::int64_t>(type.count, most);
    if (ranks <= count * type.gpus)
      return static_cast<int>(nodes +
                              std::max<std::int64_t>(1, (ranks + type.gpus - 1) / type.gpus));
    nodes += count;
    ranks -= count * type.gpus;
  }
  return std::nullopt;
}

int total_gpus(const ClusterShape& cluster) {
  return std::accumulate(cluster.gpus_by_node.begin(), cluster.gpus_by_node.end(), 0);
}

std::vector<std::string> absent_node_warnings(const Platform& platform, int nodes) {
  std::vector<std::string> warnings;
  const auto number = [&](int node) { return platform.in_cluster(NodeId(node)).index(); };
  const auto warn = [&](const char* key, NodeId node) {
    if (platform.has_node(node, nodes)) return;
    std::string warning = std::string(key) + " of node " + std::to_string(node.index()) +
                          " change nothing: the job has nodes " + std::to_string(number(0)) +
                          " to " + std::to_string(number(nodes - 1));
    if (std::ranges::find(warnings, warning) == warnings.end())
      warnings.push_back(std::move(warning));
  };
  const Platform& cluster = platform.cluster ? *platform.cluster : platform;
  for (const NicFault& fault : cluster.faults) warn("faults", fault.node);
  for (const LinkOverride& link : cluster.link_overrides) {
    const auto [first, last] = std::minmax(link.from, link.to);
    warn("link_overrides", platform.has_node(last, nodes) ? first : last);
  }
  return warnings;
}

std::string gpus_text(const ClusterShape& cluster) {
  const auto& gpus = cluster.gpus_by_node;
  const std::string nodes = std::to_string(gpus.size()) + (gpus.size() == 1 ? " node" : " nodes");
  const std::string total = std::to_string(total_gpus(cluster)) + " GPUs";
  const bool equal = std::ranges::adjacent_find(gpus, std::not_equal_to<>()) == gpus.end();
  if (gpus.empty() || !equal) return nodes + " with " + total;
  return nodes + " * " + std::to_string(gpus.front()) + " = " + total;
}

Library Library::find() { return Library{library_root()}; }

std::vector<std::string> Library::names(const std::string& kind) const {
  const auto found =
      std::ranges::find_if(kinds, [&](const LibraryKind& k) { return kind == k.name; });
  if (found == kinds.end()) return {};
  std::vector<std::string> names;
  const fs::path folder = root / found->folder;
  std::error_code error;
  const auto expect_readable = [&error](const fs::path& path) {
    const bool leads_nowhere = error == std::errc::no_such_file_or_directory ||
                               error == std::errc::too_many_symbolic_link_levels;
    if (error && !leads_nowhere)
      throw EnvironmentError("cannot read " + path.string() + ": " + error.message());
  };
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    if (entry->is_regular_file(error)) names.push_back(entry->path().stem().string());
    expect_readable(entry->path());
    error.clear();  // a link to nothing
  }
  expect_readable(folder);
  std::ranges::sort(names);
  return names;
}

fs::path library_file(const Library& library, const LibraryKind& kind, const std::string& name) {
  return library.root / kind.folder / (name + ".json");
}

std::string suggest_name(const Library& library, const LibraryKind& kind, const std::string& name) {
  constexpr std::size_t most_listed = 12;
  const std::vector<std::string> names = library.names(kind.name);
  if (const std::string nearest = closest_match(name, names); !nearest.empty())
    return "did you mean \"" + nearest + "\"?";
  if (names.empty()) return "there is none in " + (library.root / kind.folder).string();
  if (names.size() > most_listed)
    return std::string("windtunnel list ") + kind.name + " shows them";
  std::string list = "there is";
  for (const std::string& known : names) list += (known == names.front() ? " " : ", ") + known;
  return list;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

std::string absolute_if_path(const std::string& name) {
  return looks_like_path(name) ? fs::absolute(name).lexically_normal().string() : name;
}

fs::path path_for_people(const fs::path& path) {
  std::error_code error;
  const fs::path current = fs::current_path(error);
  if (error || !path.is_absolute()) return path;
  const fs::path relative = path.lexically_relative(current);
  return relative.empty() || *relative.begin() == ".." ? path : relative;
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
