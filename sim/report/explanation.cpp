#include "report/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "core/count_text.hpp"
#include "core/enum_array.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/summary_text.hpp"
#include "report/terminal_text.hpp"
#include "report/trace_slices.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Fills in least and median slack of a place from those of the things there, each with its length.
void fill(Slack& place, std::vector<std::pair<Seconds, Seconds>> things, Seconds end) {
  constexpr double rounding = 1e-9;  // of the iteration: what the engines agree to
  place.least = place.median = end;
  Seconds all{}, passed{};
  for (auto& [slack, time] : things) {
    if (slack < rounding * end) slack = Seconds{0};
    all += time;
  }
  std::ranges::sort(things);
  for (const auto& [slack, time] : things) {
    passed += time;
    place.median = slack;
    if (2 * passed >= all) break;
  }
  if (!things.empty()) place.least = things.front().first;
}

/// The slack of places where things of one kind happen: spans of devices, or messages of channels. `slacks` are theirs, `place_of` gives
/// the place of a thing, if it has one, `unit_of` the device or channel.
template <class Thing, class PlaceOf, class UnitOf>
std::vector<Slack> slack_of(const std::vector<std::string>& names, const std::vector<Thing>& things,
                            const std::vector<Seconds>& slacks, Activity::Kind kind,
                            const CriticalPath& path, Seconds end, const PlaceOf& place_of,
                            const UnitOf& unit_of) {
  std::vector<Slack> places(names.size());
  std::vector<std::vector<std::pair<Seconds, Seconds>>> gathered(names.size());
  std::map<std::size_t, Seconds> busy;  // by unit
  for (std::size_t i = 0; i < things.size(); ++i) {
    const std::optional<std::size_t> place = place_of(things[i]);
    if (!place) continue;
    const Seconds time = things[i].end - things[i].begin;
    if (time > Seconds{0}) gathered[*place].emplace_back(slacks[i], time);
    places[*place].busy = std::max(places[*place].busy, busy[unit_of(things[i])] += time);
  }
  for (const CriticalStep& step : path.steps)
    if (step.activity.kind == kind)
      if (const auto place = place_of(things[step.activity.index]))
        places[*place].on_path += step.end - step.begin;
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].what = names[i];
    fill(places[i], std::move(gathered[i]), end);
  }
  return places;
}

std::vector<Slack> compute_slack(const std::vector<std::string>& names, const Timeline& timeline,
                                 const CriticalPath& path,
                                 const std::function<std::size_t(DeviceId)>& place_of) {
  return slack_of(
      names, timeline.computes, path.compute_slack, Activity::Kind::compute, path, timeline.end,
      [&](const Span& span) { return std::optional(place_of(span.device)); },
      [](const Span& span) { return span.device.index(); });
}

std::vector<Slack> link_slack(const Plan& plan, const ProgramSet& programs,
                              const Timeline& timeline, const CriticalPath& path) {
  const auto pair_of = [&](const MessageSpan& message) {
    const Channel& channel = programs.channels[message.channel.index()];
    return std::pair(plan.devices[channel.from.index()].node.index(),
                     plan.devices[channel.to.index()].node.index());
  };
  std::map<decltype(pair_of({})), std::size_t> places;
  for (const MessageSpan& message : timeline.messages)
    if (const auto pair = pair_of(message); pair.first != pair.second) places.try_emplace(pair);
  std::vector<std::string> names;
  for (auto& [pair, place] : places) {
    place = names.size();
    names.push_back("node " + std::to_string(pair.first) + " -> " + std::to_string(pair.second));
  }
  const auto place_of = [&](const MessageSpan& message) {
    const auto found = places.find(pair_of(message));
    return found == places.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<Slack> list = slack_of(
      names, timeline.messages, path.message_slack, Activity::Kind::message, path, timeline.end,
      place_of, [](const MessageSpan& message) { return message.channel.index(); });
  std::ranges::stable_sort(list, {}, [](const Slack& each) {
    return std::tuple(each.least, -each.on_path, -each.busy);
  });
  return list;
}

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

using detail::indent;
using detail::Painter;
using detail::Tone;

constexpr std::size_t most_shares = 15, most_slacks = 8;

std::string heading(const Painter& paint, const std::string& text) {
  return "\n" + paint(Tone::heading, text) + "\n";
}

std::string path_text(const Explanation& e, const Painter& paint) {
  const Seconds whole = e.report.iteration_time;
  std::vector<TextRow> rows;
  for (const PathShare& share : main_shares(e.shares, most_shares))
    rows.push_back({percent_text(share.time / whole), to_text(share.time), spoken_share(share)});
  return heading(paint, "The critical path: what everything else waited for") +
         text_table("r8r10w", rows);
}

std::string slack_time(Seconds slack) { return slack > Seconds{0} ? to_text(slack) : "none"; }

std::string slack_text(const std::vector<Slack>& list, Seconds whole, const std::string& title,
                       const Painter& paint) {
  if (list.empty()) return "";
  std::vector<TextRow> rows{{"", "busy", "on the path", "least slack", "median"}};
  for (std::size_t i = 0; i < std::min(list.size(), most_slacks); ++i)
    rows.push_back({list[i].what, percent_text(list[i].busy / whole),
                    percent_text(list[i].on_path / whole), slack_time(list[i].least),
                    slack_time(list[i].median)});
  std::string text = heading(paint, title) + text_table("w20r12r12?r12r12??", rows);
  if (list.size() > most_slacks)
    text += std::string(indent) + "and " + std::to_string(list.size() - most_slacks) +
            " more (--json lists them)\n";
  return text;
}

/// Changes of less are named together.
constexpr double least_change = 0.002;

/// True if the sign of a change is judged.
bool is_judged(const Explanation& e) {
  return std::ranges::any_of(
      e.what_ifs, [](const WhatIfResult& result) { return result.ordering.has_value(); });
}

/// Change, time, how sure the sign is where that is known of any, and what was changed.
TextRow what_if_row(const Explanation& e, const WhatIfResult& result) {
  TextRow row{change_text(result.iteration_time / e.report.iteration_time - 1),
              to_text(result.iteration_time),
              result.ordering ? fixed_text(100 * result.ordering->sure, 0) + " %" : "-",
              result.change.what};
  if (const std::string note = memory_note(result, e.report); !note.empty())
    row.back() += " (" + note + ")";
  if (!is_judged(e)) row.erase(row.begin() + 2);
  return row;
}

/// "A; B; C; and 12 more"
std::string first_of(const std::vector<std::string>& names, std::size_t most) {
  const bool are_many = names.size() > most;
  const std::vector<std::string> first(
      names.begin(), are_many ? names.begin() + static_cast<std::ptrdiff_t>(most) : names.end());
  return joined(first, "; ") +
         (are_many ? "; and " + std::to_string(names.size() - most) + " more" : "");
}

/// "A; B; C; D; and 812 more".
std::string names_of(const Explanation& e, WhatIfFate fate) {
  constexpr std::size_t most_named = 4;
  std::vector<std::string> names;
  for (const WhatIfResult& result : e.what_ifs)
    if (result.fate == fate) names.push_back(result.change.what);
  return first_of(names, most_named);
}

/// Compresses what is not compressed, or otherwise than it is: there are dozens of such what-ifs.
bool adds_codec(const WhatIf& change) {
  return change.kind == WhatIfKind::codec &&
         (change.overrides.empty() || change.overrides.front().second != "null");
}

/// "19 more codecs: none gains more than 1 %; the worst loses 8.6 % (tensor activations: int8)"
std::string other_codecs_text(const Explanation& e, const std::vector<const WhatIfResult*>& codecs,
                              double least_gain) {
  if (codecs.empty()) return "";
  const auto change = [&](const WhatIfResult* result) {
    return result->iteration_time / e.report.iteration_time - 1;
  };
  const auto [best, worst] =
      std::ranges::minmax_element(codecs, [&](const WhatIfResult* a, const WhatIfResult* b) {
        return a->iteration_time < b->iteration_time;
      });
  std::string text = count_text(codecs.size(), "more codec") + ": none gains more than " +
                     percent_text(std::max(least_gain, -change(*best)));
  if (change(*worst) >= least_change)
    text +=
        "; the worst loses " + percent_text(change(*worst)) + " (" + (*worst)->change.what + ")";
  return text;
}

/// What could not be simulated, under each reason once:
///   all nodes as node 3; half the latency between nodes: not possible: the reason
std::string failures_text(const Explanation& e) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const WhatIfResult& result : e.what_ifs) {
    if (result.fate != WhatIfFate::failed) continue;
    const std::string reason = first_line_of(result.failure);
    auto found = std::ranges::find(by_reason, reason, [](const auto& each) { return each.first; });
    if (found == by_reason.end())
      found = by_reason.emplace(found, reason, std::vector<std::string>{});
    found->second.push_back(result.change.what);
  }
  std::string text;
  for (const auto& [reason, names] : by_reason)
    text += detail::paragraph(joined(names, "; ") + ": " + reason);
  return text;
}

/// First all that is no codec; of codecs those that gain, at most as many.
std::string what_if_text(const Explanation& e, const Painter& paint) {
  constexpr double least_gain = 0.01;  // of a codec, to have its own line
  constexpr std::size_t most_named = 6;
  std::string text =
      heading(paint, is_judged(e) ? "What if (each simulated on its own), by gain times certainty"
                                  : "What if (each simulated on its own), by gain");
  std::vector<std::string> little;
  std::vector<const WhatIfResult*> listed;
  std::vector<const WhatIfResult*> other_codecs;
  for (const WhatIfResult& result : e.what_ifs) {
    if (adds_codec(result.change) || result.fate != WhatIfFate::simulated) continue;
    if (std::abs(result.iteration_time / e.report.iteration_time - 1) < least_change)
      little.push_back(result.change.what);
    else
      listed.push_back(&result);
  }
  const std::size_t most_codecs = std::max<std::size_t>(listed.size(), 1);
  std::size_t num_codecs = 0;
  for (const WhatIfResult& result : e.what_ifs) {
    if (!adds_codec(result.change) || result.fate != WhatIfFate::simulated) continue;
    if (1 - result.iteration_time / e.report.iteration_time >= least_gain &&
        num_codecs < most_codecs) {
      ++num_codecs;
      listed.push_back(&result);
    } else {
      other_codecs.push_back(&result);
    }
  }
  std::ranges::sort(listed);  // all are of one list, which is in order
  std::vector<TextRow> rows;
  for (const WhatIfResult* result : listed) rows.push_back(what_if_row(e, *result));
  TextRow head{"change", "time", "sure of sign", ""};
  if (!is_judged(e)) head.erase(head.begin() + 2);
  if (!rows.empty()) rows.insert(rows.begin(), head);
  text += text_table(is_judged(e) ? "r11r10r14?w" : "r11r10w", rows);
  if (const std::string others = other_codecs_text(e, other_codecs, least_gain); !others.empty())
    text += detail::paragraph(others);
  if (!little.empty())
    text += detail::paragraph("less than " + percent_text(least_change) +
                              " either way: " + first_of(little, most_named));
  text += failures_text(e);
  if (const std::string names = names_of(e, WhatIfFate::cannot_matter); !names.empty())
    text += detail::paragraph("not simulated, since the critical path lets them save less than " +
                              percent_text(least_change) + ": " + names);
  if (const std::string names = names_of(e, WhatIfFate::over_budget); !names.empty())
    text += detail::paragraph(
        "not simulated, since others may save more, or the budget was spent: " + names);
  return text + detail::paragraph(
                    "--json gives the command of each, and where its time goes; --report a page");
}

JsonValue share_value(const PathShare& share, Seconds whole) {
  const bool is_message = share.kind == Activity::Kind::message;
  return object_of({{"what", share.what},
                    {"kind", name_of(share.kind)},
                    {"line", name_of(share.line)},
                    {"time_s", share.time},
                    {"share", share.time / whole},
                    {"steps", share.steps},
                    {"stage", only_if(share.stage >= 0, share.stage)},
                    {"to_stage", only_if(is_message, share.to_stage)},
                    {"node", only_if(is_message, share.node)},
                    {"to_node", only_if(is_message, share.to_node)},
                    {"bytes", only_if(is_message, share.bytes / Bytes{1})},
                    {"rate_bytes_per_s", only_if(is_message, share.rate() / BytesPerSecond{1})}});
}

JsonValue segment_value(const PathSegment& segment) {
  return object_of({{"what", segment.what},
                    {"kind", name_of(segment.kind)},
                    {"where", only_if(!segment.where.empty(), segment.where)},
                    {"begin_s", segment.begin},
                    {"end_s", segment.end},
                    {"steps", segment.steps}});
}

JsonValue slack_value(const Slack& slack) {
  return object_of({{"what", slack.what},
                    {"busy_s", slack.busy},
                    {"on_path_s", slack.on_path},
                    {"slack_s", slack.least},
                    {"median_slack_s", slack.median}});
}

JsonValue what_if_value(const Explanation& explanation, const WhatIfResult& result) {
  JsonValue set = empty_object();
  for (const auto& [pointer, text] : result.change.overrides) set.set(pointer, JsonValue(text));
  JsonValue value = object_of({{"what", result.change.what},
                               {"kind", name_of(result.change.kind)},
                               {"set", set},
                               {"command", only_if(!result.command.empty(), result.command)},
                               {"saves_at_most", result.saves_at_most}});
  if (result.fate == WhatIfFate::cannot_matter || result.fate == WhatIfFate::over_budget)
    add_members(value, {{"not_simulated",
                         result.fate == WhatIfFate::over_budget ? "budget" : "cannot_matter"}});
  else if (!result.failure.empty())
    add_members(value, {{"failure", result.failure}});
  else
    add_members(value,
                {{"iteration_time_s", result.iteration_time},
                 {"change", result.iteration_time / explanation.report.iteration_time - 1},
                 {"fits", result.fits},
                 {"memory_advice", only_if(!result.memory_advice.empty(), result.memory_advice)},
                 {"breakdown_s", breakdown_value(result.breakdown)},
                 {"ordering", result.ordering ? std::optional(ordering_value(*result.ordering))
                                              : std::nullopt}});
  return value;
}

std::string number(std::size_t value) { return std::to_string(value); }

constexpr EnumArray<Part, const char*> part_names{
    {{"compute", "tensor collectives", "codec", "optimizer", "launches and overhead",
      "parameter gathers", "exchanges of tokens", "context exchanges"}}};
const char* what_of(Traffic traffic) { return detail::traffic_names(traffic).what; }

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
  PathReader(const Plan& plan, const ProgramSet& programs, const Timeline& timeline,
             DelayOfSpan delay_of = {})
      : plan_(plan), programs_(programs), timeline_(timeline), delay_of_(std::move(delay_of)) {}

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
    if (delay_of_) left -= add_delays(span, work, stage, shares);
    std::size_t last = 0;
    for (std::size_t i = 0; i < work.parts.size(); ++i)
      if (work.parts[i] > Seconds{0}) last = i;
    for (std::size_t i = 0; i <= last; ++i) {
      const Seconds time = i == last ? left : std::min(left, work.parts[i]);
      const auto part = static_cast<Part>(i);
      const std::string what = part_names[part];
      shares.add({.what = what + " of stage " + number(stage),
                  .topic = what,
                  .line = line_of(part),
                  .time = time,
                  .stage = static_cast<int>(stage)});
      left -= time;
    }
  }

  /// Adds the delays that noise caused in a span, by cause. Returns the sum.
  Seconds add_delays(const Span& span, const Work& usual, std::size_t stage, Shares& shares) const {
    const Seconds longer = span.end - span.begin - usual.duration, rounding = usual.duration * 1e-9;
    if (longer <= rounding) return Seconds{0};
    const SpanDelay delay = delay_of_(span.device, usual);
    Seconds known = std::clamp(delay.time, Seconds{0}, longer);
    if (longer - known <= rounding) known = longer;
    const auto add = [&](const std::string& what, const std::string& topic, Seconds time) {
      shares.add({.what = what,
                  .topic = topic,
                  .line = Line::other,
                  .time = time,
                  .stage = static_cast<int>(stage)});
    };
    add(delay.what, delay.what, known);
    add("noise of stage " + number(stage), "noise", longer - known);
    return longer;
  }

  void add_message(const MessageSpan& message, Seconds time, Shares& shares) const {
    const Channel& channel = programs_.channels[message.channel.index()];
    const PlanDevice &from = device(channel.from), &to = device(channel.to);
    shares.add({.what = transfer_name(message),
                .topic = what_of(message.send.traffic),
                .kind = Activity::Kind::message,
                .line = Line::pipeline_comm,
                .time = time,
                .bytes = message.bytes,
                .stage = static_cast<int>(from.stage.index()),
                .to_stage = static_cast<int>(to.stage.index()),
                .node = static_cast<int>(from.node.index()),
                .to_node = static_cast<int>(to.node.index())});
  }

  void add_collective(const CollectiveSpan& span, Seconds time, Shares& shares) const {
    const bool is_of_stage = span.op.traffic != Traffic::embedding_sync;
    shares.add({.what = name_of(span),
                .topic = what_of(span.op.traffic),
                .kind = Activity::Kind::collective,
                .line = line_of(span.op.phase),
                .time = time,
                .stage = is_of_stage ? static_cast<int>(stage_of(span)) : -1});
  }

 public:
  std::string transfer_name(const MessageSpan& message) const {
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
  DelayOfSpan delay_of_;
};

}  // namespace

bool is_choice(WhatIfKind kind) {
  return kind == WhatIfKind::training || kind == WhatIfKind::schedule || kind == WhatIfKind::codec;
}

Explanation explain_path(Report report, const Plan& plan, const ProgramSet& programs,
                         const Timeline& timeline) {
  Explanation explanation;
  explanation.report = std::move(report);
  explanation.path = find_critical_path(programs, timeline);
  const CriticalPath& path = explanation.path;
  explanation.shares = path_shares(plan, programs, timeline, path);
  explanation.segments = path_segments(plan, programs, timeline, path);
  std::vector<std::string> stages, devices;
  for (int stage = 0; stage < plan.parallel.pipeline; ++stage)
    stages.push_back("stage " + std::to_string(stage));
  for (const PlanDevice& device : plan.devices)
    devices.push_back(detail::process_name(plan, device));
  explanation.stages = compute_slack(stages, timeline, path, [&](DeviceId device) -> std::size_t {
    return plan.devices[device.index()].stage.index();
  });
  explanation.devices =
      compute_slack(devices, timeline, path, [](DeviceId device) { return device.index(); });
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
  if (result.fits && report.memory.fits) return "";
  if (result.fits) return "fits in memory";
  if (!report.memory.fits)  // of a machine that was changed, this goes without saying
    return is_choice(result.change.kind) ? "does not fit in memory either" : "";
  return "does not fit in memory" +
         (result.memory_advice.empty() ? "" : "; " + result.memory_advice);
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
  std::ranges::stable_sort(moved, [](const auto& a, const auto& b) {
    return std::max(a.first, -a.first) > std::max(b.first, -b.first);
  });
  if (moved.size() > most_lines) moved.resize(most_lines);
  return joined(moved, ", ", [&](const auto& each) {
    return with_spaces(name_of(each.second)) + (each.first > Seconds{0} ? " +" : " -") +
           time_text(std::max(each.first, -each.first), report.iteration_time);
  });
}

std::string explanation_text(const Explanation& e, Colour colour) {
  const Painter paint(colour);
  const Seconds whole = e.report.iteration_time;
  std::string text =
      paint(Tone::headline, e.report.name) + "\n" + detail::headline(e.report, paint);
  if (!e.report.memory.fits) text += detail::verdict_line(e.report, paint);
  text += path_text(e, paint);
  std::vector<Slack> stages = e.stages;
  std::ranges::stable_sort(stages, std::greater<>{}, &Slack::on_path);
  text += slack_text(stages, whole,
                     "Stages: how busy, and their slack (a delay that lengthens nothing)", paint);
  text += slack_text(e.links, whole, "Paths between nodes", paint);
  return text + what_if_text(e, paint);
}

JsonValue path_value(const Explanation& e) {
  const auto share = [&](const PathShare& each) {
    return share_value(each, e.report.iteration_time);
  };
  return object_of({{"schema", "windtunnel/explanation-v1"},
                    {"iteration_time_s", e.report.iteration_time},
                    {"breakdown_s", breakdown_value(e.report.breakdown)},
                    {"critical_path", array_of(e.shares, share)},
                    {"critical_path_s", breakdown_value(lines_of_path(e.shares))},
                    {"segments", array_of(e.segments, segment_value)},
                    {"stages", array_of(e.stages, slack_value)},
                    {"devices", array_of(e.devices, slack_value)},
                    {"links", array_of(e.links, slack_value)}});
}

JsonValue explanation_value(const Explanation& e) {
  JsonValue value = path_value(e);
  const auto what_if = [&](const WhatIfResult& result) { return what_if_value(e, result); };
  add_members(value, {{"command", only_if(!e.command.empty(), e.command)},
                      {"what_ifs", array_of(e.what_ifs, what_if)},
                      {"report", report_value(e.report)}});
  return value;
}

std::string spoken_share(const PathShare& share) {
  if (share.kind != Activity::Kind::message) return share.what;
  std::string text = share.what;
  const std::size_t end = text.rfind(" (");  // none if several paths are one
  text.insert(end == std::string::npos ? text.size() : end, " at " + to_text(share.rate()));
  return "waiting for " + text;
}

std::vector<PathShare> path_shares(const Plan& plan, const ProgramSet& programs,
                                   const Timeline& timeline, const CriticalPath& path,
                                   const DelayOfSpan& delay_of) {
  const PathReader reader(plan, programs, timeline, delay_of);
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
      const bool are_paths = rests[i].kind == Activity::Kind::message;
      rests[i].what = rests[i].topic + (are_paths ? " on " : " of ") + std::to_string(places[i]) +
                      (some_are_named ? " other " : " ") + (are_paths ? "paths" : "stages");
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
    const std::size_t index = step.activity.index;
    PathSegment next{"", "", step.activity.kind, step.begin, step.end, 1};
    if (step.activity.kind == Activity::Kind::compute) {
      const PlanDevice& device = plan.devices[timeline.computes[index].device.index()];
      next.what = "stage " + number(device.stage.index());
      next.where = detail::process_name(plan, device);
    } else {
      next.what = step.activity.kind == Activity::Kind::message
                      ? reader.transfer_name(timeline.messages[index])
                      : reader.name_of(timeline.collectives[index]);
    }
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
