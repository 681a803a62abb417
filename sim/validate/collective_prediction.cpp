#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/problem.hpp"
#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"
#include "engine/engine.hpp"
#include "platform/network.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {
namespace {

/// Remembers when the last flow ended.
class LastEnd final : public EventHandler {
 public:
  explicit LastEnd(Engine& engine) : engine_(&engine) {}
  void on_event(std::uint64_t) override { last_ = std::max(last_, engine_->now()); }
  Seconds last() const { return last_; }

 private:
  Engine* engine_;
  Seconds last_{};
};

/// The GPUs that a collective ran on, node by node.
struct Members {
  std::vector<NodeId> nodes;           ///< of each
  std::vector<std::vector<int>> gpus;  ///< of each: itself
};

/// The first `run.gpus` of each of the first nodes. `job` has one node for each NVLink domain of `platform`.
Members members_of(const CollectiveRun& run, const Platform& platform) {
  Members members;
  for (int node = 0; node < run.nodes; ++node) {
    const int domain = node / platform.domain_nodes;
    const int first = node % platform.domain_nodes * platform.node_types.front().gpus;
    for (int gpu = 0; gpu < run.gpus; ++gpu) {
      members.nodes.push_back(NodeId{domain});
      members.gpus.push_back({first + gpu});
    }
  }
  return members;
}

/// Time of flows between members in different nodes.
Seconds play(const std::vector<MemberFlow>& flows, const Members& members, const Platform& job,
             int nodes) {
  Network network(job, nodes);
  const auto endpoint = [&](std::size_t member) {
    return Network::Endpoint{members.nodes[member], members.gpus[member]};
  };
  std::vector<Route> routes;
  for (const MemberFlow& flow : flows)
    routes.push_back(network.route(endpoint(flow.from), endpoint(flow.to)));
  const std::unique_ptr<Engine> engine = make_native_engine(network);
  LastEnd end(*engine);
  for (std::size_t i = 0; i < flows.size(); ++i)
    engine->start_flow(routes[i].up, routes[i].down, flows[i].bytes, 0);
  engine->run(end);
  return end.last();
}

/// The smallest training that a platform can be read with.
JsonValue platform_scenario(const JsonValue& scenario) {
  const auto number = [](std::int64_t value) { return JsonValue(value); };
  JsonValue whole = scenario;
  whole.set("model", JsonValue(JsonValue::Object{}));
  JsonValue& model = *whole.find("model");
  model.set("family", JsonValue(std::string("gpt")));
  for (const auto& [key, value] :
       {std::pair("layers", 1), {"hidden", 64}, {"heads", 1}, {"sequence", 64}, {"vocab", 64}})
    model.set(key, number(value));
  whole.set("training", JsonValue(JsonValue::Object{}));
  for (const char* key : {"global_batch", "micro_batch"})
    whole.find("training")->set(key, number(1));
  return whole;
}

/// InputError when the collective is larger than what is simulated: each GPU sends a flow of its own over the network, which takes
/// some 5 kB.
void require_size(const CollectiveRun& run) {
  constexpr std::int64_t most_gpus = 131'072;
  const std::int64_t gpus = std::int64_t{run.gpus} * run.nodes;
  if (gpus <= most_gpus) return;
  Problem problem;
  problem.message = "a collective on " + std::to_string(run.nodes) + " nodes of " +
                    std::to_string(run.gpus) + " GPUs is more than the " +
                    std::to_string(most_gpus) + " GPUs that one is simulated on";
  throw InputError(std::vector<Problem>(1, problem));
}

/// InputError when the platform has not the GPUs that the collective ran on.
void require_gpus(const CollectiveRun& run, const Platform& platform) {
  const int available = platform.available_nodes();
  const bool enough_nodes = available == 0 || run.nodes <= available;
  const int gpus = platform.type_of(NodeId{0}).gpus;
  if (enough_nodes && run.gpus <= gpus) return;
  Problem problem;
  problem.message = "the collective ran on " + std::to_string(run.gpus) + " GPUs of each of " +
                    std::to_string(run.nodes) + " nodes, but platform \"" + platform.name +
                    "\" has nodes of " + std::to_string(gpus) + " GPUs" +
                    (available == 0 ? "" : ", and " + std::to_string(available) + " of them");
  throw InputError(std::vector<Problem>(1, problem));
}

}  // namespace

Seconds collective_time(const CollectiveRun& run, const Platform& platform) {
  const Platform job = in_domains(platform, run.nodes);
  const Members members = members_of(run, platform);
  const RingLayout layout = ring_layout(members.nodes);
  CollectiveTask task;
  task.work = run.operation == CollectiveOperation::all_reduce ? RingWork::all_reduce
                                                               : RingWork::scatter_or_gather;
  task.payload = run.payload;
  task.layout = &layout;
  task.is_always_ring = run.is_always_ring;
  task.hop = platform.fabric.collective_latency;
  task.reduced_in_switch = std::all_of(
      members.nodes.begin(), members.nodes.end(),
      [&](const NodeId node) { return job.type_of(node).interconnect.reduces_in_switch; });
  task.in_node = [&](Bytes payload, RingWork work) {
    Seconds longest{};
    for (const std::vector<std::size_t>& here : layout.by_node) {
      std::vector<int> gpus;
      for (const std::size_t member : here) gpus.push_back(members.gpus[member].front());
      const Interconnect& wires = job.type_of(members.nodes[here.front()]).interconnect;
      longest = std::max(longest, in_node_ring(wires, gpus, payload, work));
    }
    return longest;
  };
  task.node_rate = [&] {
    return slowest_step(
        job, layout, members.nodes,
        [&](std::size_t member) -> const std::vector<int>& { return members.gpus[member]; });
  };
  const CollectiveSteps steps = flat_ring(task);
  if (steps.flows.empty()) return steps.fixed;
  return std::max(steps.fixed, steps.latency + play(steps.flows, members, job, layout.num_nodes()));
}

PointPrediction predict_collective(const CollectiveRun& run, const JsonValue& scenario,
                                   const std::filesystem::path& folder, const Library& library,
                                   const ReadOptions& reading) {
  const Scenario read = read_scenario(platform_scenario(scenario), folder, library, reading);
  const Platform machine = machine_of(read.platform);
  require_size(run);
  require_gpus(run, machine);
  PointPrediction prediction;
  prediction.time = collective_time(run, machine);
  const double passes = run.operation == CollectiveOperation::all_reduce ? 1.0 : 0.5;
  prediction.ideal_work =
      Flops{ring_all_reduce_volume(run.payload, run.gpus * run.nodes) * passes / Bytes{1}};
  for (const auto& [key, source] : machine.sources)
    if (source.evidence == Evidence::fitted)
      prediction.fitted.push_back({"platform " + machine.name + ": " + key, source.text});
  return prediction;
}

}  // namespace windtunnel
