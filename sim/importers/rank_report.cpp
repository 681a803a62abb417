#include "importers/rank_report.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "importers/rate_matrix.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int name_width = 42, column_width = 14;

std::string row(const std::string& name, const std::vector<std::string>& columns) {
  std::string text = left_aligned(name, name_width);
  for (const std::string& column : columns) text += right_aligned(column, column_width);
  return text + "\n";
}

std::string time_text(double seconds) { return to_text(Seconds{seconds}); }
std::string rate_text(double rate) { return significant_text(rate * 1e-9, 3) + " GB/s"; }

std::string late_ranks_text(const RankVerdict& verdict, const std::vector<RankTrace>& ranks) {
  std::vector<RankPace> latest = verdict.ranks;
  std::stable_sort(latest.begin(), latest.end(),
                   [](const RankPace& a, const RankPace& b) { return a.lag > b.lag; });
  constexpr std::size_t most_shown = 5;
  latest.resize(std::min(most_shown, latest.size()));
  std::string text = "\n" + row("latest ranks, of one step",
                                {"compute", "to its peers", "others wait", "comes last"});
  for (const RankPace& pace : latest)
    text += row("  rank " + std::to_string(ranks[pace.member].rank),
                {time_text(pace.compute), signed_percent_text(pace.compute_over_peers - 1),
                 time_text(pace.lag), percent_text(pace.share_last)});
  return text;
}

std::string name_of(const RankGroup& group) {
  return !group.description.empty() ? group.description : group.name;
}

std::string groups_text(const RankVerdict& verdict) {
  using Key = std::tuple<std::string, std::size_t, CollectiveKind, std::int64_t>;
  std::map<Key, std::vector<const GroupRate*>> alike;
  for (const GroupRate& rate : verdict.groups) {
    const RankGroup& group = verdict.matched.groups[rate.group];
    alike[{name_of(group), group.members.size(), rate.kind, rate.bytes}].push_back(&rate);
  }
  if (alike.empty()) return {};
  std::string text =
      "\n" + row("process groups", {"groups", "call", "size", "bus bandwidth", "slowest"});
  for (const auto& [key, rates] : alike) {
    std::vector<double> bandwidths;
    for (const GroupRate* rate : rates) bandwidths.push_back(rate->bus_bandwidth);
    const double slowest = *std::min_element(bandwidths.begin(), bandwidths.end());
    text += row("  " + std::get<0>(key) + ", " + std::to_string(std::get<1>(key)) + " ranks",
                {std::to_string(rates.size()), windtunnel::name_of(std::get<2>(key)),
                 to_text(Bytes{static_cast<double>(std::get<3>(key))}),
                 rate_text(median_of(std::move(bandwidths))), rate_text(slowest)});
  }
  return text;
}

/// What the traces cannot tell of ranks; empty where they can tell.
std::string cannot_judge_text(const RankVerdict& verdict, const std::vector<RankTrace>& ranks) {
  const RankPower& power = verdict.power;
  if (power.can_judge()) return {};
  std::string text = "cannot judge whether a rank is slow: ";
  if (power.num_judged == 0)
    text += "none of the " + std::to_string(ranks.size()) +
            " has two others beside it that do the same work";
  else
    text += "of " + std::to_string(power.num_judged) +
            " that can be compared, one of half the speed could be so by chance";
  if (!power.suspect) return text + ". Add the traces of all ranks of a tensor or data group";
  const RankPace& pace = verdict.ranks[*power.suspect];
  text += ". Suspect rank " + std::to_string(ranks[*power.suspect].rank) +
          ", for which others wait " + time_text(pace.lag) + " a step: add the traces of ";
  if (power.missing_peers.empty()) return text + "the other ranks of its process groups";
  constexpr std::size_t most_named = 8;
  text += power.missing_peers.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(most_named, power.missing_peers.size()); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(power.missing_peers[i]);
  return text + (power.missing_peers.size() > most_named ? ", …" : "") +
         ", which are in a process group with it";
}

JsonValue json_of(const RankPace& pace, const RankTrace& rank) {
  JsonValue value(JsonValue::Object{});
  value.set("rank", JsonValue(rank.rank));
  value.set("compute_s", JsonValue(pace.compute));
  value.set("compute_over_peers", JsonValue(pace.compute_over_peers));
  value.set("waited_for_s", JsonValue(pace.lag));
  value.set("share_last", JsonValue(pace.share_last));
  return value;
}

JsonValue json_of(const GroupRate& rate, const RankGroup& group,
                  const std::vector<RankTrace>& ranks) {
  JsonValue value(JsonValue::Object{});
  JsonValue::Array members;
  for (const std::size_t member : group.members) members.emplace_back(ranks[member].rank);
  value.set("group", JsonValue(name_of(group)));
  value.set("ranks", JsonValue(std::move(members)));
  value.set("calls", JsonValue(static_cast<std::int64_t>(rate.num_calls)));
  value.set("call", JsonValue(std::string(windtunnel::name_of(rate.kind))));
  value.set("bytes", JsonValue(rate.bytes));
  value.set("bus_bandwidth", JsonValue(rate.bus_bandwidth));
  if (rate.peers_bandwidth > 0) value.set("peers_bus_bandwidth", JsonValue(rate.peers_bandwidth));
  return value;
}

JsonValue json_of(const RankFinding& finding) {
  JsonValue value(JsonValue::Object{});
  JsonValue::Array places;
  for (const std::int64_t place : finding.places) places.emplace_back(place);
  value.set("kind", JsonValue(std::string(windtunnel::name_of(finding.kind))));
  value.set("places", JsonValue(std::move(places)));
  value.set("cost_s", JsonValue(finding.cost));
  if (finding.bandwidth > 0) {
    value.set("bandwidth", JsonValue(finding.bandwidth));
    value.set("usual_bandwidth", JsonValue(finding.usual_bandwidth));
  } else {
    value.set("compute_over_peers", JsonValue(finding.ratio));
  }
  value.set("text", JsonValue(finding.text));
  return value;
}

}  // namespace

std::string text_of(const RankVerdict& verdict, const std::vector<RankTrace>& ranks) {
  if (verdict.matched.calls.empty()) return {};
  std::string text = "\ncalls matched across ranks: " +
                     grouped_text(static_cast<double>(verdict.matched.calls.size())) + " in " +
                     std::to_string(verdict.matched.groups.size()) + " groups\n";
  text += late_ranks_text(verdict, ranks) + groups_text(verdict) + "\nVerdict\n";
  for (const RankFinding& finding : verdict.findings) text += "  " + finding.text + "\n";
  const std::string cannot = cannot_judge_text(verdict, ranks);
  if (!cannot.empty()) return text + "  " + cannot + "\n";
  if (verdict.findings.empty())
    text +=
        "  none: no rank computes slower, and no group moves less, than chance explains (a rank "
        "would be named that computes " +
        percent_text(verdict.power.least_named) + " longer than its peers)\n";
  return text;
}

JsonValue json_of(const RankVerdict& verdict, const std::vector<RankTrace>& ranks) {
  JsonValue value(JsonValue::Object{});
  JsonValue::Array paces, groups, findings;
  for (const RankPace& pace : verdict.ranks) paces.push_back(json_of(pace, ranks[pace.member]));
  for (const GroupRate& rate : verdict.groups)
    groups.push_back(json_of(rate, verdict.matched.groups[rate.group], ranks));
  for (const RankFinding& finding : verdict.findings) findings.push_back(json_of(finding));
  value.set("matched_calls", JsonValue(static_cast<std::int64_t>(verdict.matched.calls.size())));
  value.set("unmatched_calls", JsonValue(static_cast<std::int64_t>(verdict.matched.num_unmatched)));
  if (verdict.gpus_per_node > 0) value.set("gpus_per_node", JsonValue(verdict.gpus_per_node));
  value.set("ranks", JsonValue(std::move(paces)));
  value.set("groups", JsonValue(std::move(groups)));
  value.set("verdict", JsonValue(std::move(findings)));
  const std::string cannot = cannot_judge_text(verdict, ranks);
  if (cannot.empty()) {
    value.set("least_named_slowdown", JsonValue(verdict.power.least_named));
    return value;
  }
  JsonValue unjudged(JsonValue::Object{});
  unjudged.set("text", JsonValue(cannot));
  if (verdict.power.suspect) unjudged.set("suspect", JsonValue(ranks[*verdict.power.suspect].rank));
  JsonValue::Array missing;
  for (const std::int64_t rank : verdict.power.missing_peers) missing.emplace_back(rank);
  unjudged.set("add_ranks", JsonValue(std::move(missing)));
  value.set("cannot_judge", std::move(unjudged));
  return value;
}

}  // namespace windtunnel
