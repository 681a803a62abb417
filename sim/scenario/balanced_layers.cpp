#include "scenario/balanced_layers.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/contracts.hpp"
#include "cost/stage_cost.hpp"
#include "memory/memory_account.hpp"
#include "plan/pipeline_layout.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {
namespace {

/// Time and memory of stages with any number of layers; the plan's own stage_layers do not matter.
class StageJudge {
 public:
  StageJudge(const Scenario& scenario, const Plan& plan) : scenario_(scenario), plan_(plan) {
    plan_.position_layers = {};
    const auto stages = static_cast<std::size_t>(plan_.parallel.pipeline);
    devices_of_stage_.resize(stages);
    memory_.model = &scenario.model;
    memory_.plan = &plan_;
    memory_.software = &scenario.software;
    memory_.device_of_stage.resize(stages);
    for (const PlanDevice& device : plan_.devices) {
      const std::size_t s = device.stage.index();
      devices_of_stage_[s].push_back(&device);
      const Device& candidate = type_of(device).device;
      const Device*& smallest = memory_.device_of_stage[s];
      if (smallest == nullptr || candidate.usable_memory < smallest->usable_memory)
        smallest = &candidate;
    }
    const InFlightOfStages held = count_in_flight(plan_);
    memory_.in_flight = held.all;
    memory_.in_flight_with_gradients = held.with_gradients;
  }

  /// On the slowest kind of GPU that holds the stage.
  Seconds time_of(StageId stage, int layers) {
    plan_.stage_layers[stage.index()] = layers;
    Seconds slowest{};
    for (const PlanDevice* device : devices_of_stage_[stage.index()])
      slowest = std::max(slowest, time_on(*device, layers));
    return slowest;
  }

  bool fits(StageId stage, int layers) {
    plan_.stage_layers[stage.index()] = layers;
    return account_stage(memory_, stage).verdict != MemoryVerdict::does_not_fit;
  }

 private:
  const NodeType& type_of(const PlanDevice& device) const {
    return scenario_.platform.type_of(device.node);
  }

  /// The same layers and role on the same kind of node, on the same GPUs where their wiring counts, take the same time.
  using Key = std::tuple<int, bool, bool, const NodeType*, std::vector<int>>;

  Seconds time_on(const PlanDevice& device, int layers) {
    const NodeType& node = type_of(device);
    const bool position_matters = node.interconnect.kind == Interconnect::Kind::mesh;
    const Key key{layers, plan_.has_embedding(device.stage), plan_.has_head(device.stage), &node,
                  position_matters ? device.gpus : std::vector<int>{}};
    const auto [known, is_new] = times_.try_emplace(key);
    if (is_new) known->second = pass_time(device, node);
    return known->second;
  }

  Seconds pass_time(const PlanDevice& device, const NodeType& node) const {
    const StageCost cost = stage_cost({&scenario_.model,
                                       &plan_,
                                       &scenario_.software,
                                       &node,
                                       &scenario_.platform.fabric,
                                       device.stage,
                                       device.gpus,
                                       {},
                                       {},
                                       {}});
    Seconds time{};
    for (const ChunkCost& chunk : cost.chunks)
      time += chunk.forward.duration + chunk.backward.duration;
    return time;
  }

  const Scenario& scenario_;
  Plan plan_;
  std::vector<std::vector<const PlanDevice*>> devices_of_stage_;
  MemoryInputs memory_;
  std::map<Key, Seconds> times_;
};

/// A stage with each number of parts of `part` layers, none to all of them.
std::vector<StageOption> options_of(StageJudge& judge, StageId stage, int parts, int part,
                                    StageTimes times) {
  std::vector<StageOption> options(static_cast<std::size_t>(parts) + 1);
  const auto time_of = [&](int n) { return judge.time_of(stage, n * part); };
  options.front().time = time_of(0);
  const Seconds one = time_of(1), all = time_of(parts);
  for (int n = 1; n <= parts; ++n)
    options[static_cast<std::size_t>(n)].time =
        times == StageTimes::exact ? time_of(n)
                                   : one + (all - one) * ((n - 1) / std::max(parts - 1.0, 1.0));
  // More layers never take less memory.
  const auto fits = [&](const StageOption& option) {
    return judge.fits(stage, static_cast<int>(&option - options.data()) * part);
  };
  std::for_each(std::partition_point(options.begin(), options.end(), fits), options.end(),
                [](StageOption& option) { option.fits = false; });
  return options;
}

/// Positions of the model one after the other, the first of which have one layer more where the layers do not divide.
LayerSplit even_split(int layers, const ChunkMap& map) {
  const int count = map.num_positions();
  std::vector<int> positions;
  for (int i = 0; i < count; ++i) positions.push_back(layers / count + (i < layers % count));
  return split_of(std::move(positions), map);
}

}  // namespace

LayerSplit balanced_split(const Scenario& scenario, const Plan& plan, StageTimes times) {
  const Parallel& parallel = plan.parallel;
  const int chunks = parallel.virtual_pipeline, parts = scenario.model.layers / chunks;
  WT_EXPECT(parts * chunks == scenario.model.layers);
  StageJudge judge(scenario, plan);
  std::vector<std::vector<StageOption>> options;
  for (int stage = 0; stage < parallel.pipeline; ++stage)
    options.push_back(
        options_of(judge, StageId{static_cast<std::size_t>(stage)}, parts, chunks, times));
  LayerSplit split{split_stages(options), {}};
  for (int& count : split.stages) count *= chunks;
  if (chunks == 1) return split;
  LayerSplit even = even_split(scenario.model.layers, plan.chunk_map());
  if (even.stages.size() != options.size()) return split;
  // Of unequal chunks, between the times of the whole multiples around.
  Seconds slowest_of_even{}, slowest{};
  bool even_fits = true, fits = true;
  for (std::size_t stage = 0; stage < options.size(); ++stage) {
    const auto of = [&](int count) { return options[stage][static_cast<std::size_t>(count)]; };
    const int below = even.stages[stage] / chunks, rest = even.stages[stage] % chunks;
    const StageOption low = of(below), high = of(std::min(below + (rest > 0), parts)),
                      chosen = of(split.stages[stage] / chunks);
    even_fits = even_fits && high.fits;
    fits = fits && chosen.fits;
    slowest_of_even =
        std::max(slowest_of_even, low.time + (high.time - low.time) * (1.0 * rest / chunks));
    slowest = std::max(slowest, chosen.time);
  }
  if (fits && !even_fits) return split;
  return slowest_of_even < slowest ? even : split;
}

std::vector<int> layers_before_balance(int layers, int stages) {
  std::vector<int> by_stage(static_cast<std::size_t>(stages), 0);
  by_stage.front() = layers;
  return by_stage;
}

}  // namespace windtunnel
