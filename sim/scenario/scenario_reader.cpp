#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

#include "core/file_io.hpp"
#include "core/object_reader.hpp"
#include "memory/memory_correction_json.hpp"
#include "platform/device_json.hpp"
#include "platform/platform_json.hpp"
#include "platform/software_json.hpp"
#include "scenario/balanced_stages.hpp"
#include "scenario/cluster_shape.hpp"
#include "scenario/compression_check.hpp"
#include "scenario/compression_json.hpp"
#include "scenario/library_files.hpp"
#include "scenario/overrides.hpp"
#include "scenario/parallel_json.hpp"
#include "scenario/resolved_text.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"
#include "scenario/sweep_json.hpp"
#include "scenario/training_json.hpp"
#include "scenario/unsupported.hpp"
#include "schedule/exchange_check.hpp"
#include "workload/model_json.hpp"

namespace windtunnel {
namespace fs = std::filesystem;
namespace {

constexpr int scenario_version = 1;
constexpr const char* default_software = "megatron-lm-2021";

enum class VersionKey { required, optional };

/// Reads one scenario: merges its files, reads every block, and checks the whole.
class ScenarioReader {
 public:
  ScenarioReader(const Library& library, fs::path folder, const ReadOptions& options)
      : files_(library, std::move(folder), problems_), options_(&options) {}

  Problems& problems() { return problems_; }

  Scenario read(JsonValue tree, const std::string& fallback_name, VersionKey version) {
    merge_files(std::move(tree));
    scenario_.seed = options_->seed;
    {
      ObjectReader root(tree_, {}, problems_);
      read_label(root, fallback_name, version);
      read_named_parts(root);
      read_plan(root);
      read_extras(root);
      root.reject_unknown_keys();
    }
    problems_.throw_if_any();
    if (const Problems refused = unsupported_requests(scenario_, tree_, *options_);
        !refused.empty())
      throw UnsupportedError(refused.all());
    if (balances_) balance_stages();
    make_self_contained(tree_);
    scenario_.hash = resolved_hash(hashed_tree());
    scenario_.resolved = std::move(tree_);
    return std::move(scenario_);
  }

  /// The tree of the whole scenario, nothing read from it yet.
  JsonValue merge(JsonValue tree, const std::string& fallback_name) {
    merge_files(std::move(tree));
    {
      ObjectReader root(tree_, {}, problems_);
      read_label(root, fallback_name, VersionKey::required);
    }
    problems_.throw_if_any();
    return std::move(tree_);
  }

 private:
  /// What the hash is of: a placement that is searched also depends on the seed.
  JsonValue hashed_tree() const {
    JsonValue tree = tree_;
    if (scenario_.placement_request == PlacementRequest::search)
      set_at(tree, "/parallel/placement",
             JsonValue("search with seed " + std::to_string(scenario_.seed)));
    return tree;
  }

  void merge_files(JsonValue tree) {
    tree_ = files_.merge_extended(std::move(tree));
    apply_overrides();
  }

  void apply_overrides() {
    const auto name_software = [&] {
      if (tree_.find("software") == nullptr || tree_.find("software")->is_null())
        tree_.set("software", JsonValue(std::string(default_software)));
    };
    name_software();
    for (const auto& [pointer, value] : options_->overrides)
      apply_override(tree_, pointer, value, files_, problems_);
    for (const auto& [pointer, value] : options_->values)
      apply_value(tree_, pointer, value, files_, problems_);
    name_software();
    expand_names(tree_, files_);
  }

  void read_label(ObjectReader& root, const std::string& fallback_name, VersionKey version) {
    root.take("$schema");
    root.take("extends");
    scenario_.name = root.optional_string("name", fallback_name);
    if (version == VersionKey::optional)
      root.set_default("version", std::int64_t{scenario_version});
    const JsonValue* value = root.require("version", std::to_string(scenario_version));
    if (value == nullptr) return;
    const auto* number = std::get_if<std::int64_t>(&value->content);
    if (number == nullptr || *number != scenario_version)
      root.problem("version",
                   "version is " + text_for_message(*value) + ", and this program reads version 1",
                   number != nullptr && *number > scenario_version
                       ? "the file may be for a newer windtunnel"
                       : "write 1");
  }

  void read_named_parts(ObjectReader& root) {
    const auto part = [&](const char* key, const LibraryKind& kind) -> JsonValue* {
      JsonValue* value =
          root.require(key, std::string("the name of a ") + kind.noun + ", a path, or an object");
      if (value == nullptr || !files_.expand(*value, kind, pointer_join({}, key))) return nullptr;
      if (value->is_object()) return value;
      root.problem(
          key, std::string(key) + " is " + text_for_message(*value) + ", which is no " + kind.noun,
          std::string("write the name of a ") + kind.noun + ", a path, or an object");
      return nullptr;
    };
    if (JsonValue* value = part("model", model_files))
      scenario_.model = read_transformer(*value, "/model", problems_);
    if (JsonValue* value = part("platform", platform_files))
      scenario_.platform = read_platform(*value, "/platform", problems_, device_loader());
    if (JsonValue* value = part("software", software_files))
      scenario_.software = read_software(*value, "/software", problems_);
  }

  /// Devices are in place of their names already; a name that is left could not be found.
  static DeviceLoader device_loader() {
    return [](const std::string&, const Origin&, const std::string&, Problems&) {
      return std::optional<Device>();
    };
  }

  void read_plan(ObjectReader& root) {
    std::optional<int> nodes;
    if (root.take("nodes") != nullptr) nodes = root.required_int("nodes", 1, most_nodes_in_use);
    Training training;
    if (root.require("training", "an object with global_batch and micro_batch") != nullptr)
      training = read_training(root.child("training"), scenario_.software);
    ObjectReader reader = root.child("parallel");
    std::optional<GivenGpus> gpus;
    if (nodes && is_trusted()) {
      const ClusterShape given = given_nodes(root, *nodes);
      gpus = GivenGpus{total_gpus(given), gpus_text(given)};
    }
    const Parallel parallel = read_parallel(reader, scenario_.software, gpus);
    reader.take("placement");
    reader.reject_unknown_keys();
    if (is_trusted() && check_magnitudes(reader, training, parallel))
      finish_plan(root, reader, training, parallel, nodes);
  }

  static bool asks_for_search(ObjectReader& reader) {
    const JsonValue* placement = reader.take("placement");
    return placement != nullptr && placement->is_string() && placement->string() == "search";
  }

  /// The cluster that "nodes" asks for; a problem when the platform has fewer.
  ClusterShape given_nodes(ObjectReader& root, int nodes) {
    const int available = scenario_.platform.available_nodes();
    if (available != 0 && nodes > available)
      root.problem("nodes", "nodes is " + std::to_string(nodes) + ", but platform \"" +
                                scenario_.platform.name + "\" has " + std::to_string(available));
    return first_nodes(scenario_.platform, nodes);
  }

  /// Nothing is wrong so far that makes further checks pointless: what was read is what was meant.
  bool is_trusted() const {
    return std::all_of(problems_.all().begin(), problems_.all().end(), [](const Problem& problem) {
      return problem.message.starts_with("unknown key") ||
             problem.message.starts_with("duplicate key");
    });
  }

  /// Lays the plan out.
  void finish_plan(ObjectReader& root, ObjectReader& reader, const Training& training,
                   Parallel parallel, std::optional<int> nodes) {
    const int ranks = parallel.tensor * parallel.pipeline * parallel.data;
    const std::optional<int> used = nodes ? nodes : nodes_needed(scenario_.platform, ranks);
    if (!used) {
      reader.problem("", product_text(parallel) + ", but platform \"" + scenario_.platform.name +
                             "\" has only " +
                             gpus_text(first_nodes(scenario_.platform, most_nodes_in_use)));
      return;
    }
    root.set_default("nodes", std::int64_t{*used});
    ClusterShape cluster = first_nodes(scenario_.platform, *used);
    cluster.nodes_given = nodes.has_value();
    parallel.placement = read_placement(reader, ranks, cluster);
    scenario_.placement_request =
        asks_for_search(reader) ? PlacementRequest::search : PlacementRequest::as_planned;
    balances_ = asks_for_balance(reader);
    if (balances_) parallel.stage_layers = layers_before_balance(reader, parallel.pipeline);
    if (!is_trusted()) return;
    auto made = make_plan(scenario_.model, training, parallel, cluster, scenario_.software);
    if (const auto* rejections = std::get_if<std::vector<PlanRejection>>(&made)) {
      for (const PlanRejection& rejection : *rejections)
        problems_.add(
            {origin_near(rejection.key), rejection.key, rejection.message, rejection.suggestion});
      return;
    }
    scenario_.plan = std::move(std::get<Plan>(made));
    check_exchanges();
    JsonValue::Array layers;
    for (const int count : scenario_.plan.stage_layers) layers.emplace_back(std::int64_t{count});
    reader.set_default("stage_layers", std::move(layers));
    for (int node = 0; node < *used; ++node)
      scenario_.nodes.push_back(scenario_.platform.type_of(NodeId{node}));
    check_precision(training.precision);
  }

  /// Any split that adds up, so that the plan can be laid out.
  std::vector<int> layers_before_balance(ObjectReader& reader, int stages) const {
    constexpr double most_steps = 1e9;  // of the search; a second
    const double layers = scenario_.model.layers;
    if (layers * layers * stages > most_steps)
      reader.problem("stage_layers",
                     std::to_string(scenario_.model.layers) + " layers on " +
                         std::to_string(stages) + " stages are too many to balance",
                     "write the list, or leave stage_layers out");
    std::vector<int> all_on_the_first(static_cast<std::size_t>(stages), 0);
    all_on_the_first.front() = scenario_.model.layers;
    return all_on_the_first;
  }

  /// Puts the layers in place of "balanced", in the plan and in the resolved scenario, of which the rest is known to be sound.
  void balance_stages() {
    Plan& plan = scenario_.plan;
    plan.stage_layers =
        balanced_stage_layers({&scenario_.model, &scenario_.platform, &scenario_.software, &plan});
    plan.parallel.stage_layers = plan.stage_layers;
    JsonValue::Array layers;
    for (const int count : plan.stage_layers) layers.emplace_back(std::int64_t{count});
    find_at(tree_, "/parallel/stage_layers")->content = std::move(layers);
  }

  /// A schedule that the user wrote must also finish when both ends of a message wait for each other.
  void check_exchanges() {
    const Parallel& parallel = scenario_.plan.parallel;
    if (!parallel.orders || parallel.pipeline_send != PipelineSend::blocking_pairs) return;
    const auto deadlock = exchange_deadlock(*parallel.orders);
    if (!deadlock) return;
    problems_.add(
        {origin_near("/parallel/schedule"), "/parallel/schedule",
         "the schedule never finishes with pipeline_send \"blocking_pairs\": " + *deadlock,
         R"(write "pipeline_send": "eager")"});
  }

  /// Every GPU in use must have a rate for the precision.
  void check_precision(Precision precision) {
    for (const NodeType& node : scenario_.nodes) {
      if (node.device.peak.count(precision) == 1) continue;
      std::string known;
      for (const auto& [other, rate] : node.device.peak)
        known += (known.empty() ? "" : ", ") + std::string(name_of(other));
      problems_.add(
          {origin_near("/training/precision"), "/training/precision",
           std::string("device ") + node.device.name + " has no " + name_of(precision) + " rate",
           "it has " + known});
      return;
    }
  }

  /// Where the value at `pointer` was written, or the nearest thing around it that was.
  Origin origin_near(std::string pointer) {
    for (;; pointer.erase(pointer.rfind('/'))) {
      const JsonValue* value = find_at(tree_, pointer);
      if (value != nullptr && value->origin.source) return value->origin;
      if (pointer.empty()) return tree_.origin;
    }
  }

  void read_extras(ObjectReader& root) {
    if (auto compression = root.optional_child("compression"))
      scenario_.plan.compression = read_compression(*compression);
    if (!is_trusted()) return check_others(root);
    check_compression(scenario_, [this](const std::string& pointer, const std::string& message,
                                        const std::string& suggestion) {
      problems_.add({origin_near(pointer), pointer, message, suggestion});
    });
    check_others(root);
  }

  void check_others(ObjectReader& root) {
    if (auto sweep = root.optional_child("sweep")) check_sweep(*sweep);
    if (auto search = root.optional_child("search")) scenario_.search = read_search(*search);
    if (root.take("memory_correction") != nullptr) read_correction(root);
  }

  /// The file stands in place of its path. It holds for the stack it was trained on.
  void read_correction(ObjectReader& root) {
    JsonValue& value = *root.take("memory_correction");
    if (!value.is_object()) {
      if (!value.is_string() || !looks_like_path(value.string()))
        root.problem("memory_correction",
                     "memory_correction is " + text_for_message(value) + ", which is no path",
                     "write the path of a file that calibrate --memory wrote");
      return;
    }
    auto correction = read_memory_correction(value, "/memory_correction", problems_);
    if (correction.software != scenario_.software.name && is_trusted())
      root.problem("memory_correction",
                   "memory_correction was trained on runs of " + correction.software +
                       ", and software is " + scenario_.software.name,
                   "leave it out, or train one on runs of this stack");
    scenario_.memory_correction = std::make_shared<const MemoryCorrection>(std::move(correction));
  }

  Problems problems_;
  ScenarioFiles files_;
  const ReadOptions* options_;
  JsonValue tree_;
  Scenario scenario_;
  bool balances_ = false;  ///< "stage_layers" are to be found
};

void require_object(const JsonValue& value, Problems& problems) {
  if (!value.is_object() && problems.empty())
    problems.add({value.origin,
                  {},
                  "a scenario is an object, this is " + value.kind_name(),
                  "write { ... }"});
  if (!value.is_object()) problems.throw_if_any();
}

}  // namespace

JsonValue merged_scenario(const fs::path& file, const Library& library,
                          const ReadOptions& options) {
  ScenarioReader reader(library, file.parent_path(), options);
  JsonValue value = parse_json(read_source_or_stdin(file), reader.problems());
  require_object(value, reader.problems());
  return reader.merge(std::move(value), name_of_source(file));
}

Scenario read_scenario(const fs::path& file, const Library& library, const ReadOptions& options) {
  ScenarioReader reader(library, file.parent_path(), options);
  JsonValue value = parse_json(read_source_or_stdin(file), reader.problems());
  require_object(value, reader.problems());
  return reader.read(std::move(value), name_of_source(file), VersionKey::required);
}

Scenario read_scenario(JsonValue value, const fs::path& folder, const Library& library,
                       const ReadOptions& options) {
  ScenarioReader reader(library, folder, options);
  require_object(value, reader.problems());
  return reader.read(std::move(value), "scenario", VersionKey::optional);
}

}  // namespace windtunnel
