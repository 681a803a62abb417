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

constexpr double faster = 1.1,
                 slower = 0.9;  // ten percent: enough to see, little enough to be near
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
  }

  std::vector<WhatIf> collect() {
    for (const std::size_t type : types_in_use()) add_nodes(type);
    add_fabric();
    add_pairs();
    add_stragglers();
    add_stages();
    add_layers();
    add_software();
    add_training();
    add_schedule();
    for (WhatIf& change : codec_what_ifs(scenario_)) list_.push_back(std::move(change));
    return std::move(list_);
  }

 private:
  void add(WhatIfKind kind, std::string what, Overrides overrides) {
    list_.push_back({kind, std::move(what), std::move(overrides)});
  }

  const std::vector<NodeType>& types() const { return scenario_.platform.node_types; }
  std::size_t num_nodes() const { return scenario_.nodes.size(); }
  bool crosses_nodes() const { return num_nodes() > 1; }
  std::size_t type_of(std::size_t node) const {
    return static_cast<std::size_t>(&scenario_.platform.type_of(NodeId{node}) - types().data());
  }

  std::set<std::size_t> types_in_use() const {
    std::set<std::size_t> used;
    for (const PlanDevice& device : plan_.devices) used.insert(type_of(device.node.index()));
    return used;
  }

  /// A type in use: its device, or where several types have that device, its nodes.
  std::string label_of(std::size_t index) const {
    const std::set<std::size_t> used = types_in_use();
    const std::string& device = types()[index].device.name;
    const auto has_device = [&](std::size_t type) { return types()[type].device.name == device; };
    if (std::count_if(used.begin(), used.end(), has_device) == 1) return device;
    std::size_t first = 0;
    while (type_of(first) != index) ++first;
    std::size_t last = first;
    while (last + 1 < num_nodes() && type_of(last + 1) == index) ++last;
    return first == last ? "node " + std::to_string(first)
                         : "nodes " + std::to_string(first) + " to " + std::to_string(last);
  }

  void add_nodes(std::size_t index) {
    const NodeType& type = types()[index];
    const std::string at = "/platform/node_types/" + std::to_string(index);
    const std::string of = types_in_use().size() > 1 ? " (" + label_of(index) + ")" : "";
    const Interconnect& inside = type.interconnect;
    add(WhatIfKind::gpu, "GPUs 10 % faster" + of,
        {{at + "/compute_efficiency", exact(type.compute_efficiency * faster)}});
    if (type.gpus > 1 && plan_.num_ranks() > 1) {
      if (can_double(inside.saturated_bandwidth) && can_double(inside.point_to_point))
        add(WhatIfKind::link, "twice the bandwidth inside nodes" + of,
            {{at + "/interconnect/saturated_bandwidth", exact(inside.saturated_bandwidth * 2)},
             {at + "/interconnect/point_to_point", exact(inside.point_to_point * 2)}});
      add(WhatIfKind::link, "half the latency inside nodes" + of,
          {{at + "/interconnect/floor_base", exact(inside.floor_base / 2)},
           {at + "/interconnect/floor_per_gpu", exact(inside.floor_per_gpu / 2)},
           {at + "/interconnect/point_to_point_latency",
            exact(inside.point_to_point_latency / 2)}});
    }
    if (crosses_nodes() && can_double(type.nic_rate))
      add(WhatIfKind::nic, "twice the NIC rate" + of,
          {{at + "/nic_rate", exact(type.nic_rate * 2)}});
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
    if (!crosses_nodes()) return;
    std::set<std::size_t> stragglers{0};
    for (const auto& [node, stages] : stages_of_node_)
      if (stages.count(slowest_) > 0) {
        stragglers.insert(node);
        break;
      }
    for (const std::size_t straggler : stragglers)
      add_speeds(WhatIfKind::straggler, "node " + std::to_string(straggler) + " 10 % slower",
                 [=](std::size_t node) { return node == straggler ? slower : 1; });
    for (const std::size_t type : types_in_use()) add_one_type(type);
  }

  void add_one_type(std::size_t index) {
    const std::set<std::size_t> used = types_in_use();
    const bool alike = std::all_of(used.begin(), used.end(), [&](std::size_t type) {
      return types()[type].gpus == types()[index].gpus;
    });
    if (used.size() < 2 || !alike || !types_.is_array()) return;
    JsonValue one = types_.array()[index];
    one.set("count", JsonValue(static_cast<std::int64_t>(std::max<int>(
                         scenario_.platform.available_nodes(), static_cast<int>(num_nodes())))));
    add(WhatIfKind::straggler, "every node as " + label_of(index),
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
    if (launch.layer_forward + launch.layer_backward + launch.collective > Seconds{0})
      add(WhatIfKind::software, "no launch floor (CUDA graphs)",
          {{"/software/launch/layer_forward", "0 us"},
           {"/software/launch/layer_backward", "0 us"},
           {"/software/launch/collective", "0 us"}});
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
    if (training.attention == Attention::standard && scenario_.software.flash_forward_efficiency)
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
    if (parallel.data > 1 && !parallel.overlap_gradient_reduce && parallel.zero_stage < 3)
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
  std::vector<WhatIf> list_;
};

}  // namespace

std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library) {
  return WhatIfCollector(scenario, library).collect();
}

}  // namespace windtunnel
