#include "report/path_shares.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace windtunnel {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

const char* what_of(Part part) {
  switch (part) {
    case Part::compute:
      return "compute";
    case Part::tensor_comm:
      return "tensor collectives";
    case Part::data_comm:
      return "parameter gathers";
    case Part::codec:
      return "codec";
    case Part::optimizer:
      return "optimizer";
    case Part::other:
      return "launches and overhead";
  }
  return "?";
}

const char* what_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::pipeline_forward:
      return "activations";
    case Traffic::pipeline_backward:
      return "gradients";
    case Traffic::data_gradients:
      return "gradient reduction";
    case Traffic::embedding_sync:
      return "embedding synchronisation";
    case Traffic::tensor_activations:
      return "tensor collectives across nodes";
    case Traffic::zero_gather:
      return "parameter gather";
  }
  return "?";
}

/// Sums up under names.
class Shares {
 public:
  void add(const std::string& what, Line line, Seconds time) {
    if (time <= Seconds{0}) return;
    PathShare& share = by_name_.try_emplace(what, PathShare{what, line, {}, 0}).first->second;
    share.time += time;
    ++share.steps;
  }
  std::vector<PathShare> take() const {
    std::vector<PathShare> list;
    for (const auto& [what, share] : by_name_) list.push_back(share);
    std::stable_sort(list.begin(), list.end(),
                     [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
    return list;
  }

 private:
  std::map<std::string, PathShare> by_name_;
};

/// Names what the steps of a path are.
class PathReader {
 public:
  PathReader(const Plan& plan, const ProgramSet& programs, const Timeline& timeline)
      : plan_(plan), programs_(programs), timeline_(timeline) {}

  void add(const CriticalStep& step, Shares& shares) const {
    const std::size_t index = step.activity.index;
    switch (step.activity.kind) {
      case Activity::Kind::compute:
        return add_compute(timeline_.computes[index], shares);
      case Activity::Kind::message:
        return add_message(timeline_.messages[index], step.end - step.begin, shares);
      case Activity::Kind::collective:
        return add_collective(timeline_.collectives[index], step.end - step.begin, shares);
      case Activity::Kind::event:
        return;
    }
  }

 private:
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }

  /// A span is split into its parts, the last of which ends with it (BreakdownListener does the same).
  void add_compute(const Span& span, Shares& shares) const {
    const ProgramDevice& tables = programs_.devices[span.device.index()];
    const Work& work = programs_.work[tables.work_base + span.op.work];
    const std::string stage = " of stage " + number(device(span.device).stage.index());
    Seconds left = span.end - span.begin;
    std::size_t last = 0;
    for (std::size_t i = 0; i < work.parts.size(); ++i)
      if (work.parts[i] > Seconds{0}) last = i;
    for (std::size_t i = 0; i <= last; ++i) {
      const Seconds time = i == last ? left : std::min(left, work.parts[i]);
      const auto part = static_cast<Part>(i);
      shares.add(what_of(part) + stage, line_of(part), time);
      left -= time;
    }
  }

  void add_message(const MessageSpan& message, Seconds time, Shares& shares) const {
    const Channel& channel = programs_.channels[message.channel.index()];
    const PlanDevice &from = device(channel.from), &to = device(channel.to);
    std::string what = "stage " + number(from.stage.index()) + " -> " + number(to.stage.index());
    what += channel.in_node
                ? " inside node " + number(from.node.index())
                : " over node " + number(from.node.index()) + " -> " + number(to.node.index());
    shares.add(what + " (" + what_of(message.send.traffic) + ")", Line::pipeline_comm, time);
  }

  void add_collective(const CollectiveSpan& span, Seconds time, Shares& shares) const {
    const Collective& collective = programs_.collectives[span.collective.index()];
    const bool embedding = span.op.traffic == Traffic::embedding_sync;
    const std::string stage =
        embedding ? "" : " of stage " + number(device(collective.members.front()).stage.index());
    shares.add(what_of(span.op.traffic) + stage, line_of(span.op.phase), time);
  }

  const Plan& plan_;
  const ProgramSet& programs_;
  const Timeline& timeline_;
};

void sort_by_need(std::vector<Slack>& list) {
  std::stable_sort(list.begin(), list.end(), [](const Slack& a, const Slack& b) {
    return std::tuple(a.least, -a.on_path, -a.busy) < std::tuple(b.least, -b.on_path, -b.busy);
  });
}

}  // namespace

std::vector<PathShare> path_shares(const Plan& plan, const ProgramSet& programs,
                                   const Timeline& timeline, const CriticalPath& path) {
  const PathReader reader(plan, programs, timeline);
  Shares shares;
  for (const CriticalStep& step : path.steps) reader.add(step, shares);
  return shares.take();
}

std::vector<Slack> stage_slack(const Plan& plan, const Timeline& timeline,
                               const CriticalPath& path) {
  std::vector<Slack> stages(static_cast<std::size_t>(plan.parallel.pipeline));
  for (std::size_t s = 0; s < stages.size(); ++s)
    stages[s] = {"stage " + number(s), {}, timeline.end, {}};
  std::vector<Seconds> busy(plan.devices.size());
  for (std::size_t i = 0; i < timeline.computes.size(); ++i) {
    const Span& span = timeline.computes[i];
    if (span.end <= span.begin) continue;
    Slack& stage = stages[plan.devices[span.device.index()].stage.index()];
    stage.busy = std::max(stage.busy, busy[span.device.index()] += span.end - span.begin);
    stage.least = std::min(stage.least, std::max(Seconds{0}, path.compute_slack[i]));
  }
  for (const CriticalStep& step : path.steps) {
    if (step.activity.kind != Activity::Kind::compute) continue;
    const DeviceId device = timeline.computes[step.activity.index].device;
    stages[plan.devices[device.index()].stage.index()].on_path += step.end - step.begin;
  }
  return stages;
}

std::vector<Slack> link_slack(const Plan& plan, const ProgramSet& programs,
                              const Timeline& timeline, const CriticalPath& path) {
  using Pair = std::pair<std::size_t, std::size_t>;
  const auto pair_of = [&](const MessageSpan& message) {
    const Channel& channel = programs.channels[message.channel.index()];
    return Pair{plan.devices[channel.from.index()].node.index(),
                plan.devices[channel.to.index()].node.index()};
  };
  std::map<Pair, Slack> links;
  std::vector<Seconds> busy(programs.channels.size());
  for (std::size_t i = 0; i < timeline.messages.size(); ++i) {
    const MessageSpan& message = timeline.messages[i];
    const Pair pair = pair_of(message);
    if (pair.first == pair.second) continue;
    const std::string what = "node " + number(pair.first) + " -> " + number(pair.second);
    Slack& link = links.try_emplace(pair, Slack{what, {}, timeline.end, {}}).first->second;
    link.busy = std::max(link.busy, busy[message.channel.index()] += message.end - message.begin);
    link.least = std::min(link.least, std::max(Seconds{0}, path.message_slack[i]));
  }
  for (const CriticalStep& step : path.steps) {
    if (step.activity.kind != Activity::Kind::message) continue;
    const auto link = links.find(pair_of(timeline.messages[step.activity.index]));
    if (link != links.end()) link->second.on_path += step.end - step.begin;
  }
  std::vector<Slack> list;
  for (const auto& [pair, link] : links) list.push_back(link);
  sort_by_need(list);
  return list;
}

}  // namespace windtunnel
