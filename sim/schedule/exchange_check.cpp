#include "schedule/exchange_check.hpp"

#include <map>
#include <utility>
#include <vector>

#include "schedule/pipeline_program.hpp"
#include "schedule/wait_graph.hpp"

namespace windtunnel {
namespace {

/// One exchange of a stage. It begins when its messages are posted, and ends when all have arrived.
struct Exchange {
  std::size_t stage = 0;
  std::optional<Step> after;  ///< the stage's pass before it; none: it is the first thing
};

/// The exchanges of all stages' programs, and which two share each message.
struct Exchanges {
  std::vector<Exchange> all;
  /// By receiving stage and slot: sender's and receiver's exchange.
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<std::size_t, std::size_t>> messages;

  void add_stage(const StageProgram& program, std::size_t stage) {
    std::optional<Step> pass;
    for (const Op& op : program.streams[static_cast<std::size_t>(Stream::compute)]) {
      const std::size_t current = all.size() - 1;
      if (op.kind == OpKind::compute)
        pass = Step{op.phase, op.chunk, op.microbatch};
      else if (op.kind == OpKind::exchange)
        all.push_back({stage, pass});
      else if (op.kind == OpKind::send)
        messages[{program.targets[op.peer].index(), op.slot}].first = current;
      else if (op.kind == OpKind::receive)
        messages[{stage, op.slot}].second = current;
    }
  }

  std::string name(std::size_t exchange) const {
    const Exchange& e = all[exchange];
    return "stage " + std::to_string(e.stage) + "'s " +
           (e.after ? "exchange after " + token_of(*e.after) : "first exchange");
  }
};

Exchanges exchanges_of(const ScheduleOrders& orders) {
  PipelineShape shape;
  shape.send = PipelineSend::blocking_pairs;
  shape.stages = orders.shape.stages;
  shape.microbatches = orders.shape.microbatches;
  shape.chunks = orders.shape.chunks;
  shape.chunk_path = orders.shape.chunk_path;
  Exchanges exchanges;
  for (std::size_t s = 0; s < orders.of_stage.size(); ++s)
    exchanges.add_stage(make_pipeline_program(shape, orders.of_stage[s], StageId{s}), s);
  return exchanges;
}

}  // namespace

std::optional<std::string> exchange_deadlock(const ScheduleOrders& orders) {
  // Both ends post a message before either exchange can end, and an exchange is posted when the one before it has ended:
  // nodes are the exchanges' postings.
  const Exchanges exchanges = exchanges_of(orders);
  WaitGraph graph(exchanges.all.size());
  std::vector<std::vector<std::size_t>> partners(exchanges.all.size());
  for (const auto& [slot, ends] : exchanges.messages) {
    partners[ends.first].push_back(ends.second);
    partners[ends.second].push_back(ends.first);
  }
  for (std::size_t i = 1; i < exchanges.all.size(); ++i) {
    if (exchanges.all[i].stage != exchanges.all[i - 1].stage) continue;
    graph.add({i, i - 1, WaitGraph::Why::order});
    for (const std::size_t partner : partners[i - 1])
      graph.add({i, partner, WaitGraph::Why::input});
  }
  const std::vector<WaitGraph::Cycle> cycles = graph.cycles();
  if (cycles.empty()) return std::nullopt;
  return cycle_text(cycles.front(), [&](WaitGraph::Node node) { return exchanges.name(node); });
}

}  // namespace windtunnel
