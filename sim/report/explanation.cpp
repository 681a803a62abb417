#include "report/explanation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/summary_text.hpp"
#include "report/text_table.hpp"
#include "report/trace_names.hpp"
#include "units/quantity_reader.hpp"

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
    std::ranges::sort(things_);
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
  std::ranges::stable_sort(list, [](const Slack& a, const Slack& b) {
    return std::tuple(a.least, -a.on_path, -a.busy) < std::tuple(b.least, -b.on_path, -b.busy);
  });
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

bool changes_little(const Explanation& e, const WhatIfResult& result) {
  return result.failure.empty() &&
         std::abs(result.iteration_time / e.report.iteration_time - 1) < least_change;
}

/// Whether the sign of a change is judged.
bool is_judged(const Explanation& e) {
  return std::ranges::any_of(
      e.what_ifs, [](const WhatIfResult& result) { return result.ordering.has_value(); });
}

std::string whole_percent(double share) { return fixed_text(100 * share, 0) + " %"; }

/// Change, time, how sure the sign is where that is known of any, and what was changed.
TextRow what_if_row(const Explanation& e, const WhatIfResult& result) {
  TextRow row{"-", "-", "-", result.change.what};
  if (!result.failure.empty()) {
    row.back() += ": " + result.failure.substr(0, result.failure.find('\n'));
  } else {
    row[0] = change_text(result.iteration_time / e.report.iteration_time - 1);
    row[1] = to_text(result.iteration_time);
    if (result.ordering) row[2] = whole_percent(result.ordering->sure);
    if (const std::string note = memory_note(result, e.report); !note.empty())
      row.back() += " (" + note + ")";
  }
  if (!is_judged(e)) row.erase(row.begin() + 2);
  return row;
}

/// "A; B; C; D; and 812 more".
std::string names_of(const Explanation& e, WhatIfFate fate) {
  constexpr std::size_t most_named = 4;
  std::string names;
  std::size_t count = 0;
  for (const WhatIfResult& result : e.what_ifs) {
    if (result.fate != fate) continue;
    if (++count <= most_named) names += (names.empty() ? "" : "; ") + result.change.what;
  }
  return count > most_named ? names + "; and " + std::to_string(count - most_named) + " more"
                            : names;
}

/// What was not simulated, and why.
std::string left_out_text(const Explanation& e) {
  std::string text;
  if (const std::string names = names_of(e, WhatIfFate::cannot_matter); !names.empty())
    text += detail::paragraph("not simulated, since the critical path lets them save less than " +
                              percent_text(least_change) + ": " + names);
  if (const std::string names = names_of(e, WhatIfFate::over_budget); !names.empty())
    text += detail::paragraph(
        "not simulated, since others may save more, or the budget was spent: " + names);
  return text;
}

/// "A; B; C; and 12 more"
std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t most_named = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(most_named, names.size()); ++i)
    text += (i == 0 ? "" : "; ") + names[i];
  return names.size() <= most_named
             ? text
             : text + "; and " + std::to_string(names.size() - most_named) + " more";
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

/// First all that is no codec; of codecs those that gain, at most as many.
std::string what_if_text(const Explanation& e, const Painter& paint) {
  constexpr double least_gain = 0.01;  // of a codec, to have its own line
  std::string text = heading(
      paint, is_judged(e)
                 ? "What if (each simulated on its own; third, how sure the sign of a choice is)"
                 : "What if (each simulated on its own)");
  std::vector<std::string> little;
  std::vector<TextRow> rows, codec_rows;
  std::vector<const WhatIfResult*> other_codecs;
  const auto is_told = [](const WhatIfResult& result) {
    return result.fate == WhatIfFate::simulated || result.fate == WhatIfFate::failed;
  };
  for (const WhatIfResult& result : e.what_ifs) {
    if (adds_codec(result.change) && result.failure.empty()) continue;
    if (changes_little(e, result))
      little.push_back(result.change.what);
    else if (is_told(result))
      rows.push_back(what_if_row(e, result));
  }
  for (const WhatIfResult& result : e.what_ifs) {
    if (!adds_codec(result.change) || !result.failure.empty() || !is_told(result)) continue;
    if (1 - result.iteration_time / e.report.iteration_time >= least_gain &&
        codec_rows.size() < std::max<std::size_t>(rows.size(), 1))
      codec_rows.push_back(what_if_row(e, result));
    else
      other_codecs.push_back(&result);
  }
  rows.insert(rows.end(), codec_rows.begin(), codec_rows.end());
  text += text_table(is_judged(e) ? "r11r10r6w" : "r11r10w", rows);
  if (const std::string others = other_codecs_text(e, other_codecs, least_gain); !others.empty())
    text += detail::paragraph(others);
  if (!little.empty())
    text += detail::paragraph("less than " + percent_text(least_change) +
                              " either way: " + first_of(little));
  text += left_out_text(e);
  return text + detail::paragraph(
                    "--json gives the command of each, and where its time goes; --report a page");
}

/// The stages most on the path.
std::vector<Slack> by_need(std::vector<Slack> list) {
  std::ranges::stable_sort(list, std::greater<>{}, &Slack::on_path);
  return list;
}

JsonValue share_value(const PathShare& share, Seconds whole) {
  JsonValue value = object_of({{"what", share.what},
                               {"kind", name_of(share.kind)},
                               {"line", name_of(share.line)},
                               {"time_s", share.time},
                               {"share", share.time / whole},
                               {"steps", share.steps}});
  if (share.stage >= 0) value.set("stage", json_of(share.stage));
  if (share.kind == Activity::Kind::message)
    add_members(value, {{"to_stage", share.to_stage},
                        {"node", share.node},
                        {"to_node", share.to_node},
                        {"bytes", share.bytes / Bytes{1}},
                        {"rate_bytes_per_s", share.rate() / BytesPerSecond{1}}});
  return value;
}

JsonValue segment_value(const PathSegment& segment) {
  JsonValue value = object_of({{"what", segment.what}, {"kind", name_of(segment.kind)}});
  if (!segment.where.empty()) value.set("where", JsonValue(segment.where));
  add_members(value,
              {{"begin_s", segment.begin}, {"end_s", segment.end}, {"steps", segment.steps}});
  return value;
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
                               {"command", result.command},
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
                 {"breakdown_s", breakdown_value(result.breakdown)},
                 {"ordering", result.ordering ? std::optional(ordering_value(*result.ordering))
                                              : std::nullopt}});
  return value;
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
  text += slack_text(by_need(e.stages), whole,
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
  add_members(value, {{"command", e.command},
                      {"what_ifs", array_of(e.what_ifs, what_if)},
                      {"report", report_value(e.report)}});
  return value;
}

}  // namespace windtunnel
