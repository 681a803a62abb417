#include "scenario/balanced_stages.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/contracts.hpp"
#include "cost/stage_cost.hpp"
#include "memory/memory_account.hpp"
#include "plan/stage_split.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {
namespace {

class StageJudge {
 public:
  explicit StageJudge(const BalanceInputs& in) : in_(in), plan_(*in.plan) {
    const auto stages = static_cast<std::size_t>(plan_.parallel.pipeline);
    devices_of_stage_.resize(stages);
    memory_.model = in.model;
    memory_.plan = &plan_;
    memory_.software = in.software;
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

  StageOption with_layers(StageId stage, int layers) {
    plan_.stage_layers[stage.index()] = layers;
    StageOption option;
    for (const PlanDevice* device : devices_of_stage_[stage.index()])
      option.time = std::max(option.time, time_on(*device, layers));
    option.fits = account_stage(memory_, stage).verdict != MemoryVerdict::does_not_fit;
    return option;
  }

 private:
  const NodeType& type_of(const PlanDevice& device) const {
    return in_.platform->type_of(device.node);
  }

  /// The same layers and role on the same kind of node, on the same GPUs where their wiring counts, take the same time.
  using Key = std::tuple<int, bool, bool, const NodeType*, std::vector<int>>;

  Seconds time_on(const PlanDevice& device, int layers) {
    const NodeType& node = type_of(device);
    const bool position_matters = node.interconnect.kind == Interconnect::Kind::mesh;
    const Key key{layers, plan_.has_embedding(device.stage), plan_.has_head(device.stage), &node,
                  position_matters ? device.gpus : std::vector<int>{}};
    const auto [known, is_new] = time_of_.try_emplace(key);
    if (is_new) known->second = pass_time(device, node);
    return known->second;
  }

  Seconds pass_time(const PlanDevice& device, const NodeType& node) const {
    const StageCost cost = stage_cost({in_.model,
                                       &plan_,
                                       in_.software,
                                       &node,
                                       &in_.platform->fabric,
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

  const BalanceInputs in_;
  Plan plan_;
  std::vector<std::vector<const PlanDevice*>> devices_of_stage_;
  MemoryInputs memory_;
  std::map<Key, Seconds> time_of_;
};

}  // namespace

std::vector<int> balanced_stage_layers(const BalanceInputs& in) {
  const int chunks = in.plan->parallel.virtual_pipeline, parts = in.model->layers / chunks;
  WT_EXPECT(parts * chunks == in.model->layers);
  StageJudge judge(in);
  std::vector<std::vector<StageOption>> options;
  for (int s = 0; s < in.plan->parallel.pipeline; ++s) {
    options.emplace_back();
    for (int n = 0; n <= parts; ++n)
      options.back().push_back(judge.with_layers(StageId{s}, n * chunks));
  }
  std::vector<int> layers = split_stages(options);
  for (int& count : layers) count *= chunks;
  return layers;
}

}  // namespace windtunnel
