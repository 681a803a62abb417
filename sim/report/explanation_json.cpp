#include "core/json_build.hpp"
#include "report/explanation.hpp"
#include "report/json_object.hpp"
#include "report/report_json.hpp"

namespace windtunnel {
namespace {

const char* name_of_kind(Activity::Kind kind) {
  switch (kind) {
    case Activity::Kind::compute:
      return "compute";
    case Activity::Kind::message:
      return "message";
    case Activity::Kind::collective:
      return "collective";
    case Activity::Kind::event:
      return "event";
  }
  return "?";
}

JsonValue share_value(const PathShare& share, Seconds whole) {
  JsonValue value = object_of({{"what", share.what},
                               {"kind", name_of_kind(share.kind)},
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
  JsonValue value = object_of({{"what", segment.what}, {"kind", name_of_kind(segment.kind)}});
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
    add_members(value, {{"iteration_time_s", result.iteration_time},
                        {"change", result.iteration_time / explanation.report.iteration_time - 1},
                        {"fits", result.fits},
                        {"breakdown_s", breakdown_value(result.breakdown)}});
  return value;
}

}  // namespace

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
