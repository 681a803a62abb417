#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/object_reader.hpp"
#include "memory/memory_correction.hpp"
#include "platform/platform_json.hpp"
#include "platform/software_json.hpp"
#include "scenario/balanced_stages.hpp"
#include "scenario/compression_json.hpp"
#include "scenario/job_json.hpp"
#include "scenario/key_table.hpp"
#include "scenario/library_files.hpp"
#include "scenario/noise_json.hpp"
#include "scenario/overrides.hpp"
#include "scenario/plan_reader.hpp"
#include "scenario/resolved_text.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"
#include "scenario/scenario_template.hpp"
#include "scenario/slow_part_check.hpp"
#include "scenario/supported_values.hpp"
#include "scenario/sweep_json.hpp"
#include "scenario/unsupported.hpp"
#include "workload/model_json.hpp"

namespace windtunnel {
namespace fs = std::filesystem;
namespace {

constexpr int scenario_version = 1;
constexpr const char* default_software = "megatron-lm-2021";

/// Of a scenario, in the order in which messages list them.
constexpr std::array keys{"$schema",  "extends",           "name",        "version",
                          "model",    "platform",          "software",    "nodes",
                          "training", "parallel",          "compression", "sweep",
                          "search",   "memory_correction", "job",         "noise"};

enum class VersionKey { required, optional };

/// What was read before from values that are the same again; null: not read.
struct KnownParts {
  const Transformer* model = nullptr;
  const Platform* platform = nullptr;
  const Platform* devices = nullptr;  ///< a platform that has the same ones
  const SoftwareProfile* software = nullptr;
};

/// Devices are in place of their names already; a name that is left could not be found.
std::optional<Device> no_device(const std::string&, const Origin&, const std::string&, Problems&) {
  return std::nullopt;
}

/// Reads one scenario: merges its files, reads every block, and checks the whole.
class ScenarioReader {
 public:
  ScenarioReader(const Library& library, fs::path folder, const ReadOptions& options,
                 KnownParts known = {})
      : files_(library, std::move(folder), problems_), options_(&options), known_(known) {}

  Problems& problems() { return problems_; }

  Scenario read(JsonValue tree, const std::string& fallback_name, VersionKey version) {
    merge_files(std::move(tree));
    scenario_.seed = options_->seed;
    bool balances = false;  // the split into stages is to be found
    {
      ObjectReader root(tree_, {}, problems_);
      for (const char* key : keys) root.take(key);
      reject_misplaced_keys(root);
      root.reject_unknown_keys();  // first, since a misspelt block is missed by every check
      read_label(root, fallback_name, version);
      read_named_parts(root);
      PlanReader plan(root, scenario_);
      read_extras(root);
      plan.check();
      check_noise();
      balances = plan.balances();
    }
    problems_.throw_if_any();
    if (const Problems refused = unsupported_requests(scenario_, tree_, *options_);
        !refused.empty())
      throw UnsupportedError(refused.in_order());
    if (balances) balance_stages();
    make_self_contained(tree_);
    scenario_.hash = hash();
    scenario_.resolved = std::move(tree_);
    return std::move(scenario_);
  }

  /// The same, with whatever problems there are.
  JsonValue merge_only(JsonValue tree) {
    merge_files(std::move(tree));
    return std::move(tree_);
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
  /// A placement that is searched also depends on the seed.
  std::string hash() const {
    if (scenario_.placement_request != PlacementRequest::search) return resolved_hash(tree_);
    JsonValue tree = tree_;
    set_at(tree, "/parallel/placement",
           JsonValue("search with seed " + std::to_string(scenario_.seed)));
    return resolved_hash(tree);
  }

  void merge_files(JsonValue tree) {
    if (tree.origin.source) problems_.begin_source(*tree.origin.source);
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
    if (known_.model != nullptr)
      scenario_.model = *known_.model;
    else if (JsonValue* value = part("model", model_files))
      scenario_.model = read_transformer(*value, "/model", problems_);
    if (known_.platform != nullptr)
      scenario_.platform = *known_.platform;
    else if (JsonValue* value = part("platform", platform_files))
      scenario_.platform = read_platform(*value, "/platform", problems_, no_device, known_.devices);
    if (known_.software != nullptr)
      scenario_.software = *known_.software;
    else if (JsonValue* value = part("software", software_files))
      scenario_.software = read_software(*value, "/software", problems_);
    settle_attention();
  }

  /// A stack's own choice of fused attention holds for GPUs whose rate of it is known.
  void settle_attention() {
    SoftwareProfile& stack = scenario_.software;
    const auto known = [&](FlashKernel kernel) {
      return std::all_of(scenario_.platform.node_types.begin(), scenario_.platform.node_types.end(),
                         [&](const NodeType& type) {
                           return stack.knows_attention(type.device, kernel, Precision::bf16);
                         });
    };
    if (!known(stack.attention_kernel) && known(FlashKernel::cudnn))
      stack.attention_kernel = FlashKernel::cudnn;
  }

  /// Puts the layers in place of "balanced", in the plan and in the resolved scenario, of which the rest is known to be sound.
  void balance_stages() {
    Plan& plan = scenario_.plan;
    plan.stage_layers =
        balanced_stage_layers({&scenario_.model, &scenario_.platform, &scenario_.software, &plan});
    plan.parallel.stage_layers = plan.stage_layers;
    plan.position_layers = plan.parallel.position_layers = {};
    JsonValue::Array layers;
    for (const int count : plan.stage_layers) layers.emplace_back(std::int64_t{count});
    find_at(tree_, "/parallel/stage_layers")->content = std::move(layers);
  }

  void read_extras(ObjectReader& root) {
    if (auto compression = root.optional_child("compression"))
      scenario_.plan.compression = read_compression(*compression);
    if (auto sweep = root.optional_child("sweep")) check_sweep(*sweep);
    if (auto job = root.optional_child("job")) read_job(*job);
    read_noise_block(root);
    if (auto search = root.optional_child("search")) scenario_.search = read_search(*search);
    if (JsonValue* software = root.take("software"); software != nullptr && software->is_object())
      if (JsonValue* supports = software->find("supports"))
        read_supported(ObjectReader(*supports, "/software/supports", problems_));
    if (root.take("memory_correction") != nullptr) read_correction(root);
  }

  /// A name that is left could not be found.
  void read_noise_block(ObjectReader& root) {
    JsonValue* const value = root.take("noise");
    if (value == nullptr || !files_.expand(*value, noise_files, "/noise")) return;
    if (value->is_object())
      noise_ = read_noise(ObjectReader(*value, "/noise", problems_));
    else
      root.problem("noise", "noise is " + text_for_message(*value) + ", which is no noise",
                   "write the name of a noise, a path, or an object");
  }

  void check_noise() {
    if (noise_ && !scenario_.nodes.empty())
      check_slow_parts(*noise_, scenario_.nodes, scenario_.plan, *tree_.find("noise"), problems_);
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
    if (correction.software != scenario_.software.name && problems_.is_sound("/software/name") &&
        problems_.is_sound("/memory_correction/software"))
      root.problem("memory_correction",
                   "memory_correction was trained on runs of " + correction.software +
                       ", and software is " + scenario_.software.name,
                   "leave it out, or train one on runs of this stack");
    scenario_.memory_correction = std::make_shared<const MemoryCorrection>(std::move(correction));
  }

  Problems problems_;
  ScenarioFiles files_;
  const ReadOptions* options_;
  KnownParts known_;
  JsonValue tree_;
  Scenario scenario_;
  std::optional<NoiseBlock> noise_;
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

namespace {

/// Whether a value at `pointer` changes what stands at `part`.
bool changes(const std::string& pointer, const std::string& part) {
  return pointer == part || pointer.empty() || lies_inside(pointer, part) ||
         lies_inside(part, pointer);
}

/// The pointers that options set.
std::vector<std::string> pointers_of(const ReadOptions& options) {
  std::vector<std::string> pointers;
  for (const auto& [pointer, text] : options.overrides) pointers.push_back(pointer);
  for (const auto& [pointer, value] : options.values) pointers.push_back(pointer);
  return pointers;
}

bool change(const std::vector<std::string>& pointers, const std::string& part) {
  return std::any_of(pointers.begin(), pointers.end(),
                     [&](const std::string& pointer) { return changes(pointer, part); });
}

/// Also where another platform is put underneath.
bool change_devices(const std::vector<std::string>& pointers, std::size_t num_node_types) {
  if (change(pointers, "/platform/extends")) return true;
  for (std::size_t i = 0; i < num_node_types; ++i)
    if (change(pointers, "/platform/node_types/" + std::to_string(i) + "/device")) return true;
  return false;
}

}  // namespace

template <class Part, class Reader>
std::optional<ScenarioTemplate::Block<Part>> ScenarioTemplate::read_block(const char* key,
                                                                          Reader reader) const {
  const JsonValue* const found = tree_.find(key);
  if (found == nullptr || !found->is_object()) return std::nullopt;
  Block<Part> block{{}, *found};
  Problems problems;
  block.part = reader(block.resolved, pointer_join({}, key), problems);
  if (!problems.empty()) return std::nullopt;
  return block;
}

ScenarioTemplate::ScenarioTemplate(JsonValue tree, fs::path folder, Library library)
    : tree_(std::move(tree)), folder_(std::move(folder)), library_(std::move(library)) {
  if (!tree_.is_object()) return;
  const ReadOptions as_written;
  ScenarioReader reader(library_, folder_, as_written);
  JsonValue merged = reader.merge_only(tree_);
  if (!reader.problems().empty()) return;
  tree_ = std::move(merged);
  model_ = read_block<Transformer>("model", read_transformer);
  software_ = read_block<SoftwareProfile>("software", read_software);
  platform_ = read_block<Platform>(
      "platform", [](JsonValue& value, const std::string& pointer, Problems& problems) {
        return read_platform(value, pointer, problems, no_device);
      });
  if (platform_) platform_of_known_devices_ = with_devices_resolved(*tree_.find("platform"));
}

JsonValue ScenarioTemplate::with_devices_resolved(const JsonValue& platform) const {
  JsonValue result = platform;
  JsonValue::Array& types = result.find("node_types")->array();
  const JsonValue::Array& resolved = platform_->resolved.find("node_types")->array();
  for (std::size_t i = 0; i < types.size(); ++i)
    *types[i].find("device") = *resolved[i].find("device");
  return result;
}

Scenario ScenarioTemplate::read(const ReadOptions& options) const {
  if (!tree_.is_object()) return read_scenario(tree_, folder_, library_, options);
  const std::vector<std::string> pointers = pointers_of(options);
  KnownParts known;
  const auto known_value = [&](const std::string& key) -> const JsonValue* {
    const auto stays = [&](const char* part) {
      return key == part && !change(pointers, "/" + key);
    };
    if (model_ && stays("model")) {
      known.model = &model_->part;
      return &model_->resolved;
    }
    if (software_ && stays("software")) {
      known.software = &software_->part;
      return &software_->resolved;
    }
    if (!platform_ || key != "platform") return nullptr;
    if (stays("platform")) {
      known.platform = &platform_->part;
      return &platform_->resolved;
    }
    if (change_devices(pointers, platform_->part.node_types.size())) return nullptr;
    known.devices = &platform_->part;
    return &platform_of_known_devices_;
  };
  JsonValue tree(JsonValue::Object{}, tree_.origin);
  for (const JsonValue::Member& member : tree_.object()) {
    const JsonValue* const value = known_value(member.key);
    tree.object().push_back(
        {member.key, member.key_origin, value == nullptr ? member.value : *value});
  }
  return ScenarioReader(library_, folder_, options, known)
      .read(std::move(tree), "scenario", VersionKey::optional);
}

}  // namespace windtunnel
