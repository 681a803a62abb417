#include "search/placement_path.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/contracts.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// Pipelines worked out together.
constexpr std::size_t most_lanes = 4;

}  // namespace

/// Plays the programs without times: whenever an op can happen, it becomes a step after those it waits for.
class PathWriter {
 public:
  PathWriter(const std::vector<StageProgram>& programs, const DurationLayout& layout,
             PipelinePath& path)
      : programs_(programs), layout_(layout), path_(path), stages_(programs.size()) {
    path_.steps_.emplace_back();
    for (std::size_t s = 0; s < programs.size(); ++s) {
      stages_[s].arrival.assign(programs[s].num_slots, none);
      stages_[s].sender.resize(programs[s].num_slots);
      stages_[s].receiver.assign(programs[s].num_slots, none);
      stages_[s].event.assign(programs[s].num_events, none);
      stages_[s].channel_free.assign(programs[s].targets.size(), 0);
    }
    path_.stage_end_.assign(programs.size(), none);
  }

  void write() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t s = 0; s < stages_.size(); ++s)
        for (std::size_t stream = 0; stream < num_streams; ++stream)
          while (advance(s, stream)) goes_on = true;
    }
    for (const std::uint32_t end : path_.stage_end_) WT_ENSURE(end != none);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// A time that is not a step yet: the later of two.
  struct Clock {
    std::uint32_t a = 0, b = 0;
  };
  struct Posted {
    std::uint32_t time = none;  ///< step
    std::uint32_t stage = 0, channel = 0, row = 0;
  };
  struct StreamState {
    std::size_t next = 0;
    Clock clock;
    bool in_exchange = false;
  };
  struct StageState {
    std::array<StreamState, num_streams> streams;
    std::vector<std::uint32_t> arrival;       ///< step by message slot
    std::vector<Posted> sender;               ///< by message slot, in an exchange
    std::vector<std::uint32_t> receiver;      ///< likewise
    std::vector<std::uint32_t> event;         ///< step by event
    std::vector<std::uint32_t> channel_free;  ///< step by outgoing channel
  };

  std::uint32_t add(Clock after, std::uint32_t duration) {
    path_.steps_.push_back({after.a, after.b, duration});
    return static_cast<std::uint32_t>(path_.steps_.size() - 1);
  }
  std::uint32_t step_of(StreamState& stream) {
    if (stream.clock.a != stream.clock.b) set(stream, add(stream.clock, 0));
    return stream.clock.a;
  }
  static void set(StreamState& stream, std::uint32_t step) { stream.clock = {step, step}; }
  void come_after(StreamState& stream, std::uint32_t step) {
    stream.clock = {step_of(stream), step};
  }
  void take(StreamState& stream, std::uint32_t duration) {
    set(stream, add(stream.clock, duration));
  }

  /// Where the passes end and what all replicas do together begins.
  static bool is_tail(const Op& op, int chunks) {
    if (op.kind == OpKind::collective) return op.slot < num_device_collectives;
    return op.kind == OpKind::compute && is_after_passes(op.work, chunks);
  }

  /// Does the next op of a stream, if it can happen.
  bool advance(std::size_t s, std::size_t index) {
    StageState& stage = stages_[s];
    StreamState& stream = stage.streams[index];
    const std::vector<Op>& ops = programs_[s].streams[index];
    if (stream.next == ops.size()) return false;
    const Op& op = ops[stream.next];
    if (is_tail(op, layout_.chunks)) {
      if (path_.stage_end_[s] == none) path_.stage_end_[s] = step_of(stream);
      stream.next = ops.size();
      return true;
    }
    if (op.kind == OpKind::exchange) return exchange(s, stream, ops);
    if (!happens(s, stream, op)) return false;
    ++stream.next;
    return true;
  }

  bool happens(std::size_t s, StreamState& stream, const Op& op) {
    StageState& stage = stages_[s];
    switch (op.kind) {
      case OpKind::compute:
        take(stream, layout_.work(s, op.work));
        return true;
      case OpKind::collective:
        take(stream, layout_.collective(s, op.slot));
        return true;
      case OpKind::send:
        transfer({step_of(stream), static_cast<std::uint32_t>(s), op.peer, op.work}, op.slot, 0);
        return true;
      case OpKind::receive:
        if (stage.arrival[op.slot] == none) return false;
        come_after(stream, stage.arrival[op.slot]);
        return true;
      case OpKind::record:
        stage.event[op.slot] = step_of(stream);
        return true;
      case OpKind::wait:
        if (stage.event[op.slot] == none) return false;
        come_after(stream, stage.event[op.slot]);
        return true;
      case OpKind::exchange:
        break;
    }
    WT_EXPECT(!"an exchange is not one op");
    return false;
  }

  /// The message leaves when sender, receiver (0: it need not be there) and channel are ready.
  void transfer(const Posted& sender, std::uint32_t slot, std::uint32_t receiver) {
    StageState& from = stages_[sender.stage];
    std::uint32_t& channel = from.channel_free[sender.channel];
    Clock ready{sender.time, channel};
    if (receiver != 0) ready = {add({sender.time, receiver}, 0), channel};
    channel = add(ready, layout_.message(sender.stage, sender.channel, sender.row));
    stages_[target(sender)].arrival[slot] = channel;
  }
  std::size_t target(const Posted& sender) const {
    return programs_[sender.stage].targets[sender.channel].index();
  }

  bool exchange(std::size_t s, StreamState& stream, const std::vector<Op>& ops) {
    const Op* const first = &ops[stream.next] + 1;
    const Op* const last = first + ops[stream.next].slot;
    const bool posts = !stream.in_exchange;
    if (posts) post(s, stream, first, last);
    if (!all_arrived(s, first, last)) return posts;
    for (const Op* op = first; op != last; ++op) come_after(stream, arrival(s, *op));
    stream.in_exchange = false;
    stream.next += ops[stream.next].slot + 1;
    return true;
  }

  void post(std::size_t s, StreamState& stream, const Op* first, const Op* last) {
    stream.in_exchange = true;
    for (const Op* op = first; op != last; ++op) {
      const bool sends = op->kind == OpKind::send;
      Posted message{step_of(stream), static_cast<std::uint32_t>(s), op->peer, op->work};
      StageState& receiving = stages_[sends ? target(message) : s];
      if (sends)
        receiving.sender[op->slot] = message;
      else
        receiving.receiver[op->slot] = message.time;
      const Posted& sender = receiving.sender[op->slot];
      if (sender.time != none && receiving.receiver[op->slot] != none)
        transfer(sender, op->slot, receiving.receiver[op->slot]);
    }
  }

  std::uint32_t arrival(std::size_t s, const Op& op) const {
    const std::size_t to = op.kind == OpKind::send ? programs_[s].targets[op.peer].index() : s;
    return stages_[to].arrival[op.slot];
  }
  bool all_arrived(std::size_t s, const Op* first, const Op* last) const {
    return std::all_of(first, last, [&](const Op& op) { return arrival(s, op) != none; });
  }

  const std::vector<StageProgram>& programs_;
  const DurationLayout layout_;
  PipelinePath& path_;
  std::vector<StageState> stages_;
};

PipelinePath::PipelinePath(const std::vector<StageProgram>& programs,
                           const DurationLayout& layout) {
  PathWriter(programs, layout, *this).write();
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
