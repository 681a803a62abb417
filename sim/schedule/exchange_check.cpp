#include "schedule/exchange_check.hpp"

#include <algorithm>
#include <vector>

#include "schedule/order_of_waiting.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

ProgramSet programs_with_pairs(const ScheduleOrders& orders) {
  PipelineShape shape;
  shape.send = PipelineSend::blocking_pairs;
  shape.stages = orders.shape.stages;
  shape.microbatches = orders.shape.microbatches;
  shape.chunks = orders.shape.chunks;
  shape.chunk_path = orders.shape.chunk_path;
  std::vector<StageProgram> programs;
  for (std::size_t s = 0; s < orders.of_stage.size(); ++s)
    programs.push_back(make_pipeline_program(shape, orders.of_stage[s], StageId{s}));
  return one_pipeline(std::move(programs));
}

/// "stage 0's exchange after F3": the one that a message is posted in, or behind an exchange that never ends the next one.
std::string name_of_exchange(const StageProgram& program, DeviceId stage, const Op* op) {
  const std::vector<Op>& ops = program.streams[static_cast<std::size_t>(Stream::compute)];
  if (op->kind == OpKind::exchange)
    op = std::find_if(op + 1, &ops.back(),
                      [](const Op& next) { return next.kind == OpKind::exchange; });
  while (op != ops.data() && op->kind != OpKind::compute) --op;
  const std::string name = "stage " + std::to_string(stage.index()) + "'s ";
  if (op->kind != OpKind::compute) return name + "first exchange";
  return name + "exchange after " + token_of({op->phase, op->chunk, op->microbatch});
}

}  // namespace

std::optional<std::string> exchange_deadlock(const ScheduleOrders& orders) {
  const ProgramSet set = programs_with_pairs(orders);
  const std::vector<WaitCycle> cycles = cyclic_waits(for_each_wait(set, [](const WaitStep&) {}));
  if (cycles.empty()) return std::nullopt;
  return cycle_text(cycles.front(), [&set](DeviceId stage, const Op* op) {
    return name_of_exchange(set.programs[stage.index()], stage, op);
  });
}

}  // namespace windtunnel
