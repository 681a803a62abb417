#include "plan/schedule.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/enum_names.hpp"
#include "core/mapped.hpp"
#include "core/text_list.hpp"

namespace windtunnel {

const char* name_of(Phase phase) {
  constexpr std::array names{"forward",
                             "backward",
                             "weight gradient",
                             "optimizer",
                             "activation",
                             "gradient",
                             "tensor all-reduce",
                             "context exchange",
                             "gradient all-reduce",
                             "embedding all-reduce",
                             "parameter all-gather",
                             "encode",
                             "decode",
                             "overhead",
                             "expert exchange"};
  static_assert(names.size() == enumerators<Phase>().size());
  return names.at(static_cast<std::size_t>(phase));
}

std::size_t end_of_block(const std::vector<Step>& order, std::size_t first) {
  std::size_t end = first + 1;
  while (end < order.size() && order[end].joined) ++end;
  return end;
}

std::string token_of(const Step& step) {
  const char* const letter = step.phase == Phase::forward    ? "F"
                             : step.phase == Phase::backward ? "B"
                                                             : "W";
  const std::string token = letter + std::to_string(step.microbatch);
  return step.chunk == 0 ? token : token + "." + std::to_string(step.chunk);
}

namespace schedules {
#define WT_SCHEDULE(name) Schedule name();
#include "plan/schedules.def"
#undef WT_SCHEDULE
}  // namespace schedules

const std::vector<SchedulePtr>& named_schedules() {
  static const std::vector<SchedulePtr> table{
#define WT_SCHEDULE(name) std::make_shared<const Schedule>(schedules::name()),
#include "plan/schedules.def"
#undef WT_SCHEDULE
  };
  return table;
}

SchedulePtr schedule_named(std::string_view name) {
  for (const SchedulePtr& schedule : named_schedules())
    if (schedule->name == name) return schedule;
  return nullptr;
}

SchedulePtr default_schedule(int chunks_per_device) {
  const bool several = chunks_per_device > 1;
  for (const SchedulePtr& schedule : named_schedules())
    if (schedule->is_default && several == (schedule->chunks != ChunksPerDevice::one))
      return schedule;
  WT_UNREACHABLE();
}

std::vector<std::pair<std::string, SchedulePtr>> schedules_by_name() {
  return mapped(named_schedules(),
                [](const SchedulePtr& schedule) { return std::pair(schedule->name, schedule); });
}

std::string schedule_name_list() {
  return listed(named_schedules(), [](const SchedulePtr& schedule) { return schedule->name; });
}

std::string names_of_chunked_schedules(int chunks_per_device) {
  std::vector<std::string> known;
  for (const SchedulePtr& schedule : named_schedules())
    if (schedule->chunks != ChunksPerDevice::one && schedule->takes(chunks_per_device))
      known.push_back(schedule->name);
  return alternatives(known);
}

std::string Schedule::misfit(const OrderShape& shape) const {
  if (is_bidirectional() && shape.stages % 2 != 0)
    return "schedule " + name + " needs an even number of stages, not " +
           std::to_string(shape.stages);
  const std::string on = ": " + count_text(shape.microbatches, "microbatch") + " on " +
                         count_text(shape.stages, "stage");
  if (shape.microbatches < fewest_microbatches_of_stage * shape.stages)
    return name + " needs at least " + std::to_string(fewest_microbatches_of_stage) +
           " microbatches per stage" + on;
  if (shape.microbatches % microbatch_group(shape.stages, shape.chunks) == 0) return {};
  return name + " needs " +
         (is_bidirectional() ? "an even number of microbatches"
                             : "microbatches in multiples of pipeline") +
         on;
}

SchedulePtr written_schedule(ScheduleOrders orders) {
  const auto written = std::make_shared<const ScheduleOrders>(std::move(orders));
  Schedule schedule;
  schedule.name = "custom";
  schedule.order = [written](const OrderShape&, StageId stage) {
    return written->of_stage[stage.index()];
  };
  schedule.chunks = ChunksPerDevice::any;
  schedule.chunk_path = written->shape.chunk_path;
  schedule.is_what_if = false;
  schedule.written = written;
  if (!written->of_stage.empty()) {  // a legal schedule splits all backward passes or none
    const std::vector<Step>& order = written->of_stage.front();
    schedule.splits_backward = std::ranges::any_of(
        order, [](const Step& step) { return step.phase == Phase::weight_gradient; });
    // No stack's 1F1B loop runs such an order.
    if (schedule.splits_backward) schedule.sends = ScheduleSends::eager;
  }
  return std::make_shared<const Schedule>(std::move(schedule));
}

ScheduleOrders schedule_orders(const Schedule& schedule, const OrderShape& shape) {
  ScheduleOrders orders{schedule.name, shape, {}};
  orders.shape.chunk_path = schedule.chunk_path;
  for (int s = 0; s < shape.stages; ++s)
    orders.of_stage.push_back(schedule.order(shape, StageId{s}));
  return orders;
}

}  // namespace windtunnel
