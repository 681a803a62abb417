#include "search/placement_path.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/contracts.hpp"
#include "schedule/order_of_waiting.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// Pipelines worked out together.
constexpr std::size_t most_lanes = 4;

/// Where the passes end and what all replicas do together begins.
bool is_tail(const Op& op, int chunks) {
  if (op.kind == OpKind::collective) return op.slot < num_device_collectives;
  return op.kind == OpKind::compute && is_after_passes(op.work, chunks);
}

/// The programs up to there, where their last event is recorded.
std::vector<StageProgram> passes_of(std::vector<StageProgram> programs, int chunks) {
  for (StageProgram& program : programs) {
    for (std::vector<Op>& ops : program.streams)
      ops.erase(std::ranges::find_if(ops, [chunks](const Op& op) { return is_tail(op, chunks); }),
                ops.end());
    Op end;
    end.kind = OpKind::record;
    end.slot = program.num_events++;
    program.streams[static_cast<std::size_t>(Stream::compute)].push_back(end);
  }
  return programs;
}

}  // namespace

PipelinePath::PipelinePath(const std::vector<StageProgram>& programs, const DurationLayout& layout)
    : steps_(1), stage_end_(programs.size()) {
  // Our steps by those of the order. One without a length that waits for one step alone is that step.
  std::vector<std::uint32_t> numbers{0};
  const auto add = [&](const WaitStep& wait) {
    const std::uint32_t a = numbers[wait.a], b = numbers[wait.b];
    const std::size_t stage = wait.device.index();
    const Op& op = *wait.op;
    std::uint32_t duration = 0;
    if (op.kind == OpKind::compute) duration = layout.work(stage, op.work);
    if (op.kind == OpKind::collective) duration = layout.collective(stage, op.slot);
    if (op.kind == OpKind::send) duration = layout.message(stage, op.peer, op.work);
    numbers.push_back(a);
    if (duration != 0 || a != b) {
      numbers.back() = static_cast<std::uint32_t>(steps_.size());
      steps_.push_back({a, b, duration});
    }
    if (op.kind == OpKind::record && op.slot == programs[stage].num_events)
      stage_end_[stage] = numbers.back();
  };
  const ProgramSet pipeline = one_pipeline(passes_of(programs, layout.chunks));
  WT_ENSURE(for_each_wait(pipeline, add).empty());
  times_.resize(steps_.size() * most_lanes);
}

std::vector<Seconds> PipelinePath::ends(const std::vector<Seconds>& durations) const {
  return std::move(ends(std::vector{&durations}).front());
}

std::vector<std::vector<Seconds>> PipelinePath::ends(
    const std::vector<const std::vector<Seconds>*>& pipelines) const {
  std::vector<std::vector<Seconds>> ends;
  ends.reserve(pipelines.size());
  while (ends.size() < pipelines.size()) {
    const auto next = pipelines.data() + ends.size();
    const std::size_t left = pipelines.size() - ends.size();
    if (left >= most_lanes)
      add_ends<most_lanes>(next, ends);
    else if (left >= 2)
      add_ends<2>(next, ends);
    else
      add_ends<1>(next, ends);
  }
  return ends;
}

/// Of so many pipelines, step by step.
template <std::size_t lanes>
void PipelinePath::add_ends(const std::vector<Seconds>* const* pipelines,
                            std::vector<std::vector<Seconds>>& ends) const {
  std::array<const Seconds*, lanes> durations{};
  for (std::size_t lane = 0; lane < lanes; ++lane) durations[lane] = pipelines[lane]->data();
  std::fill_n(times_.begin(), lanes, Seconds{0});
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    for (std::size_t lane = 0; lane < lanes; ++lane)
      times_[i * lanes + lane] =
          std::max(times_[step.a * lanes + lane], times_[step.b * lanes + lane]) +
          durations[lane][step.duration];
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::vector<Seconds>& of_stages = ends.emplace_back();
    of_stages.reserve(stage_end_.size());
    for (const std::uint32_t end : stage_end_) of_stages.push_back(times_[end * lanes + lane]);
  }
}

}  // namespace windtunnel
