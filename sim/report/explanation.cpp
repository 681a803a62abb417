#include "report/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "report/trace_names.hpp"

namespace windtunnel {
namespace {

/// Gathers what happened in one place.
class Place {
 public:
  void add(Seconds time, Seconds slack) {
    if (time > Seconds{0}) things_.emplace_back(slack, time);
  }
  void fill(Slack& place, Seconds end) {
    constexpr double rounding = 1e-9;  // of the iteration: what the engines agree to
    for (auto& [slack, time] : things_)
      if (slack < rounding * end) slack = Seconds{0};
    place.least = place.median = end;
    std::sort(things_.begin(), things_.end());
    Seconds all{}, passed{};
    for (const auto& [slack, time] : things_) all += time;
    for (const auto& [slack, time] : things_) {
      passed += time;
      place.median = slack;
      if (2 * passed >= all) break;
    }
    if (!things_.empty()) place.least = things_.front().first;
  }

 private:
  std::vector<std::pair<Seconds, Seconds>> things_;  ///< slack, length
};

/// Computing devices gathered under the place that `place_of` gives them.
template <class PlaceOf>
void gather_computes(std::vector<Slack>& places, std::size_t num_devices, const Timeline& timeline,
                     const CriticalPath& path, const PlaceOf& place_of) {
  std::vector<Place> gathered(places.size());
  std::vector<Seconds> busy(num_devices);
  for (std::size_t i = 0; i < timeline.computes.size(); ++i) {
    const Span& span = timeline.computes[i];
    const std::size_t place = place_of(span.device);
    gathered[place].add(span.end - span.begin, path.compute_slack[i]);
    Seconds& of_device = busy[span.device.index()];
    of_device += span.end - span.begin;
    places[place].busy = std::max(places[place].busy, of_device);
  }
  for (std::size_t i = 0; i < places.size(); ++i) gathered[i].fill(places[i], timeline.end);
  for (const CriticalStep& step : path.steps)
    if (step.activity.kind == Activity::Kind::compute)
      places[place_of(timeline.computes[step.activity.index].device)].on_path +=
          step.end - step.begin;
}

void sort_by_need(std::vector<Slack>& list) {
  std::stable_sort(list.begin(), list.end(), [](const Slack& a, const Slack& b) {
    return std::tuple(a.least, -a.on_path, -a.busy) < std::tuple(b.least, -b.on_path, -b.busy);
  });
}

}  // namespace

std::vector<Slack> stage_slack(const Plan& plan, const Timeline& timeline,
                               const CriticalPath& path) {
  std::vector<Slack> stages(static_cast<std::size_t>(plan.parallel.pipeline));
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].what = "stage " + std::to_string(s);
  gather_computes(stages, plan.devices.size(), timeline, path,
                  [&](DeviceId device) { return plan.devices[device.index()].stage.index(); });
  return stages;
}

std::vector<Slack> device_slack(const Plan& plan, const Timeline& timeline,
                                const CriticalPath& path) {
  std::vector<Slack> devices(plan.devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d)
    devices[d].what = detail::process_name(plan, plan.devices[d]);
  gather_computes(devices, plan.devices.size(), timeline, path,
                  [](DeviceId device) { return device.index(); });
  return devices;
}

std::vector<Slack> link_slack(const Plan& plan, const ProgramSet& programs,
                              const Timeline& timeline, const CriticalPath& path) {
  using Pair = std::pair<std::size_t, std::size_t>;
  const auto pair_of = [&](const MessageSpan& message) {
    const Channel& channel = programs.channels[message.channel.index()];
    return Pair{plan.devices[channel.from.index()].node.index(),
                plan.devices[channel.to.index()].node.index()};
  };
  std::map<Pair, std::pair<Slack, Place>> links;
  std::vector<Seconds> busy(programs.channels.size());
  for (std::size_t i = 0; i < timeline.messages.size(); ++i) {
    const MessageSpan& message = timeline.messages[i];
    const Pair pair = pair_of(message);
    if (pair.first == pair.second) continue;
    auto& [link, place] = links[pair];
    link.what = "node " + std::to_string(pair.first) + " -> " + std::to_string(pair.second);
    link.busy = std::max(link.busy, busy[message.channel.index()] += message.end - message.begin);
    place.add(message.end - message.begin, path.message_slack[i]);
  }
  for (const CriticalStep& step : path.steps) {
    if (step.activity.kind != Activity::Kind::message) continue;
    const auto link = links.find(pair_of(timeline.messages[step.activity.index]));
    if (link != links.end()) link->second.first.on_path += step.end - step.begin;
  }
  std::vector<Slack> list;
  for (auto& [pair, link] : links) {
    link.second.fill(link.first, timeline.end);
    list.push_back(link.first);
  }
  sort_by_need(list);
  return list;
}

namespace {

using detail::time_text;
using detail::with_spaces;

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word)
    if (letter == '\'')
      quoted += "'\\''";
    else
      quoted += letter;
  return quoted + "'";
}

}  // namespace

const char* name_of(WhatIfKind kind) {
  switch (kind) {
    case WhatIfKind::gpu:
      return "gpu";
    case WhatIfKind::link:
      return "link";
    case WhatIfKind::nic:
      return "nic";
    case WhatIfKind::straggler:
      return "straggler";
    case WhatIfKind::software:
      return "software";
    case WhatIfKind::stage:
      return "stage";
    case WhatIfKind::training:
      return "training";
    case WhatIfKind::schedule:
      return "schedule";
    case WhatIfKind::codec:
      return "codec";
  }
  return "?";
}

Explanation explain_path(Report report, const Plan& plan, const ProgramSet& programs,
                         const Timeline& timeline) {
  Explanation explanation;
  explanation.report = std::move(report);
  explanation.path = find_critical_path(programs, timeline);
  const CriticalPath& path = explanation.path;
  explanation.shares = path_shares(plan, programs, timeline, path);
  explanation.segments = path_segments(plan, programs, timeline, path);
  explanation.stages = stage_slack(plan, timeline, path);
  explanation.devices = device_slack(plan, timeline, path);
  explanation.links = link_slack(plan, programs, timeline, path);
  return explanation;
}

std::string shell_line(const std::vector<std::string>& words) {
  return joined(words, " ", shell_word);
}

std::string change_text(double change) {
  constexpr double least_shown = 0.0005;  // half of the last decimal
  return std::abs(change) < least_shown ? "no change" : signed_percent_text(change);
}

std::string memory_note(const WhatIfResult& result, const Report& report) {
  if (result.fits == report.memory.fits) return "";
  return result.fits ? "fits in memory" : "does not fit in memory";
}

std::string moved_text(const WhatIfResult& result, const Report& report) {
  constexpr double least_share = 0.0005;
  constexpr std::size_t most_lines = 3;
  std::vector<std::pair<Seconds, Line>> moved;
  for (const Line line : all_lines) {
    const Seconds difference = result.breakdown.of(line) - report.breakdown.of(line);
    if (std::abs(difference / report.iteration_time) >= least_share)
      moved.emplace_back(difference, line);
  }
  std::stable_sort(moved.begin(), moved.end(), [](const auto& a, const auto& b) {
    return std::max(a.first, -a.first) > std::max(b.first, -b.first);
  });
  if (moved.size() > most_lines) moved.resize(most_lines);
  return joined(moved, ", ", [&](const auto& each) {
    return with_spaces(name_of(each.second)) + (each.first > Seconds{0} ? " +" : " -") +
           time_text(std::max(each.first, -each.first), report.iteration_time);
  });
}

}  // namespace windtunnel
