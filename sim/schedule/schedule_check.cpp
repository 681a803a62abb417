#include "schedule/schedule_check.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/contracts.hpp"
#include "schedule/wait_graph.hpp"

namespace windtunnel {
namespace {

/// Beyond, nothing more is looked for: a short file may announce ten million passes.
constexpr std::size_t most_faults = 1000;
constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

bool has_weight_gradients(const ScheduleOrders& orders) {
  for (const std::vector<Step>& order : orders.of_stage)
    for (const Step& step : order)
      if (step.phase == Phase::weight_gradient) return true;
  return false;
}

/// Numbers the passes of a schedule: as nodes by place, and by what they are.
class PassTable {
 public:
  explicit PassTable(const ScheduleOrders& orders) : orders_(orders) {
    std::size_t next = 0;
    for (const std::vector<Step>& order : orders.of_stage) {
      first_.push_back(next);
      next += order.size();
    }
    first_.push_back(next);
    node_.assign(orders.of_stage.size() * passes_of_stage(), nowhere);
  }

  std::size_t num_nodes() const { return first_.back(); }
  std::size_t node(std::size_t stage, std::size_t position) const {
    return first_[stage] + position;
  }
  std::pair<std::size_t, std::size_t> place(std::size_t node) const {
    const auto above = std::upper_bound(first_.begin(), first_.end(), node);
    const auto stage = static_cast<std::size_t>(above - first_.begin()) - 1;
    return {stage, node - first_[stage]};
  }
  std::string name(std::size_t node) const {
    const auto [stage, position] = place(node);
    return "stage " + std::to_string(stage) + " " + token_of(orders_.of_stage[stage][position]);
  }

  bool is_within(const Step& step) const {
    return step.chunk < chunks() && step.microbatch < microbatches() &&
           orders_.shape.chunk_map().takes(step.chunk, step.microbatch);
  }
  /// The first and the last pass of the block that a pass is in.
  std::size_t first_of_block(std::size_t node) const {
    const auto [stage, position] = place(node);
    std::size_t first = position;
    while (orders_.of_stage[stage][first].joined) --first;
    return node - (position - first);
  }
  std::size_t last_of_block(std::size_t node) const {
    const auto [stage, position] = place(node);
    return node + (end_of_block(orders_.of_stage[stage], position) - 1 - position);
  }
  /// The node of a pass; `nowhere` until it is set.
  std::size_t& at(std::size_t stage, const Step& step) {
    return node_[stage * passes_of_stage() +
                 (static_cast<std::size_t>(step.phase) * chunks() + step.chunk) * microbatches() +
                 step.microbatch];
  }

 private:
  static constexpr std::size_t num_phases = 3;
  std::size_t chunks() const { return static_cast<std::size_t>(orders_.shape.chunks); }
  std::size_t microbatches() const { return static_cast<std::size_t>(orders_.shape.microbatches); }
  std::size_t passes_of_stage() const { return num_phases * chunks() * microbatches(); }

  const ScheduleOrders& orders_;
  std::vector<std::size_t> first_;  ///< node of each stage's first pass; then the number of nodes
  std::vector<std::size_t> node_;
};

/// Looks every pass up once, then what each waits for.
class Examination {
 public:
  explicit Examination(const ScheduleOrders& orders)
      : orders_(orders),
        map_(orders.shape.chunk_map()),
        splits_(has_weight_gradients(orders)),
        table_(orders) {
    WT_EXPECT(orders.of_stage.size() == static_cast<std::size_t>(orders.shape.stages));
    for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
      find_passes(stage);
      find_missing(stage);
    }
  }

  bool splits() const { return splits_; }
  const PassTable& table() const { return table_; }
  std::vector<ScheduleFault> take_faults() { return std::move(faults_); }

  /// There must be no faults so far.
  WaitGraph waits() {
    WaitGraph graph(table_.num_nodes());
    for (std::size_t stage = 0; stage < orders_.of_stage.size(); ++stage) {
      const std::vector<Step>& order = orders_.of_stage[stage];
      for (std::size_t i = 0; i < order.size(); ++i) {
        const std::size_t node = table_.node(stage, i);
        if (i > 0) graph.add({node, node - 1, WaitGraph::Why::order});
        add_inputs(graph, node, stage, order[i]);
      }
    }
    return graph;
  }

 private:
  void fault(std::size_t stage, std::size_t position, const std::string& what) {
    faults_.push_back({StageId{stage}, position, "stage " + std::to_string(stage) + " " + what});
  }

  void find_passes(std::size_t stage) {
    const std::vector<Step>& order = orders_.of_stage[stage];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Step& step = order[i];
      if (!table_.is_within(step)) {
        fault(stage, i, "has " + token_of(step) + ", which is beyond " + bounds());
        continue;
      }
      std::size_t& node = table_.at(stage, step);
      if (node != nowhere) fault(stage, i, "has " + token_of(step) + " twice");
      node = table_.node(stage, i);
    }
  }

  std::string bounds() const {
    return "microbatch " + std::to_string(orders_.shape.microbatches - 1) + " and chunk " +
           std::to_string(orders_.shape.chunks - 1) + ", the last of each";
  }

  void find_missing(std::size_t stage) {
    const auto chunks = static_cast<std::uint16_t>(orders_.shape.chunks);
    const auto microbatches = static_cast<std::uint32_t>(orders_.shape.microbatches);
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::weight_gradient}) {
      if (phase == Phase::weight_gradient && !splits_) continue;
      for (std::uint16_t chunk = 0; chunk < chunks; ++chunk) {
        for (std::uint32_t i = 0; i < microbatches; ++i) {
          const Step step{phase, chunk, i};
          if (!map_.takes(chunk, i)) continue;
          if (faults_.size() >= most_faults) return;
          if (table_.at(stage, step) != nowhere) continue;
          fault(stage, orders_.of_stage[stage].size(),
                "has no " + token_of(step) + why_needed(phase));
        }
      }
    }
  }
  static const char* why_needed(Phase phase) {
    return phase == Phase::weight_gradient
               ? ", and weight gradients stand apart for all passes or for none"
               : "";
  }

  void add_inputs(WaitGraph& graph, std::size_t node, std::size_t stage, const Step& step) {
    const auto wait_for = [&](const std::optional<ChunkPlace>& place, Phase phase) {
      if (!place) return;
      const Step input{phase, static_cast<std::uint16_t>(place->chunk), step.microbatch};
      const std::size_t first = table_.first_of_block(node),
                        last = table_.last_of_block(table_.at(place->stage.index(), input));
      if (last < first || place->stage.index() != stage)
        graph.add({first, last, WaitGraph::Why::input});
      else  // the halves of a backward pass in one block
        graph.add({node, table_.at(stage, input), WaitGraph::Why::input});
    };
    const ChunkPlace here{StageId{stage}, step.chunk};
    switch (step.phase) {
      case Phase::forward:
        return wait_for(map_.previous(here), Phase::forward);
      case Phase::backward:
        wait_for(here, Phase::forward);
        return wait_for(map_.next(here), Phase::backward);
      default:
        return wait_for(here, Phase::backward);
    }
  }

  const ScheduleOrders& orders_;
  ChunkMap map_;
  bool splits_;
  PassTable table_;
  std::vector<ScheduleFault> faults_;
};

}  // namespace

std::vector<ScheduleFault> check_schedule(const ScheduleOrders& orders) {
  Examination examination(orders);
  std::vector<ScheduleFault> faults = examination.take_faults();
  if (!faults.empty()) return faults;
  const PassTable& table = examination.table();
  for (const WaitGraph::Cycle& cycle : examination.waits().cycles()) {
    const auto [stage, position] = table.place(cycle.front().later);
    faults.push_back(
        {StageId{stage}, position,
         "the schedule never finishes: " +
             cycle_text(cycle, [&](WaitGraph::Node node) { return table.name(node); })});
  }
  return faults;
}

ScheduleTiming time_schedule(const ScheduleOrders& orders) {
  Examination examination(orders);
  WT_EXPECT(examination.take_faults().empty());
  const WaitGraph graph = examination.waits();
  ScheduleTiming timing;
  timing.splits = examination.splits();
  for (const std::vector<Step>& order : orders.of_stage) timing.begin.emplace_back(order.size());
  std::vector<int> end(graph.size());
  for (const WaitGraph::Node node : graph.in_order()) {
    const auto [stage, position] = examination.table().place(node);
    int begin = 0;
    for (const WaitGraph::Wait& wait : graph.waits_of(node))
      begin = std::max(begin, end[wait.earlier]);
    timing.begin[stage][position] = begin;
    end[node] =
        begin + ScheduleTiming::length_of(orders.of_stage[stage][position].phase, timing.splits);
    timing.end = std::max(timing.end, end[node]);
  }
  for (const Step& step : orders.of_stage.front())
    timing.busy += ScheduleTiming::length_of(step.phase, timing.splits);
  return timing;
}

}  // namespace windtunnel
