#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/mapped.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"
#include "cost/codec_cost.hpp"
#include "cost/codec_table.hpp"
#include "memory/memory_correction.hpp"
#include "plan/nvlink_groups.hpp"
#include "plan/plan.hpp"
#include "plan/plan_check.hpp"
#include "platform/platform.hpp"
#include "platform/platform_json.hpp"
#include "platform/software_profile.hpp"
#include "scenario/balanced_layers.hpp"
#include "scenario/job_block.hpp"
#include "scenario/key_table.hpp"
#include "scenario/noise_block.hpp"
#include "scenario/overrides.hpp"
#include "scenario/plan_json.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"
#include "scenario/search_block.hpp"
#include "scenario/sweep_block.hpp"
#include "schedule/schedule_check.hpp"
#include "workload/model_json.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

std::string class_place(const std::string& name) { return "/compression/" + name; }
std::string codec_place(const std::string& name) { return class_place(name) + "/codec"; }

/// "use zfp, mpc, int8 or fixed": the codecs that need no sums.
std::string other_codecs() {
  std::vector<std::string> names;
  for (const Codec* codec : codecs())
    if (!codec->needs_sums()) names.emplace_back(codec->name());
  return "use " + alternatives(names);
}

void check_sums(const std::string& name, const std::optional<Compressor>& c,
                const std::string& what, PlanFindings& findings) {
  if (!c || !c->codec->needs_sums() || !findings.is_sound(codec_place(name))) return;
  findings.reject({codec_place(name),
                   std::string(c->codec->name()) + " cannot compress " + name + ": " + what,
                   other_codecs()});
}

void check_speeds(const std::vector<const NodeType*>& types, const std::string& name,
                  const std::optional<Compressor>& c, PlanFindings& findings) {
  if (!c || !findings.is_sound(class_place(name))) return;
  for (const NodeType* const node : types)
    if (const auto missing = missing_speed(*c, node->device))
      return findings.reject({codec_place(name), *missing, "add it to the device with its source"});
}

/// Rejects everything that the compression block asks for and cannot be:
///  - codecs that send some of the values need sums that leave an error to feed back: gradients, and messages of gradients
///    between stages;
///  - factors are all-reduced, so that every replica needs whole gradients: no ZeRO 2 or 3;
///  - stages that the pipeline does not have;
///  - a codec for which a device in use has no speed.
void check_compression_block(const Compression& c, const Parallel& parallel,
                             const std::vector<const NodeType*>& types, PlanFindings& findings) {
  check_sums("pipeline_forward", c.pipeline_forward, "an activation is used once, whole", findings);
  check_sums("tensor_activations", c.tensor_activations, "an activation is used once, whole",
             findings);
  check_sums("zero_gather", c.zero_gather, "parameters are used whole", findings);
  check_compression(c, parallel, findings);
  for (const auto& [name, codec] : {std::pair{"pipeline_forward", &c.pipeline_forward},
                                    {"pipeline_backward", &c.pipeline_backward},
                                    {"data_gradients", &c.data_gradients},
                                    {"tensor_activations", &c.tensor_activations},
                                    {"zero_gather", &c.zero_gather}})
    check_speeds(types, name, *codec, findings);
}

using namespace plan_keys;

JsonValue::Array values_of(const std::vector<int>& numbers) {
  return mapped(numbers, [](int number) { return JsonValue(std::int64_t{number}); });
}

/// The plan's layers as a file has them: by stage; by part of a bidirectional schedule; by stage and chunk where chunks differ.
JsonValue::Array stage_layers_of(const Plan& plan) {
  const bool by_part = plan.parallel.schedule->is_bidirectional();
  const bool by_chunk = !by_part && !plan.position_layers.empty();
  JsonValue::Array by_stage = values_of(by_part ? plan.position_layers : plan.stage_layers);
  for (std::size_t stage = 0; by_chunk && stage < by_stage.size(); ++stage) {
    JsonValue::Array layers_of_chunks;
    for (int chunk = 0; chunk < plan.parallel.virtual_pipeline; ++chunk)
      layers_of_chunks.emplace_back(std::int64_t{plan.chunk_layers({StageId{stage}, chunk})});
    by_stage[stage].content = std::move(layers_of_chunks);
  }
  return by_stage;
}

std::string node_type_pointer(std::size_t type) {
  return "/platform/node_types/" + std::to_string(type);
}

/// Origin of the value at `pointer`, or of the nearest enclosing value that was written.
Origin origin_near(const JsonValue& tree, std::string pointer) {
  for (;; pointer.erase(pointer.rfind('/'))) {
    const JsonValue* value = find_at(tree, pointer);
    if (value != nullptr && value->origin.source) return value->origin;
    if (pointer.empty()) return tree.origin;
  }
}

Training read_training_of(ObjectReader& root, const SoftwareProfile& software) {
  if (root.require("training", "an object with global_batch and micro_batch") == nullptr) return {};
  ObjectReader reader = root.child("training");
  PlanChoice choice;
  read_keys(reader, choice, software);
  reject_misplaced_keys(reader);
  reader.reject_unknown_keys();
  return choice.training;
}

/// Reads `nodes`, `training` and `parallel`, and lays the plan out. Each block is read by itself first; then come the checks
/// that take several values, from all over the scenario. Such a check is made when those values are what was meant
/// (Problems::is_sound), whatever else is wrong, so that independent mistakes are told at once and none twice.
class PlanReader {
 public:
  /// Reads the blocks of `root`. Model, platform and software of `scenario` have been read.
  PlanReader(ObjectReader& root, Scenario& scenario)
      : root_(&root),
        scenario_(&scenario),
        findings_(root.problems(), root.value()),
        nodes_(root.take("nodes") == nullptr
                   ? std::nullopt
                   : std::optional(root.required_int("nodes", 1, most_nodes_in_use))),
        training_(read_training_of(root, scenario.software)),
        reader_(root.child("parallel")),
        block_(read_parallel(reader_, scenario.software, scenario.model.moe.has_value())),
        asks_for_balance_(asks_for_balance(reader_)) {}

  /// The checks, once the whole scenario has been read, and the plan.
  void check() {
    check_tensor(inputs(), findings_);
    if (!block_.gives_layers) check_even_stages(inputs(), findings_);
    check_pairs(inputs(), findings_);
    check_context(inputs(), findings_);
    check_ranks();
    check_available();
    settle_data();
    const std::optional<ClusterShape> cluster = find_cluster();
    if (cluster) check_product(inputs(), *cluster, findings_);
    check_experts(inputs(), findings_);
    check_recompute(inputs(), findings_);
    check_states(inputs(), findings_);
    check_adapters(inputs(), findings_);
    settle_layers();
    check_samples();
    check_work(inputs(), findings_);
    if (cluster) settle_places(*cluster);
    check_exchanges();
    if (cluster) lay_out(*cluster);
    check_precision();
    check_host();
    check_codecs();
  }

  /// The split into stages is to be found: the plan has any that adds up.
  bool balances() const { return asks_for_balance_; }

 private:
  /// Findings become problems at the values that they blame.
  class Findings final : public PlanFindings {
   public:
    Findings(Problems& problems, JsonValue& tree) : problems_(&problems), tree_(&tree) {}
    bool is_sound(std::string_view pointer) const override {
      return (knows_data_ || pointer != data) && problems_->is_sound(pointer);
    }
    void reject(PlanRejection rejection) override {
      std::vector<std::string> spoils = std::move(rejection.spoils);
      if (spoils.empty()) spoils = {rejection.key};
      problems_->add({origin_near(*tree_, rejection.key), rejection.key,
                      std::move(rejection.message), std::move(rejection.suggestion)},
                     std::move(spoils));
    }
    /// `data` is not given, and what it would be derived from is wrong.
    void forget_data() { knows_data_ = false; }

   private:
    Problems* problems_;
    JsonValue* tree_;
    bool knows_data_ = true;
  };

  PlanInputs inputs() const {
    return {scenario_->model, training_, block_.parallel, scenario_->software};
  }

  /// True if it is known how many GPUs each node has.
  bool knows_gpus() const {
    const std::size_t types = scenario_->platform.node_types.size();
    bool all = types > 0;
    for (std::size_t type = 0; type < types; ++type)
      all = all && findings_.is_sound(node_type_pointer(type) + "/count") &&
            findings_.is_sound(node_type_pointer(type) + "/gpus");
    return all;
  }

  bool knows_product() const {
    return findings_.are_sound({tensor, plan_keys::context, pipeline, data, plan_keys::nodes});
  }

  /// Products must not leave the range of what can be counted.
  void check_ranks() {
    if (!findings_.are_sound({tensor, plan_keys::context, pipeline, data})) return;
    const Parallel& parallel = block_.parallel;
    if (parallel.has_more_ranks_than(most_ranks))
      findings_.reject({"/parallel",
                        product_text(parallel) + ", more GPUs than the " +
                            std::to_string(most_ranks) + " that can be simulated",
                        {},
                        product_pointers()});
  }

  /// The platform must have the nodes that are asked for.
  void check_available() {
    if (!nodes_ || !knows_gpus() || !findings_.is_sound(plan_keys::nodes)) return;
    const int available = scenario_->platform.available_nodes();
    if (available == 0 || *nodes_ <= available) return;
    findings_.reject({plan_keys::nodes,
                      "nodes is " + std::to_string(*nodes_) + ", but platform \"" +
                          scenario_->platform.name + "\" has " + std::to_string(available),
                      "ask for at most " + std::to_string(available) +
                          ", or give its node types a larger count"});
  }

  /// Without a given `data`, derives it from the nodes.
  void settle_data() {
    if (block_.gives_data) return;
    if (!knows_product() || (nodes_ && !knows_gpus())) return findings_.forget_data();
    Parallel& parallel = block_.parallel;
    if (nodes_) {
      const ClusterShape given = first_nodes(scenario_->platform, *nodes_);
      const GivenGpus gpus{total_gpus(given), gpus_text(given)};
      const std::string why_not = why_no_data(parallel, gpus);
      if (!why_not.empty())
        return findings_.reject({"/parallel", why_not, "write \"data\", or another number of nodes",
                                 product_pointers()});
      parallel.data = gpus.count / static_cast<int>(parallel.ranks_of_replica());
    }
    reader_.set_default("data", std::int64_t{parallel.data});
  }

  /// The nodes in use: those that are asked for, or as many as the ranks need.
  std::optional<ClusterShape> find_cluster() {
    if (!knows_gpus() || !findings_.is_sound(plan_keys::nodes)) return std::nullopt;
    const Platform& platform = scenario_->platform;
    used_ = nodes_;
    if (!used_) {
      if (!knows_product()) return std::nullopt;
      const Parallel& parallel = block_.parallel;
      used_ = nodes_needed(platform, parallel.num_ranks());
      if (!used_) {
        findings_.reject({"/parallel",
                          product_text(parallel) + ", but platform \"" + platform.name +
                              "\" has only " + gpus_text(first_nodes(platform, most_nodes_in_use)),
                          {},
                          product_pointers()});
        return std::nullopt;
      }
    }
    root_->set_default("nodes", std::int64_t{*used_});
    if (platform.domain_nodes > 1) {
      scenario_->platform = in_segments(platform, *used_, settle_segment());
      used_ = scenario_->platform.available_nodes();
    }
    const std::string kind = "/platform/fabric/kind";
    const std::string why = why_not_joined(scenario_->platform, *used_);
    if (!why.empty() && findings_.is_sound(kind)) findings_.reject({kind, why, {}});
    ClusterShape cluster = first_nodes(scenario_->platform, *used_);
    cluster.nodes_given = nodes_.has_value();
    return cluster;
  }

  /// The nodes in use of each NVLink domain. Where nothing is said of them, the plan's groups decide.
  int settle_segment() {
    const Platform& platform = scenario_->platform;
    const int most = platform.domain_nodes;
    const auto domains_for = [](int in_all, int of_each) {
      return (in_all + of_each - 1) / of_each;
    };
    const int domains = domains_for(platform.available_nodes(), most);  // 0: as many as it takes
    const auto are_enough = [&](int segment) {
      return domains == 0 || domains_for(*used_, segment) <= domains;
    };
    const std::string pointer = "/platform/segment";
    const JsonValue* given = find_at(root_->value(), pointer);
    if (given != nullptr && !given->is_null() && given->origin.kind != OriginKind::defaulted) {
      if (!findings_.is_sound(pointer)) return most;
      const auto segment = static_cast<int>(std::get<std::int64_t>(given->content));
      if (!are_enough(segment))
        findings_.reject({pointer,
                          "segments of " + std::to_string(segment) + " nodes take " +
                              std::to_string(*used_) + " nodes out of " +
                              std::to_string(domains_for(*used_, segment)) +
                              " NVLink domains, and the platform has " + std::to_string(domains),
                          "write a larger segment, or fewer nodes"});
      return segment;
    }
    if (!knows_product()) return most;
    int segment = default_segment(block_.parallel, most, platform.node_types.front().gpus);
    if (!are_enough(segment)) segment = most;
    if (JsonValue* block = root_->value().find("platform"); block != nullptr && block->is_object())
      block->set("segment", JsonValue(std::int64_t{segment}));
    return segment;
  }

  /// Layers by stage, where they are given in another way than by a list.
  void settle_layers() {
    constexpr std::int64_t most_in_all = 1'000'000'000;
    std::vector<int>& by_stage = block_.parallel.stage_layers;
    if (asks_for_balance_ && findings_.are_sound({pipeline, layers}))
      by_stage = checked_layers_before_balance();
    if (!block_.layout.layers.empty() &&
        findings_.are_sound({pipeline, "/parallel/virtual_pipeline", stage_layers}))
      split_by_layout(reader_, block_);
    if (const int predicted = block_.layout.mtp_layers, has = scenario_->model.mtp_layers;
        predicted > 0 && predicted != has && findings_.are_sound({"/model/mtp_layers"}))
      findings_.reject({stage_layers,
                        "the layout has " + std::to_string(predicted) +
                            " times m, but the model's mtp_layers is " + std::to_string(has),
                        "leave m out, or set mtp_layers to " + std::to_string(predicted)});
    if (!block_.chunk_layers.empty() &&
        findings_.are_sound({pipeline, "/parallel/virtual_pipeline", stage_layers}))
      split_by_chunks(reader_, block_);
    const std::int64_t sum = std::accumulate(by_stage.begin(), by_stage.end(), std::int64_t{0});
    if (sum > most_in_all)
      findings_.reject(
          {stage_layers, "stage_layers adds up to " + std::to_string(sum) + " layers", {}});
  }

  /// Any split that adds up, so that the plan can be laid out.
  std::vector<int> checked_layers_before_balance() {
    constexpr double most_steps = 1e9;  // of the search; a second
    const int stages = block_.parallel.pipeline, count = scenario_->model.layers;
    const auto& moe = scenario_->model.moe;
    if (block_.parallel.schedule->is_bidirectional())
      reader_.problem("stage_layers",
                      "layers are not balanced under schedule " + block_.parallel.schedule->name +
                          ", where each stage holds two parts of the model",
                      "write the list, or leave stage_layers out");
    if (moe && (moe->dense_layers > 0 || moe->every > 1))
      reader_.problem("stage_layers",
                      "layers with and without experts are not balanced among stages",
                      "write the list, or leave stage_layers out");
    if (static_cast<double>(count) * count * stages > most_steps)
      reader_.problem("stage_layers",
                      std::to_string(count) + " layers on " + std::to_string(stages) +
                          " stages are too many to balance",
                      "write the list, or leave stage_layers out");
    return layers_before_balance(count, stages);
  }

  void check_samples() {
    constexpr std::int64_t most = 1'000'000'000;
    if (!findings_.are_sound({data, micro_batch})) return;
    if (std::int64_t{block_.parallel.data} * training_.micro_batch > most)
      findings_.reject({data,
                        "data * micro_batch = " + std::to_string(block_.parallel.data) + " * " +
                            std::to_string(training_.micro_batch) +
                            " is more than a billion samples",
                        {}});
  }

  void settle_places(const ClusterShape& cluster) {
    Parallel& parallel = block_.parallel;
    if (!knows_product()) return;
    parallel.placement = place_ranks(reader_, static_cast<int>(parallel.num_ranks()), cluster);
    const JsonValue* placement = reader_.take("placement");
    const bool asks_for_search = placement->is_string() && placement->string() == "search";
    scenario_->placement_request =
        asks_for_search ? PlacementRequest::search : PlacementRequest::as_planned;
  }

  /// A schedule that the user wrote must also finish when both ends of a message wait for each other.
  void check_exchanges() {
    const Parallel& parallel = block_.parallel;
    if (!parallel.schedule->written || parallel.pipeline_send != PipelineSend::blocking_pairs)
      return;
    const bool is_default = reader_.take("pipeline_send")->origin.kind == OriginKind::defaulted;
    if (!findings_.are_sound({"/parallel/schedule",
                              is_default ? "/software/pipeline_send" : "/parallel/pipeline_send"}))
      return;
    if (const auto deadlock = exchange_deadlock(*parallel.schedule->written))
      findings_.reject(
          {"/parallel/schedule",
           "the schedule never finishes with pipeline_send \"blocking_pairs\": " + *deadlock,
           R"(write "pipeline_send": "eager")"});
  }

  /// The plan, where nothing is wrong; else what only laying it out can tell.
  void lay_out(const ClusterShape& cluster) {
    const Parallel& parallel = block_.parallel;
    if (!root_->problems().empty()) {
      if (knows_product() && findings_.are_sound({"/parallel/placement", "/parallel/rank_order"}))
        check_borders(parallel, cluster, findings_);
      return;
    }
    auto made = make_plan(scenario_->model, training_, parallel, cluster, scenario_->software,
                          scenario_->plan.compression);
    if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&made)) {
      for (PlanRejection& rejection : *rejections) findings_.reject(std::move(rejection));
      return;
    }
    scenario_->plan = std::move(std::get<Plan>(made));
    reader_.set_default("stage_layers", stage_layers_of(scenario_->plan));
    scenario_->nodes = types_of_nodes(scenario_->platform, *used_);
  }

  /// The types of the nodes in use, as far as they and this part of their devices are known.
  std::vector<const NodeType*> types_in_use(std::string_view part_of_node) const {
    const std::vector<NodeType>& types = scenario_->platform.node_types;
    std::vector<const NodeType*> known;
    int before = 0;  // nodes of the types before this one
    for (std::size_t type = 0; type < types.size(); ++type) {
      const bool is_used = types.size() == 1 || (used_ && before < *used_);
      const std::string pointer = node_type_pointer(type) + "/" + std::string(part_of_node);
      if (is_used && findings_.is_sound(pointer)) known.push_back(&types[type]);
      before += types[type].count;
    }
    return known;
  }

  /// Every GPU in use must have a rate for the precision. Of fp8 with the recipe "mx", which is mxfp8, the recipe is wrong where fp8 is known.
  void check_precision() {
    if (!findings_.is_sound("/training/precision")) return;
    const JsonValue* const written = find_at(root_->value(), "/training/precision");
    const bool is_fp8 = written != nullptr && written->is_string() && written->string() == "fp8";
    for (const NodeType* const node : types_in_use("device/peak")) {
      const auto& peak = node->device.peak;
      const bool is_recipe = is_fp8 && training_.precision == Precision::mxfp8;
      const bool blames_recipe = is_recipe && peak.contains(Precision::fp8);
      const Precision precision =
          is_recipe && !blames_recipe ? Precision::fp8 : training_.precision;
      if (peak.contains(precision) && peak.contains(base_precision(precision))) continue;
      const std::string known = listed(peak, [](const auto& each) { return name_of(each.first); });
      return findings_.reject(
          {blames_recipe ? plan_keys::fp8_recipe : "/training/precision",
           std::string("device ") + node->device.name + " has no " +
               name_of(peak.contains(precision) ? base_precision(precision) : precision) + " rate" +
               (blames_recipe ? ", which recipe \"mx\" computes with" : ""),
           blames_recipe ? "write \"tensor\"" : "it has " + known});
    }
  }

  void check_codecs() {
    const Compression& compression = scenario_->plan.compression;
    check_compression_block(compression, block_.parallel, types_in_use("device/codecs"), findings_);
    if (!training_.lora.is_used() || !findings_.is_sound(plan_keys::lora_rank)) return;
    for (const auto& [name, codec] : {std::pair{"data_gradients", &compression.data_gradients},
                                      std::pair{"zero_gather", &compression.zero_gather}})
      if (*codec && findings_.is_sound(codec_place(name)))
        findings_.reject({codec_place(name),
                          std::string("codecs of ") + name +
                              " are modelled for all of a layer's matrices, and not for adapters",
                          "leave it out"});
  }

  /// Every node in use must say what its host takes in.
  void check_host() {
    for (const auto& [key, share] :
         {std::pair{plan_keys::optimizer_offload, training_.optimizer_offload},
          std::pair{plan_keys::activation_offload, training_.activation_offload}}) {
      if (share == 0 || !findings_.is_sound(key)) continue;
      for (const NodeType* const node : types_in_use("host"))
        if (!node->host)
          findings_.reject({key,
                            "platform " + scenario_->platform.name +
                                " does not say how fast a GPU reaches its host's memory",
                            "add \"host\" to its node types (docs/platforms.md), or leave it out"});
    }
  }

  ObjectReader* root_;
  Scenario* scenario_;
  Findings findings_;
  std::optional<int> nodes_;  ///< as given
  std::optional<int> used_;   ///< nodes, once they are known
  Training training_;
  ObjectReader reader_;  ///< of the block `parallel`
  ParallelBlock block_;
  bool asks_for_balance_ = false;
};

/// Slow parts that the nodes in use do not have, or that hold no part of the plan, are problems of `block`, the block as it was written.
/// GPUs are counted from 0 through all nodes.
void check_slow_parts(const NoiseBlock& noise, const std::vector<NodeType>& nodes, const Plan& plan,
                      JsonValue& block, Problems& problems) {
  const std::vector<std::size_t> first_gpu = first_gpus(nodes);
  std::vector<bool> uses_node(nodes.size()), uses_gpu(first_gpu.back());
  for (const PlanDevice& device : plan.devices) {
    uses_node[device.node.index()] = true;
    for (const int gpu : device.gpus)
      uses_gpu[first_gpu[device.node.index()] + static_cast<std::size_t>(gpu)] = true;
  }
  for (std::size_t i = 0; i < noise.slow_parts.size(); ++i) {
    const NoiseBlock::SlowPart& part = noise.slow_parts[i];
    const bool is_gpu = part.gpu.has_value();
    const std::vector<bool>& used = is_gpu ? uses_gpu : uses_node;
    const auto number = static_cast<std::size_t>(is_gpu ? *part.gpu : part.node.value_or(0));
    const std::string key = is_gpu ? "gpu" : "node";
    std::string wrong = key + " is " + std::to_string(number);
    if (number >= used.size())
      wrong += ", and the job has " + std::to_string(used.size()) + (is_gpu ? " GPUs" : " nodes") +
               ", counted from 0";
    else if (!plan.devices.empty() && !used[number])
      wrong += ", which the plan leaves idle (it is counted through all GPUs of its nodes)";
    else
      continue;
    const std::string inner = "/slow_parts/" + std::to_string(i) + "/" + key;
    const JsonValue* const value = find_at(block, inner);
    problems.add({value == nullptr ? block.origin : value->origin, "/noise" + inner, wrong, {}});
  }
}

constexpr int scenario_version = 1;
constexpr const char* default_software = "megatron-lm-2021";

/// The keys of a scenario, in the order in which messages list them.
constexpr std::array keys{"$schema",     "extends",   "name",   "version",           "model",
                          "platform",    "software",  "nodes",  "training",          "parallel",
                          "compression", "sweep",     "search", "memory_correction", "job",
                          "noise",       "neighbours"};

enum class VersionKey { required, optional };

/// Parts read before from values that are the same again; null: not read.
struct KnownParts {
  const Transformer* model = nullptr;
  const Platform* platform = nullptr;
  const Platform* devices = nullptr;  ///< a platform that has the same ones
  const SoftwareProfile* software = nullptr;
};

/// Reads one scenario: merges its files, reads every block, and checks the whole.
class ScenarioReader {
 public:
  ScenarioReader(const Library& library, fs::path folder, const ReadOptions& options,
                 KnownParts known = {})
      : library_(&library),
        files_(library, std::move(folder), problems_),
        options_(&options),
        known_(known) {}

  Problems& problems() { return problems_; }

  Scenario read(JsonValue tree, const std::string& fallback_name, VersionKey version) {
    merge_files(std::move(tree));
    refuse_other_files();
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
      read_neighbours(root);
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
  JsonValue merge(JsonValue tree, const std::string& fallback_name, VersionKey version) {
    merge_files(std::move(tree));
    refuse_other_files();
    {
      ObjectReader root(tree_, {}, problems_);
      read_label(root, fallback_name, version);
    }
    problems_.throw_if_any();
    return std::move(tree_);
  }

 private:
  /// Of a result or a measurement set nothing more is worth saying.
  void refuse_other_files() const {
    const JsonValue* const schema = tree_.is_object() ? tree_.find("schema") : nullptr;
    if (schema == nullptr || !schema->is_string() || !schema->string().starts_with("windtunnel/"))
      return;
    throw InputError(
        {{schema->origin, "/schema", "a file of \"" + schema->string() + "\" is no scenario",
          schema->string() == "windtunnel/measurements-v1"
              ? "windtunnel validate reads measurement sets"
              : ""}});
  }

  /// A placement that is searched also depends on the seed.
  std::string hash() const {
    if (scenario_.placement_request != PlacementRequest::search) return resolved_hash(tree_);
    JsonValue tree = tree_;
    set_at(tree, "/parallel/placement",
           JsonValue("search with seed " + std::to_string(scenario_.seed)));
    return resolved_hash(tree);
  }

  void merge_files(JsonValue tree) {
    if (!tree.is_object() && problems_.empty())
      problems_.add({tree.origin,
                     {},
                     "a scenario is an object, this is " + tree.kind_name(),
                     "write { ... }"});
    if (!tree.is_object()) problems_.throw_if_any();
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
      scenario_.platform = read_platform(*value, "/platform", problems_, known_.devices);
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
      return std::ranges::all_of(scenario_.platform.node_types, [&](const NodeType& type) {
        return stack.knows_attention(type.device, kernel, Precision::bf16);
      });
    };
    const bool takes_cudnn =
        std::ranges::any_of(scenario_.platform.node_types, [&](const NodeType& type) {
          return std::ranges::count(stack.cudnn_attention_on, type.device.name) > 0;
        });
    if ((takes_cudnn || !known(stack.attention_kernel)) && known(FlashKernel::cudnn))
      stack.attention_kernel = FlashKernel::cudnn;
    stack.flash_attention = stack.flash_attention && known(stack.attention_kernel);
  }

  /// Puts the layers in place of "balanced", in the plan and in the resolved scenario, of which the rest is known to be sound.
  void balance_stages() {
    Plan& plan = scenario_.plan;
    scenario_.balances_stages = true;
    LayerSplit split = balanced_split(scenario_, plan, StageTimes::exact);
    plan.parallel.stage_layers = plan.stage_layers = std::move(split.stages);
    plan.parallel.position_layers = plan.position_layers = std::move(split.positions);
    find_at(tree_, "/parallel/stage_layers")->content = stage_layers_of(plan);
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

  void read_neighbours(ObjectReader& root) {
    std::vector<ObjectReader> entries = root.entries(
        "neighbours", "expected a list of {link, rate, busy} or {scenario, first_node}", 0);
    std::vector<SecondJob> jobs;
    for (ObjectReader& entry : entries) {
      const auto refuse = [&](const char* key, const char* other) {
        if (entry.has(key))
          entry.problem(key, std::string(key) + " does not go with " + other, "leave one out");
      };
      if (JsonValue* const other = entry.take("scenario")) {
        for (const char* key : {"link", "rate", "busy"}) refuse(key, "scenario");
        const int first = entry.required_int("first_node", 0, most_nodes_in_use - 1);
        entry.reject_unknown_keys();
        if (std::optional<Scenario> scenario = read_second_job(entry, *other))
          jobs.push_back({&entry, first, std::move(*scenario)});
        continue;
      }
      refuse("first_node", "link");
      NeighbourFlow flow;
      flow.link = entry.required_string("link");
      required(entry, "rate", flow.rate);
      defaulted(entry, "busy", flow.busy, 0, 1);
      entry.reject_unknown_keys();
      scenario_.platform.neighbours.push_back(std::move(flow));
    }
    place_second_jobs(std::move(jobs));
  }

  /// A neighbour's scenario before it is on its nodes.
  struct SecondJob {
    ObjectReader* entry;
    int first_node = 0;
    Scenario scenario;
    int end() const { return first_node + scenario.plan.num_nodes; }
    std::string nodes() const {
      return std::to_string(first_node) + " to " + std::to_string(end() - 1);
    }
  };

  /// Its resolved form stands in place of its name. Nothing where there is a problem.
  std::optional<Scenario> read_second_job(ObjectReader& entry, JsonValue& value) {
    const std::string pointer = pointer_join(entry.pointer(), "scenario");
    const Origin written = value.origin;
    const bool is_named = value.is_string();
    if (!files_.expand(value, scenario_files, pointer)) return std::nullopt;
    if (is_named && value.find("version") == nullptr && value.find("extends") == nullptr)
      problems_.add({value.origin, pointer, "missing key \"version\"", "add \"version\": 1"});
    if (!value.is_object())
      entry.problem("scenario", "scenario is " + text_for_message(value) + ", which is no scenario",
                    "write the name of a scenario, a path, or an object");
    if (!problems_.empty()) return std::nullopt;  // too little is known of the nodes
    if (scenario_.platform.domain_nodes > 1 || scenario_.platform.available_nodes() == 0) {
      const bool has_domains = scenario_.platform.domain_nodes > 1;
      entry.problem("scenario",
                    has_domains ? "a second job is not put beside one on NVLink domains"
                                : "the platform does not say how many nodes the cluster of both "
                                  "jobs has, on which its switches depend",
                    has_domains ? "write what it sends: {link, rate, busy}"
                                : "write the last node type's count in both scenarios: "
                                  "\"node_types\": [{\"count\": 256}]");
      return std::nullopt;
    }
    try {
      return on_this_platform(entry, written, value);
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems())
        problems_.add(
            {problem.origin, pointer + problem.pointer, problem.message, problem.suggestion});
      return std::nullopt;
    }
  }

  /// Each on its nodes, of one cluster that holds them all.
  void place_second_jobs(std::vector<SecondJob> jobs) {
    const int own = scenario_.plan.num_nodes, most = most_nodes(scenario_.platform);
    std::map<int, std::pair<int, std::string>> taken{
        {0, {own, "this one has 0 to " + std::to_string(own - 1)}}};
    int end = own;
    for (const SecondJob& job : jobs) {
      const std::string has = "this second job has nodes " + job.nodes();
      if (job.end() > most)
        job.entry->problem("first_node", has + ", and there are " + std::to_string(most));
      for (const auto& [first, other] : taken)
        if (job.first_node < other.first && first < job.end())
          job.entry->problem("first_node", has + ", and " + other.second,
                             "write " + std::to_string(end) + " or more");
      taken[job.first_node] = {job.end(), "another has " + job.nodes()};
      end = std::max(end, job.end());
    }
    if (jobs.empty() || !problems_.empty()) return;
    for (SecondJob& job : jobs) {
      std::vector<NodeId> nodes;
      for (int node = job.first_node; node < job.end(); ++node) nodes.emplace_back(node);
      if (const auto rejections = move_to_nodes(job.scenario, nodes); !rejections.empty())
        job.entry->problem("first_node", "its plan is not legal on nodes " + job.nodes() + ": " +
                                             rejections.front().message);
      std::string name = job.scenario.name;
      scenario_.neighbour_jobs.push_back(
          {std::move(name), job.first_node,
           std::make_shared<const Scenario>(std::move(job.scenario))});
    }
  }

  /// The scenario at `value`, named at `written`, which is made complete. It must be on the same platform; what its neighbours, noise, job
  /// and sweep say does not count.
  Scenario on_this_platform(ObjectReader& entry, const Origin& written, JsonValue& value) {
    const fs::path folder =
        value.origin.source ? fs::path(value.origin.source->name).parent_path() : fs::path();
    ReadOptions options;
    options.seed = options_->seed;
    options.values = {{"/neighbours", JsonValue(JsonValue::Array{})}};
    value = merged_scenario(std::move(value), folder, *library_, options);
    const auto problem = [&](const std::string& what, const std::string& suggestion) {
      problems_.add({written, pointer_join(entry.pointer(), "scenario"), what, suggestion});
    };
    if (const JsonValue* const placement = find_at(value, "/parallel/placement");
        placement != nullptr && placement->is_string() && placement->string() == "search")
      problem("the placement of a second job is not searched",
              "leave its parallel/placement out, or write where its ranks are");
    Scenario other = read_scenario(value, folder, *library_, options);
    const auto platform_hash = [](const JsonValue& platform) {
      JsonValue alone{JsonValue::Object{}};
      alone.set("platform", platform);
      make_self_contained(alone);
      return resolved_hash(alone);
    };
    if (platform_hash(*other.resolved.find("platform")) != platform_hash(*tree_.find("platform")))
      problem("the second job is on another platform than this one (\"" + other.platform.name +
                  "\" and \"" + scenario_.platform.name + "\")",
              "give both the same platform");
    value = other.resolved;
    return other;
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

  const Library* library_;
  Problems problems_;
  ScenarioFiles files_;
  const ReadOptions* options_;
  KnownParts known_;
  JsonValue tree_;
  Scenario scenario_;
  std::optional<NoiseBlock> noise_;
};

/// True if a value that the options set changes what stands at `part`.
bool change(const ReadOptions& options, const std::string& part) {
  const auto changes_it = [&](const auto& each) {
    return each.first == part || each.first.empty() || lies_inside(each.first, part) ||
           lies_inside(part, each.first);
  };
  return std::ranges::any_of(options.overrides, changes_it) ||
         std::ranges::any_of(options.values, changes_it);
}

/// Also where another platform is put underneath.
bool change_devices(const ReadOptions& options, std::size_t num_node_types) {
  if (change(options, "/platform/extends")) return true;
  for (std::size_t i = 0; i < num_node_types; ++i)
    if (change(options, "/platform/node_types/" + std::to_string(i) + "/device")) return true;
  return false;
}

}  // namespace

JsonValue merged_scenario(const fs::path& file, const Library& library,
                          const ReadOptions& options) {
  ScenarioReader reader(library, file.parent_path(), options);
  JsonValue value = parse_json(read_source_or_stdin(file), reader.problems());
  return reader.merge(std::move(value), name_of_source(file), VersionKey::required);
}

JsonValue merged_scenario(JsonValue value, const fs::path& folder, const Library& library,
                          const ReadOptions& options) {
  return ScenarioReader(library, folder, options)
      .merge(std::move(value), "scenario", VersionKey::optional);
}

Scenario read_scenario(const fs::path& file, const Library& library, const ReadOptions& options) {
  ScenarioReader reader(library, file.parent_path(), options);
  JsonValue value = parse_json(read_source_or_stdin(file), reader.problems());
  return reader.read(std::move(value), name_of_source(file), VersionKey::required);
}

Scenario read_scenario(JsonValue value, const fs::path& folder, const Library& library,
                       const ReadOptions& options) {
  return ScenarioReader(library, folder, options)
      .read(std::move(value), "scenario", VersionKey::optional);
}

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
        return read_platform(value, pointer, problems);
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
  KnownParts known;
  const auto known_value = [&](const std::string& key) -> const JsonValue* {
    const auto stays = [&](const char* part) { return key == part && !change(options, "/" + key); };
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
    if (change_devices(options, platform_->part.node_types.size())) return nullptr;
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
