#include "timeline/critical_path.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "core/contracts.hpp"
#include "schedule/order_of_waiting.hpp"

namespace windtunnel {
namespace {

/// Position in the list of all activities: computes, messages, collectives, events.
using ActivityId = std::uint32_t;
constexpr ActivityId none = std::numeric_limits<ActivityId>::max();

/// The activities of each stream, channel, or collective and microbatch, in the order in which they were simulated, which is that of the timeline.
class Queues {
 public:
  explicit Queues(std::size_t size) : ids_(size), taken_(size) {}
  void add(std::size_t queue, ActivityId id) { ids_[queue].push_back(id); }
  ActivityId take(std::size_t queue) {
    WT_EXPECT(queue < ids_.size() &&
              taken_[queue] < ids_[queue].size());  // the timeline is complete
    return ids_[queue][taken_[queue]++];
  }

 private:
  std::vector<std::vector<ActivityId>> ids_;
  std::vector<std::size_t> taken_;
};

/// Earliest and latest ends of the activities of a timeline, whose durations are given, in the order of waiting of its programs.
class ActivitySchedule {
 public:
  ActivitySchedule(const ProgramSet& set, const Timeline& timeline)
      : set_(set),
        computes_(set.devices.size() * num_streams),
        messages_(set.channels.size()),
        collectives_(timeline.collectives.size()) {
    list_activities(timeline);
    MessageOrder order(set.channels.size());
    for (const MessageSpan& message : timeline.messages)
      order[message.channel.index()].push_back(message.send.slot);
    const auto stuck = for_each_wait(
        set, [this](const WaitStep& step) { add(step); }, order);
    WT_EXPECT(stuck.empty());
    find_latest();
  }

  CriticalPath path() const {
    CriticalPath result;
    for (ActivityId id = last_; id != none; id = cause_[id])
      if (durations_[id] > Seconds{0})
        result.steps.push_back({activities_[id], ends_[id] - durations_[id], ends_[id]});
    std::reverse(result.steps.begin(), result.steps.end());
    for (ActivityId id = 0; id < activities_.size(); ++id) {
      const Seconds slack = latest_ends_[id] - ends_[id];
      if (activities_[id].kind == Activity::Kind::compute) result.compute_slack.push_back(slack);
      if (activities_[id].kind == Activity::Kind::message) result.message_slack.push_back(slack);
      if (activities_[id].kind == Activity::Kind::collective)
        result.collective_slack.push_back(slack);
    }
    return result;
  }

 private:
  struct Step {
    std::uint32_t a = 0, b = 0;
    ActivityId activity = none;  ///< none: of no length
    ActivityId ended_by = none;  ///< the activity that ends with it
    Seconds end{};
  };

  void list_activities(const Timeline& timeline) {
    const auto add = [this](Activity::Kind kind, std::size_t index, Seconds duration) {
      activities_.push_back({kind, index});
      durations_.push_back(duration);
      return static_cast<ActivityId>(activities_.size() - 1);
    };
    const auto add_all = [&add](Activity::Kind kind, const auto& spans, Queues& queues,
                                const auto& queue_of) {
      for (std::size_t i = 0; i < spans.size(); ++i)
        queues.add(queue_of(spans[i]), add(kind, i, spans[i].end - spans[i].begin));
    };
    add_all(Activity::Kind::compute, timeline.computes, computes_,
            [](const Span& span) { return stream_index(span.device, span.stream); });
    add_all(Activity::Kind::message, timeline.messages, messages_,
            [](const MessageSpan& message) { return message.channel.index(); });
    add_all(Activity::Kind::collective, timeline.collectives, collectives_,
            [this](const CollectiveSpan& span) { return instances_of(span.collective, span.op); });
    for (const ProgramDevice& device : set_.devices) {
      first_event_.push_back(static_cast<ActivityId>(activities_.size()));
      for (std::uint32_t i = 0; i < set_.programs[device.program].num_events; ++i)
        add(Activity::Kind::event, i, {});
    }
    cause_.assign(activities_.size(), none);
    ends_.resize(activities_.size());
    latest_ends_.resize(activities_.size());
  }

  static std::size_t stream_index(DeviceId device, Stream stream) {
    return device.index() * num_streams + static_cast<std::size_t>(stream);
  }

  /// Index of a collective's instance of one microbatch: a device may enter those of different microbatches from different streams.
  std::size_t instances_of(CollectiveId collective, const Op& op) {
    return instances_.try_emplace({collective, op.microbatch}, instances_.size()).first->second;
  }

  const ProgramDevice& device(const WaitStep& step) const {
    return set_.devices[step.device.index()];
  }
  ActivityId activity_of(const WaitStep& step) {
    switch (step.op->kind) {
      case OpKind::compute:
        return computes_.take(stream_index(step.device, step.stream));
      case OpKind::send:
        return messages_.take(device(step).channels[step.op->peer].index());
      case OpKind::collective:
        return collectives_.take(instances_of(device(step).entered(step.op->slot), *step.op));
      case OpKind::record:
        return first_event_[step.device.index()] + step.op->slot;
      default:
        return none;
    }
  }

  /// True if `id` ends later than `other`; of two that end together, the first of the list counts as later.
  static bool is_later(Seconds end, ActivityId id, Seconds other_end, ActivityId other) {
    return end > other_end || (end == other_end && id < other);
  }

  void add(const WaitStep& wait) {
    const Step &a = steps_[wait.a], &b = steps_[wait.b];
    const Step& later = is_later(a.end, a.ended_by, b.end, b.ended_by) ? a : b;
    Step step{wait.a, wait.b, activity_of(wait), later.ended_by, later.end};
    if (const ActivityId id = step.activity; id != none) {
      cause_[id] = std::exchange(step.ended_by, id);
      ends_[id] = step.end += durations_[id];
      if (last_ == none || is_later(step.end, id, ends_[last_], last_)) last_ = id;
    }
    steps_.push_back(step);
  }

  void find_latest() {
    if (last_ == none) return;
    std::vector<Seconds> latest(steps_.size(), ends_[last_]);
    for (std::size_t i = steps_.size() - 1; i > 0; --i) {
      const Step& step = steps_[i];
      Seconds start = latest[i];
      if (step.activity != none) {
        latest_ends_[step.activity] = start;
        start -= durations_[step.activity];
      }
      latest[step.a] = std::min(latest[step.a], start);
      latest[step.b] = std::min(latest[step.b], start);
    }
  }

  const ProgramSet& set_;
  std::vector<Activity> activities_;
  std::vector<Seconds> durations_, ends_, latest_ends_;  ///< by activity
  std::vector<ActivityId> cause_;                        ///< what it started with
  std::vector<ActivityId> first_event_;                  ///< by device
  Queues computes_, messages_, collectives_;
  std::map<std::pair<CollectiveId, std::uint32_t>, std::size_t> instances_;  ///< their queue
  std::vector<Step> steps_{Step{}};
  ActivityId last_ = none;
};

}  // namespace

CriticalPath find_critical_path(const ProgramSet& programs, const Timeline& timeline) {
  return ActivitySchedule(programs, timeline).path();
}

}  // namespace windtunnel
