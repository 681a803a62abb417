#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lower/program_builder.hpp"
#include "questions/what_if_parts.hpp"

namespace windtunnel {
namespace {

constexpr double faster = what_if_faster,
                 slower = 0.9;  // ten percent: enough to see, little enough to be near
/// Of more kinds of node only the most frequent and the fastest are asked about as the kind of all.
constexpr std::size_t most_kinds_each = 16;
/// Of a deeper pipeline only the first, the slowest and the last stage are asked about one by one.
constexpr int most_stages_each = 16;

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

class StageWhatIfs {
 public:
  StageWhatIfs(const Scenario& scenario, const NodeKinds& kinds)
      : scenario_(scenario),
        plan_(scenario.plan),
        kinds_(kinds),
        stage_times_(stage_times(scenario)) {
    slowest_ = static_cast<std::size_t>(std::max_element(stage_times_.begin(), stage_times_.end()) -
                                        stage_times_.begin());
    for (const PlanDevice& device : plan_.devices)
      stages_of_node_[device.node.index()].insert(device.stage.index());
  }

  std::vector<WhatIf> collect() {
    add_stragglers();
    add_stages();
    add_layers();
    return list_.take();
  }

 private:
  bool crosses_nodes() const { return scenario_.nodes.size() > 1; }

  void add_speeds(WhatIfKind kind, std::string what,
                  const std::function<double(std::size_t)>& factor) {
    if (const auto types = kinds_.types_with(factor))
      list_.add(kind, std::move(what), {{"/platform/node_types", *types}});
  }

  /// A node 10 % slower than its type: the first, and one of the slowest stage. And all nodes of one type.
  void add_stragglers() {
    if (!crosses_nodes() || kinds_.has_domains()) return;
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

  double speed_of(const NodeKind& kind) const {
    const NodeType& type = kinds_.first_of(kind);
    return type.compute_efficiency * type.device.gemm.peak_fraction *
           (type.device.peak.at(plan_.training.precision) / FlopsPerSecond{1});
  }

  void add_one_kind() {
    const std::vector<NodeKind>& kinds = kinds_.kinds();
    if (kinds.size() <= most_kinds_each) {
      for (const NodeKind& kind : kinds) add_one_kind(kind);
      return;
    }
    const auto frequent = std::max_element(
        kinds.begin(), kinds.end(),
        [](const NodeKind& a, const NodeKind& b) { return a.num_nodes < b.num_nodes; });
    const auto fast = std::max_element(
        kinds.begin(), kinds.end(),
        [this](const NodeKind& a, const NodeKind& b) { return speed_of(a) < speed_of(b); });
    add_one_kind(*frequent);
    if (fast != frequent) add_one_kind(*fast);
  }

  void add_one_kind(const NodeKind& kind) {
    const std::vector<NodeKind>& kinds = kinds_.kinds();
    const int gpus = kinds_.first_of(kind).gpus;
    const bool alike = std::all_of(kinds.begin(), kinds.end(), [&](const NodeKind& other) {
      return kinds_.first_of(other).gpus == gpus;
    });
    if (kinds.size() < 2 || !alike) return;
    if (const auto types = kinds_.all_of(kind))
      list_.add(WhatIfKind::straggler, "every node as " + kinds_.label_of(kind),
                {{"/platform/node_types", *types}});
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
    list_.add(WhatIfKind::stage,
              "a layer of stage " + std::to_string(from) + " on stage " + std::to_string(to),
              {{"/parallel/stage_layers", canonical_text(JsonValue(std::move(list)))}});
  }

  const Scenario& scenario_;
  const Plan& plan_;
  const NodeKinds& kinds_;
  std::vector<Seconds> stage_times_;
  std::size_t slowest_ = 0;
  std::map<std::size_t, std::set<std::size_t>> stages_of_node_;
  WhatIfList list_;
};

}  // namespace

std::vector<WhatIf> stage_what_ifs(const Scenario& scenario, const NodeKinds& kinds) {
  return StageWhatIfs(scenario, kinds).collect();
}

}  // namespace windtunnel
