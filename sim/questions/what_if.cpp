#include "questions/what_if.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "lower/program_builder.hpp"
#include "platform/platform_json.hpp"
#include "scenario/library_files.hpp"
#include "units/amount_range.hpp"

namespace windtunnel {
namespace {

constexpr double faster = what_if_faster,
                 slower = 0.9;  // ten percent: enough to see, little enough to be near
/// Of more kinds of node only the most frequent and the fastest are asked about as the kind of all.
constexpr std::size_t most_kinds_each = 16;
/// Of a deeper pipeline only the first, the slowest and the last stage are asked about one by one.
constexpr int most_stages_each = 16;

/// A file may say twice the rate.
bool can_double(BytesPerSecond rate) { return side_of(rate * 2) == RangeSide::inside; }

std::string exact(double number) { return canonical_text(JsonValue(number)); }
std::string exact(BytesPerSecond rate) { return exact(rate / BytesPerSecond{1}) + " B/s"; }
std::string exact(Seconds time) { return exact(time / Seconds{1}) + " s"; }

/// One pass of a microbatch through each stage and back, on its slowest device.
std::vector<Seconds> stage_times(const Scenario& scenario) {
  const BuiltPrograms built = build_programs(
      {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
  std::vector<Seconds> times(static_cast<std::size_t>(scenario.plan.parallel.pipeline));
  for (std::size_t d = 0; d < built.cost_of_device.size(); ++d) {
    Seconds time{};
    for (const ChunkCost& chunk : built.cost_of_device[d].chunks)
      time += chunk.forward.duration + chunk.backward.duration;
    Seconds& slowest = times[scenario.plan.devices[d].stage.index()];
    slowest = std::max(slowest, time);
  }
  return times;
}

/// Whether everything in `value` was read from the file, or is a default.
bool is_all_of(const SourceText* file, const JsonValue& value) {
  if (value.origin.kind != OriginKind::defaulted &&
      (value.origin.kind != OriginKind::file || value.origin.source.get() != file))
    return false;
  if (value.is_array())
    return std::all_of(value.array().begin(), value.array().end(),
                       [file](const JsonValue& each) { return is_all_of(file, each); });
  if (!value.is_object()) return true;
  return std::all_of(value.object().begin(), value.object().end(),
                     [file](const auto& member) { return is_all_of(file, member.value); });
}

/// The name of a built-in device, where nothing of it was changed; else nothing.
std::optional<std::string> built_in_name(const JsonValue& device, const Library& library) {
  const SourceText* const file = device.origin.source.get();
  if (file == nullptr || !is_all_of(file, device)) return std::nullopt;
  const std::filesystem::path path = file->name;
  std::error_code ignored;
  if (!std::filesystem::equivalent(path, library.root / device_files.folder / path.filename(),
                                   ignored))
    return std::nullopt;
  return path.stem().string();
}

/// A part of the resolved scenario as a person would write it: without defaults, sources and descriptions, built-in devices by name.
JsonValue written(const JsonValue& value, const Library& library) {
  if (value.is_array()) {
    JsonValue::Array list;
    for (const JsonValue& each : value.array()) list.push_back(written(each, library));
    return JsonValue(std::move(list));
  }
  if (!value.is_object()) return value;
  JsonValue object{JsonValue::Object{}};
  for (const JsonValue::Member& member : value.object()) {
    const JsonValue& inner = member.value;
    const bool is_nested = inner.is_object() || inner.is_array();
    if (member.key == "source" || member.key == "description" ||
        (!is_nested && inner.origin.kind == OriginKind::defaulted))
      continue;
    const auto name = member.key == "device" ? built_in_name(inner, library) : std::nullopt;
    object.set(member.key, name ? JsonValue(*name) : written(inner, library));
  }
  return object;
}

/// Collects the changes of one scenario.
class WhatIfCollector {
 public:
  WhatIfCollector(const Scenario& scenario, const Library& library)
      : scenario_(scenario), plan_(scenario.plan), stage_times_(stage_times(scenario)) {
    if (const JsonValue* list = scenario.resolved.find("platform")->find("node_types"))
      types_ = written(*list, library);
    slowest_ = static_cast<std::size_t>(std::max_element(stage_times_.begin(), stage_times_.end()) -
                                        stage_times_.begin());
    for (const PlanDevice& device : plan_.devices)
      stages_of_node_[device.node.index()].insert(device.stage.index());
    find_kinds();
  }

  std::vector<WhatIf> collect() {
    for (const Kind& kind : kinds_) add_nodes(kind);
    add_fabric();
    add_pairs();
    add_stragglers();
    add_stages();
    add_layers();
    add_software();
    add_experts();
    add_training();
    add_schedule();
    for (WhatIf& change : codec_what_ifs(scenario_)) list_.push_back(std::move(change));
    return std::move(list_);
  }

 private:
  /// Node types in use that differ in nothing but how many there are: what is asked of one is asked of all.
  struct Kind {
    std::vector<std::size_t> types;
    std::size_t num_nodes = 0;
  };

  void add(WhatIfKind kind, std::string what, Overrides overrides) {
    list_.push_back({kind, std::move(what), std::move(overrides)});
  }

  const std::vector<NodeType>& types() const { return scenario_.platform.node_types; }
  std::size_t num_nodes() const { return scenario_.nodes.size(); }
  bool crosses_nodes() const { return num_nodes() > 1; }
  std::size_t type_of(std::size_t node) const { return type_of_node_[node]; }

  void find_kinds() {
    const auto& all = scenario_.platform;
    for (std::size_t node = 0; node < num_nodes(); ++node)
      type_of_node_.push_back(
          static_cast<std::size_t>(&all.type_of(NodeId{node}) - types().data()));
    std::map<std::size_t, std::size_t> nodes_of_type;
    for (const auto& [node, stages] : stages_of_node_) ++nodes_of_type[type_of(node)];
    std::map<std::string, std::size_t> known;
    for (const auto& [type, nodes] : nodes_of_type) {
      const auto [found, is_new] = known.try_emplace(text_without_count(type), kinds_.size());
      if (is_new) kinds_.emplace_back();
      kinds_[found->second].types.push_back(type);
      kinds_[found->second].num_nodes += nodes;
      ++types_with_device_[types()[type].device.name];
    }
  }

  /// The file has one type for all domains of a platform, of which the last may be smaller.
  bool has_domains() const { return scenario_.platform.domain_nodes > 1; }

  bool knows_flash() const {
    const Precision precision = base_precision(plan_.training.precision);
    return std::all_of(scenario_.nodes.begin(), scenario_.nodes.end(), [&](const NodeType& node) {
      return scenario_.software.overrides_flash(node.device) ||
             node.device.has_attention(precision);
    });
  }

  /// Where it cannot be told, each type is a kind of its own.
  std::string text_without_count(std::size_t type) const {
    if (has_domains()) return {};
    if (!types_.is_array()) return std::to_string(type);
    JsonValue text = types_.array()[type];
    text.erase("count");
    return canonical_text(text);
  }

  /// A kind of node in use: its device, or where several types have that device, its nodes.
  std::string label_of(const Kind& kind) const {
    constexpr std::size_t most_named = 3;
    if (types_with_device_.at(types()[kind.types.front()].device.name) == kind.types.size())
      return types()[kind.types.front()].device.name;
    std::string label;
    for (std::size_t i = 0; i < std::min(most_named, kind.types.size()); ++i)
      label += (i == 0 ? "" : ", ") + nodes_text(kind.types[i]);
    return kind.types.size() > most_named ? label + " and others like them" : label;
  }
  std::string nodes_text(std::size_t type) const {
    const auto first = std::find(type_of_node_.begin(), type_of_node_.end(), type);
    const auto end =
        std::find_if(first, type_of_node_.end(), [&](std::size_t other) { return other != type; });
    const auto number = [&](auto node) { return std::to_string(node - type_of_node_.begin()); };
    return first + 1 == end ? "node " + number(first)
                            : "nodes " + number(first) + " to " + number(end - 1);
  }

  /// Makes nodes of a kind faster: `change` says what to set in a type.
  void add_faster(const Kind& kind, WhatIfKind about, std::string what,
                  const std::function<Overrides(const NodeType&)>& change) {
    WhatIf what_if{about, std::move(what), {}, kind.types};
    for (const std::size_t type : kind.types) {
      if (type > 0 && has_domains()) continue;
      for (const auto& [key, value] : change(types()[type]))
        what_if.overrides.emplace_back("/platform/node_types/" + std::to_string(type) + "/" + key,
                                       value);
    }
    list_.push_back(std::move(what_if));
  }

  void add_nodes(const Kind& kind) {
    const NodeType& first = types()[kind.types.front()];
    const std::string of = kinds_.size() > 1 ? " (" + label_of(kind) + ")" : "";
    add_faster(kind, WhatIfKind::gpu, "GPUs 10 % faster" + of, [](const NodeType& type) {
      return Overrides{{"compute_efficiency", exact(type.compute_efficiency * faster)}};
    });
    if (first.gpus > 1 && plan_.num_ranks() > 1) add_inside(kind, of);
    if (crosses_nodes() && can_double(first.nic_rate))
      add_faster(kind, WhatIfKind::nic, "twice the NIC rate" + of, [](const NodeType& type) {
        return Overrides{{"nic_rate", exact(type.nic_rate * 2)}};
      });
  }

  void add_inside(const Kind& kind, const std::string& of) {
    const Interconnect& first = types()[kind.types.front()].interconnect;
    if (can_double(first.saturated_bandwidth) && can_double(first.point_to_point))
      add_faster(kind, WhatIfKind::link, "twice the bandwidth inside nodes" + of,
                 [](const NodeType& type) {
                   const Interconnect& inside = type.interconnect;
                   Overrides doubled{
                       {"interconnect/saturated_bandwidth", exact(inside.saturated_bandwidth * 2)},
                       {"interconnect/point_to_point", exact(inside.point_to_point * 2)}};
                   if (inside.all_to_all > BytesPerSecond{0} && can_double(inside.all_to_all))
                     doubled.emplace_back("interconnect/all_to_all", exact(inside.all_to_all * 2));
                   return doubled;
                 });
    add_faster(
        kind, WhatIfKind::link, "half the latency inside nodes" + of, [](const NodeType& type) {
          const Interconnect& inside = type.interconnect;
          return Overrides{
              {"interconnect/floor_base", exact(inside.floor_base / 2)},
              {"interconnect/floor_per_gpu", exact(inside.floor_per_gpu / 2)},
              {"interconnect/point_to_point_latency", exact(inside.point_to_point_latency / 2)}};
        });
  }

  void add_fabric() {
    if (!crosses_nodes()) return;
    const Fabric& fabric = scenario_.platform.fabric;
    add(WhatIfKind::link, "half the latency between nodes",
        {{"/platform/fabric/latency", exact(fabric.latency / 2)},
         {"/platform/fabric/collective_latency", exact(fabric.collective_latency / 2)}});
    add(WhatIfKind::link, "no latency between nodes",
        {{"/platform/fabric/latency", "0 us"}, {"/platform/fabric/collective_latency", "0 us"}});
    if (!fabric.kind->what_ifs) return;
    for (const FabricWhatIf& what_if : fabric.kind->what_ifs(fabric))
      add(WhatIfKind::link, what_if.label,
          {{"/platform/fabric/" + what_if.key, exact(what_if.value)}});
  }

  /// Measured pairs of nodes, and links with a rate of their own.
  void add_pairs() {
    if (!crosses_nodes()) return;
    const Platform& platform = scenario_.platform;
    if (platform.matrix) {
      if (2 * platform.matrix->rails <= most_node_parts)
        add(WhatIfKind::link, "twice the rate between every pair of nodes",
            {{"/platform/bandwidth_matrix/rails", std::to_string(2 * platform.matrix->rails)}});
      add(WhatIfKind::link, "every pair of nodes at NIC rate",
          {{"/platform/bandwidth_matrix", "null"}});
    }
    if (platform.link_overrides.empty()) return;
    Overrides doubled;
    for (std::size_t i = 0; i < platform.link_overrides.size(); ++i)
      doubled.emplace_back("/platform/link_overrides/" + std::to_string(i) + "/bandwidth",
                           exact(clamped(platform.link_overrides[i].bandwidth * 2)));
    add(WhatIfKind::link, "twice the rate of links with rates of their own", doubled);
    add(WhatIfKind::link, "no links with rates of their own",
        {{"/platform/link_overrides", "null"}});
  }

  /// The platform's node types when the GPUs of each node in use are `factor(node)` times as fast.
  std::optional<std::string> types_with(const std::function<double(std::size_t)>& factor) const {
    if (!types_.is_array()) return std::nullopt;
    JsonValue::Array changed;
    std::vector<int> used(types().size());
    for (std::size_t node = 0, end = 0; node < num_nodes(); node = end) {
      const std::size_t type = type_of(node);
      for (end = node; end < num_nodes() && type_of(end) == type && factor(end) == factor(node);)
        ++end;
      JsonValue& run = changed.emplace_back(types_.array()[type]);
      run.set("count", JsonValue(static_cast<std::int64_t>(end - node)));
      if (factor(node) != 1)
        run.set("compute_efficiency", JsonValue(types()[type].compute_efficiency * factor(node)));
      used[type] += static_cast<int>(end - node);
    }
    for (std::size_t type = type_of(num_nodes() - 1); type < types().size(); ++type) {
      const int count = types()[type].count;
      if (count <= used[type]) continue;  // 0: as many as are asked for, which is these
      JsonValue& rest = changed.emplace_back(types_.array()[type]);
      rest.set("count", JsonValue(std::int64_t{count - used[type]}));
    }
    return canonical_text(JsonValue(std::move(changed)));
  }

  void add_speeds(WhatIfKind kind, std::string what,
                  const std::function<double(std::size_t)>& factor) {
    if (const auto types = types_with(factor))
      add(kind, std::move(what), {{"/platform/node_types", *types}});
  }

  /// A node 10 % slower than its type: the first, and one of the slowest stage. And all nodes of one type.
  void add_stragglers() {
    if (!crosses_nodes() || has_domains()) return;
    std::set<std::size_t> stragglers{0};
    for (const auto& [node, stages] : stages_of_node_)
      if (stages.count(slowest_) > 0) {
        stragglers.insert(node);
        break;
      }
    for (const std::size_t straggler : stragglers)
      add_speeds(WhatIfKind::straggler, "node " + std::to_string(straggler) + " 10 % slower",
                 [=](std::size_t node) { return node == straggler ? slower : 1; });
    add_one_kind();
  }

  double speed_of(const Kind& kind) const {
    const NodeType& type = types()[kind.types.front()];
    return type.compute_efficiency * type.device.gemm.peak_fraction *
           (type.device.peak.at(plan_.training.precision) / FlopsPerSecond{1});
  }

  void add_one_kind() {
    if (kinds_.size() <= most_kinds_each) {
      for (const Kind& kind : kinds_) add_one_kind(kind);
      return;
    }
    const auto frequent =
        std::max_element(kinds_.begin(), kinds_.end(),
                         [](const Kind& a, const Kind& b) { return a.num_nodes < b.num_nodes; });
    const auto fast = std::max_element(
        kinds_.begin(), kinds_.end(),
        [this](const Kind& a, const Kind& b) { return speed_of(a) < speed_of(b); });
    add_one_kind(*frequent);
    if (fast != frequent) add_one_kind(*fast);
  }

  void add_one_kind(const Kind& kind) {
    const int gpus = types()[kind.types.front()].gpus;
    const bool alike = std::all_of(kinds_.begin(), kinds_.end(), [&](const Kind& other) {
      return types()[other.types.front()].gpus == gpus;
    });
    if (kinds_.size() < 2 || !alike || !types_.is_array()) return;
    JsonValue one = types_.array()[kind.types.front()];
    one.set("count", JsonValue(static_cast<std::int64_t>(std::max<int>(
                         scenario_.platform.available_nodes(), static_cast<int>(num_nodes())))));
    add(WhatIfKind::straggler, "every node as " + label_of(kind),
        {{"/platform/node_types", canonical_text(JsonValue(JsonValue::Array{one}))}});
  }

  /// A stage's nodes 10 % faster, where they are its own.
  void add_stages() {
    const int stages = plan_.parallel.pipeline;
    if (stages == 1 || !crosses_nodes()) return;
    for (std::size_t s = 0; s < stage_times_.size(); ++s) {
      const bool each =
          stages <= most_stages_each || s == 0 || s == slowest_ || s + 1 == stage_times_.size();
      const bool alone = std::all_of(
          stages_of_node_.begin(), stages_of_node_.end(),
          [s](const auto& node) { return node.second.count(s) == 0 || node.second.size() == 1; });
      if (each && alone)
        add_speeds(WhatIfKind::stage, "stage " + std::to_string(s) + " 10 % faster",
                   [this, s](std::size_t node) {
                     const auto found = stages_of_node_.find(node);
                     return found != stages_of_node_.end() && found->second.count(s) > 0 ? faster
                                                                                         : 1;
                   });
    }
  }

  /// A layer from the first, the last, the slowest and the fullest stage to the one that is fastest.
  void add_layers() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline == 1 || parallel.virtual_pipeline > 1) return;
    const auto fastest = static_cast<std::size_t>(
        std::min_element(stage_times_.begin(), stage_times_.end()) - stage_times_.begin());
    const auto fullest = static_cast<std::size_t>(
        std::max_element(plan_.stage_layers.begin(), plan_.stage_layers.end()) -
        plan_.stage_layers.begin());
    for (const std::size_t from :
         std::set<std::size_t>{0, slowest_, fullest, stage_times_.size() - 1})
      move_layer(from, fastest);
  }
  void move_layer(std::size_t from, std::size_t to) {
    std::vector<int> layers = plan_.stage_layers;
    if (layers[from] < 2 || from == to) return;
    --layers[from];
    ++layers[to];
    JsonValue::Array list;
    for (const int count : layers) list.emplace_back(std::int64_t{count});
    add(WhatIfKind::stage,
        "a layer of stage " + std::to_string(from) + " on stage " + std::to_string(to),
        {{"/parallel/stage_layers", canonical_text(JsonValue(std::move(list)))}});
  }

  void add_software() {
    const auto& launch = scenario_.software.launch;
    if (launch.kernel + launch.collective > Seconds{0})
      add(WhatIfKind::software, "no launch floor (CUDA graphs)",
          {{"/software/launch/kernel", "0 us"}, {"/software/launch/collective", "0 us"}});
  }

  /// What tokens that are not spread evenly cost, and what their way to experts costs.
  void add_experts() {
    if (!scenario_.model.moe || expert_ways(plan_.parallel) == 1) return;
    if (!scenario_.model.moe->balance.is_even())
      add(WhatIfKind::training, "tokens spread evenly over experts",
          {{"/model/moe/balance", "balanced"}});
    const SoftwareProfile& stack = scenario_.software;
    if (stack.experts_elsewhere.empty() && stack.experts.dispatch == ExpertDispatch::all_to_all &&
        crosses_nodes())
      add(WhatIfKind::software, "one copy of a token a node",
          {{"/software/experts/dispatch", "one_copy_per_node"}});
  }

  void add_training() {
    const Training& training = plan_.training;
    const int size = training.micro_batch;
    const auto sized = [this](const char* what, int samples) {
      add(WhatIfKind::training, std::string(what) + " (" + std::to_string(samples) + ")",
          {{"/training/micro_batch", std::to_string(samples)}});
    };
    const bool any_number = !plan_.parallel.schedule->written;  // its file says how many
    if (any_number && plan_.microbatches % 2 == 0) sized("microbatches twice as large", 2 * size);
    if (any_number && size % 2 == 0) sized("microbatches half as large", size / 2);
    if (training.recompute != Recompute::none)
      add(WhatIfKind::training, "no recomputation", {{"/training/recompute", "none"}});
    if (training.recompute == Recompute::full)
      add(WhatIfKind::training, "selective recomputation", {{"/training/recompute", "selective"}});
    if (training.attention == Attention::standard && knows_flash())
      add(WhatIfKind::training, "FlashAttention", {{"/training/attention", "flash"}});
  }

  void add_schedule() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline > 1) {
      const bool eager = parallel.pipeline_send == PipelineSend::eager;
      add(WhatIfKind::schedule,
          eager ? "exchanges in blocking pairs" : "messages that leave by themselves",
          {{"/parallel/pipeline_send", eager ? "blocking_pairs" : "eager"}});
      if (!parallel.schedule->written) add_order();
    }
    if (parallel.replicas() > 1 && !parallel.overlap_gradient_reduce && parallel.zero_stage < 3)
      add(WhatIfKind::schedule, "gradient reduction beside the backward pass",
          {{"/parallel/overlap_gradient_reduce", "true"}});
  }

  /// The other orders of passes. Two chunks a device need layers and microbatches that divide.
  void add_order() {
    std::vector<SchedulePtr> others = named_schedules();
    std::erase_if(others, [this](const SchedulePtr& each) {
      return !each->is_what_if || each == plan_.parallel.schedule;
    });
    for (const SchedulePtr& each : others)
      if (!each->takes(2))
        add(WhatIfKind::schedule, "schedule " + each->name,
            {{"/parallel/schedule", each->name}, {"/parallel/virtual_pipeline", "1"}});
    const bool even = std::all_of(
        plan_.stage_layers.begin(), plan_.stage_layers.end(),
        [this](int layers) { return layers % 2 == 0 && layers == plan_.stage_layers.front(); });
    for (const SchedulePtr& each : others)
      if (even && each->takes(2) &&
          plan_.microbatches % each->microbatch_group(plan_.parallel.pipeline, 2) == 0)
        add_order_of_two_chunks(*each);
  }
  void add_order_of_two_chunks(const Schedule& schedule) {
    std::string title = "schedule " + schedule.name + ", two chunks a device";
    Overrides overrides{{"/parallel/schedule", schedule.name}, {"/parallel/virtual_pipeline", "2"}};
    if (!schedule.allows_blocking_pairs &&
        plan_.parallel.pipeline_send == PipelineSend::blocking_pairs) {
      title += ", messages that leave by themselves";
      overrides.emplace_back("/parallel/pipeline_send", "eager");
    }
    add(WhatIfKind::schedule, std::move(title), std::move(overrides));
  }

  const Scenario& scenario_;
  const Plan& plan_;
  JsonValue types_;  ///< node types as written
  std::vector<Seconds> stage_times_;
  std::size_t slowest_ = 0;
  std::map<std::size_t, std::set<std::size_t>> stages_of_node_;
  std::vector<std::size_t> type_of_node_;
  std::vector<Kind> kinds_;
  std::map<std::string, std::size_t> types_with_device_;  ///< in use, by name of the device
  std::vector<WhatIf> list_;
};

}  // namespace

std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library) {
  return WhatIfCollector(scenario, library).collect();
}

}  // namespace windtunnel
