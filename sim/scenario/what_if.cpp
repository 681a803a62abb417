#include "scenario/what_if.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <type_traits>

#include "scenario/compression_json.hpp"
#include "scenario/forked.hpp"

namespace windtunnel {
namespace {

constexpr double faster = 1.1,
                 slower = 0.9;  // ten percent: enough to see, little enough to be near

std::string exact(double number) { return canonical_text(JsonValue(number)); }
std::string exact(BytesPerSecond rate) { return exact(rate / BytesPerSecond{1}) + " B/s"; }

/// Collects the changes of one scenario.
class Asker {
 public:
  explicit Asker(const Scenario& scenario) : scenario_(scenario), plan_(scenario.plan) {}

  std::vector<WhatIf> ask() {
    for (const std::size_t type : types_in_use()) ask_of_nodes(type);
    ask_of_fabric();
    ask_of_straggler();
    ask_of_software();
    ask_of_stages();
    ask_of_habits();
    ask_of_compression();
    return std::move(list_);
  }

 private:
  void add(std::string what, std::vector<std::pair<std::string, std::string>> overrides) {
    list_.push_back({std::move(what), std::move(overrides)});
  }

  const std::vector<NodeType>& types() const { return scenario_.platform.node_types; }
  bool crosses_nodes() const { return scenario_.nodes.size() > 1; }

  std::set<std::size_t> types_in_use() const {
    std::set<std::size_t> used;
    for (const PlanDevice& device : plan_.devices)
      used.insert(
          static_cast<std::size_t>(&scenario_.platform.type_of(device.node) - types().data()));
    return used;
  }

  void ask_of_nodes(std::size_t index) {
    const NodeType& type = types()[index];
    const std::string at = "/platform/node_types/" + std::to_string(index);
    const std::string& name = type.device.name;
    add("GPUs 10 % faster (" + name + ")",
        {{at + "/compute_efficiency", exact(type.compute_efficiency * faster)}});
    if (plan_.parallel.tensor > 1 || plan_.parallel.data > 1)
      add("twice the bandwidth inside nodes (" + name + ")",
          {{at + "/interconnect/saturated_bandwidth",
            exact(type.interconnect.saturated_bandwidth * 2)},
           {at + "/interconnect/point_to_point", exact(type.interconnect.point_to_point * 2)}});
    if (crosses_nodes())
      add("twice the NIC rate (" + name + ")", {{at + "/nic_rate", exact(type.nic_rate * 2)}});
  }

  void ask_of_fabric() {
    if (!crosses_nodes()) return;
    const Platform& platform = scenario_.platform;
    add("no latency between nodes",
        {{"/platform/fabric/latency", "0 us"}, {"/platform/fabric/collective_latency", "0 us"}});
    if (platform.fabric.oversubscription > 1)
      add("no oversubscription of leaf switches", {{"/platform/fabric/oversubscription", "1"}});
    if (platform.matrix)
      add("every pair of nodes at NIC rate", {{"/platform/bandwidth_matrix", "null"}});
    if (!platform.link_overrides.empty())
      add("no links with rates of their own", {{"/platform/link_overrides", "null"}});
  }

  /// The first node, 10 % slower than its type.
  void ask_of_straggler() {
    const JsonValue* list = scenario_.resolved.find("platform")->find("node_types");
    if (!crosses_nodes() || list == nullptr || !list->is_array()) return;
    JsonValue types_then = *list;
    JsonValue slow = types_then.array().front();
    slow.set("count", JsonValue(std::int64_t{1}));
    slow.set("compute_efficiency", JsonValue(types().front().compute_efficiency * slower));
    JsonValue& rest = types_then.array().front();
    const int count = types().front().count;
    if (count == 1)
      types_then.array().front() = slow;
    else {
      if (count > 0) rest.set("count", JsonValue(std::int64_t{count - 1}));
      types_then.array().insert(types_then.array().begin(), slow);
    }
    add("node 0 10 % slower", {{"/platform/node_types", canonical_text(types_then)}});
  }

  void ask_of_software() {
    const auto& launch = scenario_.software.launch;
    if (launch.layer_forward + launch.layer_backward + launch.collective > Seconds{0})
      add("no launch floor (CUDA graphs)", {{"/software/launch/layer_forward", "0 us"},
                                            {"/software/launch/layer_backward", "0 us"},
                                            {"/software/launch/collective", "0 us"}});
  }

  /// A layer from the stage that has most to the one that has least, embedding and head counted as one each.
  void ask_of_stages() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline == 1 || parallel.virtual_pipeline > 1) return;
    std::vector<int> load = plan_.stage_layers;
    ++load.front();
    ++load.back();
    const auto most = std::max_element(load.begin(), load.end()) - load.begin();
    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
    for (std::size_t s = 0; s < load.size(); ++s) {
      const bool edge = s == 0 || s + 1 == load.size() || s == static_cast<std::size_t>(most);
      if (edge) move_layer(s, static_cast<std::size_t>(least) != s ? least : most);
    }
  }
  void move_layer(std::size_t from, std::ptrdiff_t to) {
    std::vector<int> layers = plan_.stage_layers;
    if (layers[from] < 2 || from == static_cast<std::size_t>(to)) return;
    --layers[from];
    ++layers[static_cast<std::size_t>(to)];
    JsonValue::Array list;
    for (const int count : layers) list.emplace_back(std::int64_t{count});
    add("a layer of stage " + std::to_string(from) + " on stage " + std::to_string(to),
        {{"/parallel/stage_layers", canonical_text(JsonValue(std::move(list)))}});
  }

  void ask_of_habits() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline > 1) {
      const bool eager = parallel.pipeline_send == PipelineSend::eager;
      add(eager ? "exchanges in blocking pairs" : "messages that leave by themselves",
          {{"/parallel/pipeline_send", eager ? "blocking_pairs" : "eager"}});
    }
    if (parallel.data > 1 && !parallel.overlap_gradient_reduce && parallel.zero_stage < 3)
      add("gradient reduction beside the backward pass",
          {{"/parallel/overlap_gradient_reduce", "true"}});
  }

  void ask_of_compression() {
    const JsonValue* compression = scenario_.resolved.find("compression");
    if (compression == nullptr || !compression->is_object()) return;
    for (const char* name : compression_classes) {
      const JsonValue* entry = compression->find(name);
      if (entry != nullptr && !entry->is_null())
        add(std::string("no compression of ") + name,
            {{std::string("/compression/") + name, "null"}});
    }
  }

  const Scenario& scenario_;
  const Plan& plan_;
  std::vector<WhatIf> list_;
};

/// What a child sends home.
struct Figures {
  Seconds iteration_time{};
  Breakdown breakdown;
};
static_assert(std::is_trivially_copyable_v<Figures>);

}  // namespace

std::vector<WhatIf> what_ifs(const Scenario& scenario) { return Asker(scenario).ask(); }

std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done) {
  ForkedWork work;
  work.count = changes.size();
  work.at_once = at_once;
  work.on_done = on_done;
  work.work = [&](std::size_t i) {
    const Scenario changed = read_scenario(scenario.resolved, library.root, library,
                                           {changes[i].overrides, scenario.seed});
    const Report report = simulate(changed).report;
    const Figures figures{report.iteration_time, report.breakdown};
    return std::string(reinterpret_cast<const char*>(&figures), sizeof figures);
  };
  std::vector<WhatIfResult> results;
  for (const ChildOutcome& outcome : run_forked(work)) {
    WhatIfResult& result = results.emplace_back();
    result.change = changes[results.size() - 1];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
      result.failure = failure->text;
      continue;
    }
    Figures figures;
    std::memcpy(&figures, std::get<std::string>(outcome).data(), sizeof figures);
    result.iteration_time = figures.iteration_time;
    result.breakdown = figures.breakdown;
  }
  return results;
}

}  // namespace windtunnel
