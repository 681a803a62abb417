#include <algorithm>
#include <cstdint>
#include <memory>

#include "core/problem.hpp"
#include "cost/collective_cost.hpp"
#include "engine/engine.hpp"
#include "platform/network.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {
namespace {

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus;
  for (int gpu = 0; gpu < count; ++gpu) gpus.push_back(gpu);
  return gpus;
}

/// An all-reduce moves everything twice, the others once.
double passes(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_reduce ? 1.0 : 0.5;
}

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

/// Time of a ring's flows between neighbouring nodes, each spread over the nodes' GPUs.
Seconds ring_flows(const CollectiveRun& run, const Platform& platform, Bytes volume,
                   EngineKind kind) {
  struct Flow {
    Route route;
    Bytes bytes;
  };
  Network network(platform, run.nodes);
  std::vector<Flow> flows;
  for (int node = 0; node < run.nodes; ++node)
    for (int gpu = 0; gpu < run.gpus; ++gpu)
      flows.push_back({network.route(Network::Endpoint{NodeId{node}, {gpu}},
                                     Network::Endpoint{NodeId{(node + 1) % run.nodes}, {gpu}}),
                       volume / static_cast<double>(run.gpus)});
  const std::unique_ptr<Engine> engine = make_engine(kind, network);
  LastEnd end(*engine);
  for (const Flow& flow : flows) engine->start_flow(flow.route.up, flow.route.down, flow.bytes, 0);
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

Seconds collective_time(const CollectiveRun& run, const Platform& platform, EngineKind engine) {
  const double share = passes(run.operation);
  const Bytes payload = run.payload * share;  // of an all-reduce that moves as much
  Seconds in_node{};
  for (int node = 0; node < run.nodes; ++node)
    in_node = std::max(in_node, in_node_all_reduce(platform.type_of(NodeId{node}).interconnect,
                                                   first_gpus(run.gpus), payload));
  if (run.nodes == 1) return in_node;
  bool is_tree = run.operation == CollectiveOperation::all_reduce;
  for (int node = 0; node < run.nodes; ++node)
    is_tree = is_tree && platform.type_of(NodeId{node}).interconnect.reduces_in_switch;
  const NodeCrossing crossing =
      all_reduce_crossing(payload, run.gpus * run.nodes, run.nodes, is_tree);
  const Seconds latency = platform.fabric.collective_latency * (crossing.hops * share);
  return std::max(in_node, latency + ring_flows(run, platform, crossing.volume, engine));
}

PointPrediction predict_collective(const CollectiveRun& run, const JsonValue& scenario,
                                   const std::filesystem::path& folder, const Library& library,
                                   const ReadOptions& reading, EngineKind engine) {
  const Scenario read = read_scenario(platform_scenario(scenario), folder, library, reading);
  require_size(run);
  require_gpus(run, read.platform);
  PointPrediction prediction;
  prediction.time = collective_time(run, read.platform, engine);
  prediction.ideal_work = Flops{ring_all_reduce_volume(run.payload, run.gpus * run.nodes) *
                                passes(run.operation) / Bytes{1}};
  for (const auto& [key, source] : read.platform.sources)
    if (source.evidence == Evidence::fitted)
      prediction.fitted.push_back({"platform " + read.platform.name + ": " + key, source.text});
  return prediction;
}

}  // namespace windtunnel
