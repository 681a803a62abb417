#include "scenario/plan_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include "plan/nvlink_groups.hpp"
#include "scenario/cluster_shape.hpp"
#include "scenario/compression_check.hpp"
#include "schedule/schedule_check.hpp"

namespace windtunnel {

using namespace plan_keys;

namespace {

std::string node_type_pointer(std::size_t type) {
  return "/platform/node_types/" + std::to_string(type);
}

/// Where the value at `pointer` was written, or the nearest thing around it that was.
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

}  // namespace

bool PlanReader::Findings::is_sound(std::string_view pointer) const {
  return (knows_data_ || pointer != data) && problems_->is_sound(pointer);
}

void PlanReader::Findings::reject(PlanRejection rejection) {
  std::vector<std::string> spoils = std::move(rejection.spoils);
  if (spoils.empty()) spoils = {rejection.key};
  problems_->add({origin_near(*tree_, rejection.key), rejection.key, std::move(rejection.message),
                  std::move(rejection.suggestion)},
                 std::move(spoils));
}

PlanReader::PlanReader(ObjectReader& root, Scenario& scenario)
    : root_(&root),
      scenario_(&scenario),
      findings_(root.problems(), root.value()),
      nodes_(root.take("nodes") == nullptr
                 ? std::nullopt
                 : std::optional(root.required_int("nodes", 1, most_nodes_in_use))),
      training_(read_training_of(root, scenario.software)),
      reader_(root.child("parallel")),
      block_(read_parallel(reader_, scenario.software)),
      asks_for_balance_(asks_for_balance(reader_)) {}

void PlanReader::check() {
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
  settle_layers();
  check_samples();
  check_work(inputs(), findings_);
  if (cluster) settle_places(*cluster);
  check_exchanges();
  if (cluster) lay_out(*cluster);
  check_precision();
  check_codecs();
}

/// Whether it is known how many GPUs each node has.
bool PlanReader::knows_gpus() const {
  const std::size_t types = scenario_->platform.node_types.size();
  bool all = types > 0;
  for (std::size_t type = 0; type < types; ++type)
    all = all && findings_.is_sound(node_type_pointer(type) + "/count") &&
          findings_.is_sound(node_type_pointer(type) + "/gpus");
  return all;
}

bool PlanReader::knows_product() const {
  return findings_.are_sound({tensor, plan_keys::context, pipeline, data, plan_keys::nodes});
}

/// Products must not leave the range of what can be counted.
void PlanReader::check_ranks() {
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
void PlanReader::check_available() {
  if (!nodes_ || !knows_gpus() || !findings_.is_sound(plan_keys::nodes)) return;
  const int available = scenario_->platform.available_nodes();
  if (available == 0 || *nodes_ <= available) return;
  findings_.reject({plan_keys::nodes,
                    "nodes is " + std::to_string(*nodes_) + ", but platform \"" +
                        scenario_->platform.name + "\" has " + std::to_string(available),
                    {}});
}

/// Where `data` is not given, it is what the nodes leave.
void PlanReader::settle_data() {
  if (block_.gives_data) return;
  if (!knows_product() || (nodes_ && !knows_gpus())) return findings_.forget_data();
  Parallel& parallel = block_.parallel;
  if (nodes_) {
    const ClusterShape given = first_nodes(scenario_->platform, *nodes_);
    const GivenGpus gpus{total_gpus(given), gpus_text(given)};
    const std::string why_not = why_no_data(parallel, gpus);
    if (!why_not.empty())
      return findings_.reject(
          {"/parallel", why_not, "write \"data\", or another number of nodes", product_pointers()});
    parallel.data = gpus.count / static_cast<int>(parallel.ranks_of_replica());
  }
  reader_.set_default("data", std::int64_t{parallel.data});
}

/// The nodes in use: those that are asked for, or as many as the ranks need.
std::optional<ClusterShape> PlanReader::find_cluster() {
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
  ClusterShape cluster = first_nodes(scenario_->platform, *used_);
  cluster.nodes_given = nodes_.has_value();
  return cluster;
}

/// The nodes in use of each NVLink domain. Where nothing is said of them, the plan's groups decide.
int PlanReader::settle_segment() {
  const Platform& platform = scenario_->platform;
  const int most = platform.domain_nodes;
  const auto domains_for = [](int in_all, int of_each) { return (in_all + of_each - 1) / of_each; };
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
void PlanReader::settle_layers() {
  constexpr std::int64_t most_in_all = 1'000'000'000;
  std::vector<int>& by_stage = block_.parallel.stage_layers;
  if (asks_for_balance_ && findings_.are_sound({pipeline, layers}))
    by_stage = layers_before_balance();
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
std::vector<int> PlanReader::layers_before_balance() {
  constexpr double most_steps = 1e9;  // of the search; a second
  const int stages = block_.parallel.pipeline, count = scenario_->model.layers;
  const auto& moe = scenario_->model.moe;
  if (block_.parallel.schedule->is_both_ways())
    reader_.problem("stage_layers",
                    "layers are not balanced under schedule " + block_.parallel.schedule->name +
                        ", where each stage holds two parts of the model",
                    "write the list, or leave stage_layers out");
  if (moe && (moe->dense_layers > 0 || moe->every > 1))
    reader_.problem("stage_layers", "layers with and without experts are not balanced among stages",
                    "write the list, or leave stage_layers out");
  if (static_cast<double>(count) * count * stages > most_steps)
    reader_.problem("stage_layers",
                    std::to_string(count) + " layers on " + std::to_string(stages) +
                        " stages are too many to balance",
                    "write the list, or leave stage_layers out");
  std::vector<int> all_on_the_first(static_cast<std::size_t>(stages), 0);
  all_on_the_first.front() = count;
  return all_on_the_first;
}

void PlanReader::check_samples() {
  constexpr std::int64_t most = 1'000'000'000;
  if (!findings_.are_sound({data, micro_batch})) return;
  if (std::int64_t{block_.parallel.data} * training_.micro_batch > most)
    findings_.reject({data,
                      "data * micro_batch = " + std::to_string(block_.parallel.data) + " * " +
                          std::to_string(training_.micro_batch) + " is more than a billion samples",
                      {}});
}

void PlanReader::settle_places(const ClusterShape& cluster) {
  Parallel& parallel = block_.parallel;
  if (!knows_product()) return;
  parallel.placement = place_ranks(reader_, static_cast<int>(parallel.num_ranks()), cluster);
  const JsonValue* placement = reader_.take("placement");
  const bool asks_for_search = placement->is_string() && placement->string() == "search";
  scenario_->placement_request =
      asks_for_search ? PlacementRequest::search : PlacementRequest::as_planned;
}

/// A schedule that the user wrote must also finish when both ends of a message wait for each other.
void PlanReader::check_exchanges() {
  const Parallel& parallel = block_.parallel;
  if (!parallel.schedule->written || parallel.pipeline_send != PipelineSend::blocking_pairs) return;
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
void PlanReader::lay_out(const ClusterShape& cluster) {
  const Parallel& parallel = block_.parallel;
  if (!root_->problems().empty()) {
    if (knows_product() && findings_.are_sound({"/parallel/placement", "/parallel/rank_order"}))
      check_borders(parallel, cluster, findings_);
    return;
  }
  auto made = make_plan(scenario_->model, training_, parallel, cluster, scenario_->software);
  if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&made)) {
    for (PlanRejection& rejection : *rejections) findings_.reject(std::move(rejection));
    return;
  }
  Plan& plan = std::get<Plan>(made);
  plan.compression = std::move(scenario_->plan.compression);
  scenario_->plan = std::move(plan);
  const Plan& made_plan = scenario_->plan;
  const bool by_part = made_plan.parallel.schedule->is_both_ways();
  const bool by_chunk = !by_part && !made_plan.position_layers.empty();
  JsonValue::Array by_stage;
  for (const int count : by_part ? made_plan.position_layers : made_plan.stage_layers)
    by_stage.emplace_back(std::int64_t{count});
  for (std::size_t stage = 0; by_chunk && stage < by_stage.size(); ++stage) {
    JsonValue::Array layers_of_chunks;
    for (int chunk = 0; chunk < parallel.virtual_pipeline; ++chunk)
      layers_of_chunks.emplace_back(std::int64_t{made_plan.chunk_layers({StageId{stage}, chunk})});
    by_stage[stage].content = std::move(layers_of_chunks);
  }
  reader_.set_default("stage_layers", std::move(by_stage));
  scenario_->nodes = types_of_nodes(scenario_->platform, *used_);
}

/// The types of the nodes in use, as far as they and this part of their devices are known.
std::vector<const NodeType*> PlanReader::types_in_use(std::string_view part_of_device) const {
  const std::vector<NodeType>& types = scenario_->platform.node_types;
  std::vector<const NodeType*> known;
  int before = 0;  // nodes of the types before this one
  for (std::size_t type = 0; type < types.size(); ++type) {
    const bool is_used = types.size() == 1 || (used_ && before < *used_);
    const std::string pointer = node_type_pointer(type) + "/device/" + std::string(part_of_device);
    if (is_used && findings_.is_sound(pointer)) known.push_back(&types[type]);
    before += types[type].count;
  }
  return known;
}

/// Every GPU in use must have a rate for the precision.
void PlanReader::check_precision() {
  if (!findings_.is_sound("/training/precision")) return;
  const Precision precision = training_.precision;
  for (const NodeType* const node : types_in_use("peak")) {
    const auto& peak = node->device.peak;
    if (peak.contains(precision) && peak.contains(base_precision(precision))) continue;
    std::string known;
    for (const auto& [other, rate] : peak)
      known += (known.empty() ? "" : ", ") + std::string(name_of(other));
    return findings_.reject(
        {"/training/precision",
         std::string("device ") + node->device.name + " has no " +
             name_of(peak.contains(precision) ? base_precision(precision) : precision) + " rate",
         "it has " + known});
  }
}

void PlanReader::check_codecs() {
  check_compression({scenario_->plan.compression, block_.parallel, types_in_use("codecs")},
                    findings_);
}

}  // namespace windtunnel
