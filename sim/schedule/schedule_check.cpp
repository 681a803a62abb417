#include "schedule/schedule_check.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "schedule/order_of_waiting.hpp"
#include "schedule/pipeline_program.hpp"

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

/// Looks every pass up once, then what each waits for.
class ScheduleChecker {
 public:
  explicit ScheduleChecker(const ScheduleOrders& orders)
      : orders_(orders),
        map_(orders.shape.chunk_map()),
        splits_(has_weight_gradients(orders)),
        positions_(orders.of_stage.size() * passes_of_stage(), nowhere) {
    WT_EXPECT(orders.of_stage.size() == static_cast<std::size_t>(orders.shape.stages));
    for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
      find_passes(stage);
      find_missing(stage);
    }
  }

  bool splits() const { return splits_; }
  std::vector<ScheduleFault> take_faults() { return std::move(faults_); }
  /// Position of a pass in the order of its stage; `nowhere` until it is found.
  std::size_t& position(std::size_t stage, const Step& step) {
    return positions_[stage * passes_of_stage() + number(step)];
  }

  /// The passes as programs, in which each waits for its inputs: for a message, or for an event of its own stage. All ops of a pass carry
  /// its phase, chunk and microbatch. There must be no faults so far.
  ProgramSet programs() const {
    std::vector<StageProgram> programs;
    for (std::size_t stage = 0; stage < orders_.of_stage.size(); ++stage)
      programs.push_back(program_of(StageId{stage}, orders_.of_stage[stage]));
    return one_pipeline(std::move(programs));
  }

 private:
  static constexpr std::size_t num_phases = 3;
  std::size_t passes_of_stage() const {
    return num_phases * static_cast<std::size_t>(orders_.shape.chunks) *
           static_cast<std::size_t>(orders_.shape.microbatches);
  }
  /// Among all that a stage could have.
  std::size_t number(const Step& step) const {
    const auto chunks = static_cast<std::size_t>(orders_.shape.chunks);
    return (static_cast<std::size_t>(step.phase) * chunks + step.chunk) *
               static_cast<std::size_t>(orders_.shape.microbatches) +
           step.microbatch;
  }

  void fault(std::size_t stage, std::size_t position, const std::string& what) {
    faults_.push_back({StageId{stage}, position, "stage " + std::to_string(stage) + " " + what});
  }

  void find_passes(std::size_t stage) {
    const std::vector<Step>& order = orders_.of_stage[stage];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Step& step = order[i];
      if (step.chunk >= orders_.shape.chunks ||
          step.microbatch >= static_cast<std::uint32_t>(orders_.shape.microbatches) ||
          !map_.takes(step.chunk, step.microbatch)) {
        fault(stage, i, "has " + token_of(step) + ", which is beyond " + bounds());
        continue;
      }
      std::size_t& found = position(stage, step);
      if (found != nowhere) fault(stage, i, "has " + token_of(step) + " twice");
      found = i;
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
          if (position(stage, step) != nowhere) continue;
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

  /// Source of a pass's input: the same pass of the preceding part of the model, for a backward pass the following one.
  std::optional<ChunkPlace> source(const ChunkPlace& here, Phase phase) const {
    if (phase == Phase::weight_gradient) return std::nullopt;
    return phase == Phase::forward ? map_.previous(here) : map_.next(here);
  }
  std::optional<ChunkPlace> target(const ChunkPlace& here, Phase phase) const {
    if (phase == Phase::weight_gradient) return std::nullopt;
    return phase == Phase::forward ? map_.next(here) : map_.previous(here);
  }

  StageProgram program_of(StageId stage, const std::vector<Step>& order) const {
    StageProgram program;
    program.num_slots = program.num_events = static_cast<std::uint32_t>(passes_of_stage());
    const auto add = [&](OpKind kind, const Step& step, const Step& slot) -> Op& {
      Op op{.kind = kind, .phase = step.phase, .chunk = step.chunk, .microbatch = step.microbatch};
      op.slot = static_cast<std::uint32_t>(number(slot));
      return program.streams[static_cast<std::size_t>(Stream::compute)].emplace_back(op);
    };
    const auto in_chunk = [](Step step, int chunk) {
      step.chunk = static_cast<std::uint16_t>(chunk);
      return step;
    };
    // Inputs of the same stage stand before the pass unless the order is wrong.
    const auto wait_for_own = [&](const Step& step) {
      const auto from = source({stage, step.chunk}, step.phase);
      if (from && from->stage == stage) add(OpKind::wait, step, in_chunk(step, from->chunk));
      const Phase before = step.phase == Phase::backward ? Phase::forward : Phase::backward;
      if (step.phase != Phase::forward)
        add(OpKind::wait, step, {before, step.chunk, step.microbatch});
    };
    for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
      end = end_of_block(order, first);
      wait_for_own(order[first]);
      for (std::size_t i = first; i < end; ++i) {
        const auto from = source({stage, order[i].chunk}, order[i].phase);
        if (from && from->stage != stage) add(OpKind::receive, order[i], order[i]);
      }
      for (std::size_t i = first; i < end; ++i) {
        const Step& step = order[i];
        if (i > first) wait_for_own(step);
        add(OpKind::compute, step, step);
        add(OpKind::record, step, step);
      }
      for (std::size_t i = first; i < end; ++i) {
        const auto to = target({stage, order[i].chunk}, order[i].phase);
        if (!to || to->stage == stage) continue;
        Op& send = add(OpKind::send, order[i], in_chunk(order[i], to->chunk));
        send.peer = static_cast<std::uint8_t>(channel_to(to->stage, program.targets));
      }
    }
    return program;
  }
  static std::ptrdiff_t channel_to(StageId stage, std::vector<StageId>& targets) {
    const auto found = std::find(targets.begin(), targets.end(), stage);
    const std::ptrdiff_t channel = found - targets.begin();
    if (found == targets.end()) targets.push_back(stage);
    return channel;
  }

  const ScheduleOrders& orders_;
  ChunkMap map_;
  bool splits_;
  std::vector<std::size_t> positions_;  ///< by stage and number
  std::vector<ScheduleFault> faults_;
};

Step pass_of(const Op& op) { return {op.phase, op.chunk, op.microbatch}; }

}  // namespace

std::vector<ScheduleFault> check_schedule(const ScheduleOrders& orders) {
  ScheduleChecker checker(orders);
  std::vector<ScheduleFault> faults = checker.take_faults();
  if (!faults.empty()) return faults;
  ProgramSet programs = checker.programs();
  const auto name = [](DeviceId device, const Op* op) {
    return "stage " + std::to_string(device.index()) + " " + token_of(pass_of(*op));
  };
  for (bool goes_on = true; goes_on && faults.size() < Problems::max_reported;) {
    const auto cycles = cyclic_waits(for_each_wait(programs, [](const WaitStep&) {}));
    // A stage that has a pass before its own input is wrong whatever the others do. It goes on without, so that each such pass is told.
    goes_on = std::any_of(cycles.begin(), cycles.end(),
                          [](const WaitCycle& cycle) { return cycle.size() == 1; });
    for (const WaitCycle& cycle : cycles) {
      if (goes_on && cycle.size() > 1) continue;
      const std::size_t stage = cycle.front().device.index();
      const Step pass = pass_of(*cycle.front().op);
      faults.push_back({StageId{stage}, checker.position(stage, pass),
                        "the schedule never finishes: " + cycle_text(cycle, name)});
      for (Op& op : programs.programs[stage].streams[static_cast<std::size_t>(Stream::compute)])
        if (pass_of(op) == pass && (op.kind == OpKind::wait || op.kind == OpKind::receive))
          op.kind = OpKind::compute;
    }
  }
  return faults;
}

ScheduleTiming time_schedule(const ScheduleOrders& orders) {
  ScheduleChecker checker(orders);
  WT_EXPECT(checker.take_faults().empty());
  ScheduleTiming timing;
  timing.splits = checker.splits();
  timing.begin.resize(orders.of_stage.size());
  std::vector<int> ends{0};  // by step of the order of waiting
  const auto add = [&](const WaitStep& step) {
    const int begin = std::max(ends[step.a], ends[step.b]);
    ends.push_back(begin);
    if (step.op->kind != OpKind::compute) return;
    timing.begin[step.device.index()].push_back(begin);
    ends.back() += ScheduleTiming::length_of(step.op->phase, timing.splits);
    timing.end = std::max(timing.end, ends.back());
  };
  WT_EXPECT(for_each_wait(checker.programs(), add).empty());
  for (const Step& step : orders.of_stage.front())
    timing.busy += ScheduleTiming::length_of(step.phase, timing.splits);
  return timing;
}

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
