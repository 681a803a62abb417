#include "report/path_shares.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "report/trace_names.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

const char* what_of(Part part) {
  static constexpr std::array<const char*, num_parts> names{"compute",
                                                            "tensor collectives",
                                                            "codec",
                                                            "optimizer",
                                                            "launches and overhead",
                                                            "parameter gathers",
                                                            "exchanges of tokens",
                                                            "context exchanges"};
  return names.at(static_cast<std::size_t>(part));
}
const char* what_of(Traffic traffic) { return detail::words_of(traffic).what; }

/// Sums up under names.
class Shares {
 public:
  void add(const PathShare& step) {
    if (step.time <= Seconds{0}) return;
    const auto [place, is_new] = by_name_.try_emplace(step.what, step);
    PathShare& share = place->second;
    ++share.steps;
    if (is_new) return;
    share.time += step.time;
    share.bytes += step.bytes;
  }
  std::vector<PathShare> take() const {
    std::vector<PathShare> list;
    for (const auto& [what, share] : by_name_) list.push_back(share);
    std::ranges::stable_sort(list, std::greater<>{}, &PathShare::time);
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
    const Work& work = programs_.work_of(tables, span.op);
    const std::size_t stage = device(span.device).stage.index();
    Seconds left = span.end - span.begin;
    std::size_t last = 0;
    for (std::size_t i = 0; i < work.parts.size(); ++i)
      if (work.parts[i] > Seconds{0}) last = i;
    for (std::size_t i = 0; i <= last; ++i) {
      const Seconds time = i == last ? left : std::min(left, work.parts[i]);
      const auto part = static_cast<Part>(i);
      PathShare share;
      share.topic = what_of(part);
      share.what = share.topic + " of stage " + number(stage);
      share.line = line_of(part);
      share.time = time;
      share.stage = static_cast<int>(stage);
      shares.add(share);
      left -= time;
    }
  }

  void add_message(const MessageSpan& message, Seconds time, Shares& shares) const {
    const Channel& channel = programs_.channels[message.channel.index()];
    const PlanDevice &from = device(channel.from), &to = device(channel.to);
    PathShare share;
    share.kind = Activity::Kind::message;
    share.topic = what_of(message.send.traffic);
    share.what = way_of(message);
    share.line = Line::pipeline_comm;
    share.time = time;
    share.bytes = message.bytes;
    share.stage = static_cast<int>(from.stage.index());
    share.to_stage = static_cast<int>(to.stage.index());
    share.node = static_cast<int>(from.node.index());
    share.to_node = static_cast<int>(to.node.index());
    shares.add(share);
  }

  void add_collective(const CollectiveSpan& span, Seconds time, Shares& shares) const {
    PathShare share;
    share.kind = Activity::Kind::collective;
    share.topic = what_of(span.op.traffic);
    share.what = name_of(span);
    share.line = line_of(span.op.phase);
    share.time = time;
    if (span.op.traffic != Traffic::embedding_sync) share.stage = static_cast<int>(stage_of(span));
    shares.add(share);
  }

 public:
  std::string way_of(const MessageSpan& message) const {
    const Channel& channel = programs_.channels[message.channel.index()];
    const PlanDevice &from = device(channel.from), &to = device(channel.to);
    std::string what = "stage " + number(from.stage.index()) + " -> " + number(to.stage.index());
    what += channel.in_node
                ? " inside node " + number(from.node.index())
                : " over node " + number(from.node.index()) + " -> " + number(to.node.index());
    return what + " (" + what_of(message.send.traffic) + ")";
  }
  std::string name_of(const CollectiveSpan& span) const {
    if (span.op.traffic == Traffic::embedding_sync) return what_of(span.op.traffic);
    return what_of(span.op.traffic) + std::string(" of stage ") + number(stage_of(span));
  }

 private:
  std::size_t stage_of(const CollectiveSpan& span) const {
    return device(programs_.collectives[span.collective.index()].members.front()).stage.index();
  }

  const Plan& plan_;
  const ProgramSet& programs_;
  const Timeline& timeline_;
};

/// What a step is part of: a place that a segment stays in.
PathSegment segment_of(const CriticalStep& step, const Plan& plan, const Timeline& timeline,
                       const PathReader& reader) {
  const std::size_t index = step.activity.index;
  PathSegment segment{"", "", step.activity.kind, step.begin, step.end, 1};
  switch (step.activity.kind) {
    case Activity::Kind::compute: {
      const PlanDevice& device = plan.devices[timeline.computes[index].device.index()];
      segment.what = "stage " + number(device.stage.index());
      segment.where = detail::process_name(plan, device);
      break;
    }
    case Activity::Kind::message:
      segment.what = reader.way_of(timeline.messages[index]);
      break;
    case Activity::Kind::collective:
      segment.what = reader.name_of(timeline.collectives[index]);
      break;
    case Activity::Kind::event:
      break;
  }
  return segment;
}

/// "compute of 9 other stages", "activations on 62 other ways"; not "other" where none of them has a name.
std::string name_of_rest(const PathShare& rest, int places, bool some_are_named) {
  const std::string many = std::to_string(places) + (some_are_named ? " other " : " ");
  if (rest.kind == Activity::Kind::message) return rest.topic + " on " + many + "paths";
  return rest.topic + " of " + many + "stages";
}

}  // namespace

std::string spoken_share(const PathShare& share) {
  if (share.kind != Activity::Kind::message) return share.what;
  std::string text = share.what;
  const std::size_t end = text.rfind(" (");  // none where several ways are one
  text.insert(end == std::string::npos ? text.size() : end, " at " + to_text(share.rate()));
  return "waiting for " + text;
}

std::vector<PathShare> path_shares(const Plan& plan, const ProgramSet& programs,
                                   const Timeline& timeline, const CriticalPath& path) {
  const PathReader reader(plan, programs, timeline);
  Shares shares;
  for (const CriticalStep& step : path.steps) reader.add(step, shares);
  return shares.take();
}

std::vector<PathShare> main_shares(const std::vector<PathShare>& shares, std::size_t most) {
  constexpr double least_share = 0.02, least_message_share = 0.01;
  Seconds whole{};
  for (const PathShare& share : shares) whole += share.time;
  std::vector<PathShare> list, rests;
  std::vector<int> places;
  const auto like = [](const PathShare& share) {
    return [&share](const PathShare& each) {
      return each.topic == share.topic && each.kind == share.kind;
    };
  };
  for (const PathShare& share : shares) {
    const bool is_message = share.kind == Activity::Kind::message;
    if (list.size() < most &&
        share.time >= (is_message ? least_message_share : least_share) * whole) {
      list.push_back(share);
      continue;
    }
    const auto rest = std::ranges::find_if(rests, like(share));
    if (rest == rests.end()) {
      rests.push_back(share);
      places.push_back(1);
      continue;
    }
    rest->time += share.time;
    rest->steps += share.steps;
    rest->bytes += share.bytes;
    ++places[static_cast<std::size_t>(rest - rests.begin())];
  }
  const auto named = static_cast<std::ptrdiff_t>(list.size());
  for (std::size_t i = 0; i < rests.size(); ++i) {
    if (places[i] > 1) {
      const auto end = list.begin() + named;
      const bool some_are_named = std::find_if(list.begin(), end, like(rests[i])) != end;
      rests[i].what = name_of_rest(rests[i], places[i], some_are_named);
      rests[i].stage = rests[i].to_stage = rests[i].node = rests[i].to_node = -1;
    }
    list.push_back(rests[i]);
  }
  std::ranges::stable_sort(list, std::greater<>{}, &PathShare::time);
  return list;
}

Breakdown lines_of_path(const std::vector<PathShare>& shares) {
  Breakdown lines;
  for (const PathShare& share : shares)
    lines.seconds[static_cast<std::size_t>(share.line)] += share.time;
  return lines;
}

std::vector<PathSegment> path_segments(const Plan& plan, const ProgramSet& programs,
                                       const Timeline& timeline, const CriticalPath& path) {
  const PathReader reader(plan, programs, timeline);
  std::vector<PathSegment> segments;
  for (const CriticalStep& step : path.steps) {
    if (step.activity.kind == Activity::Kind::event) continue;
    PathSegment next = segment_of(step, plan, timeline, reader);
    if (!segments.empty() && segments.back().what == next.what &&
        segments.back().where == next.where && segments.back().kind == next.kind) {
      segments.back().end = next.end;
      ++segments.back().steps;
    } else {
      segments.push_back(std::move(next));
    }
  }
  return segments;
}

}  // namespace windtunnel
