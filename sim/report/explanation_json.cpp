#include "core/json_build.hpp"
#include "report/explanation.hpp"
#include "report/report_json.hpp"

namespace windtunnel {
namespace {

JsonValue number(int value) { return JsonValue(std::int64_t{value}); }
JsonValue seconds(Seconds time) { return JsonValue(time.value()); }

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
  JsonValue value = empty_object();
  value.set("what", JsonValue(share.what));
  value.set("kind", JsonValue(std::string(name_of_kind(share.kind))));
  value.set("line", JsonValue(std::string(name_of(share.line))));
  value.set("time_s", seconds(share.time));
  value.set("share", JsonValue(share.time / whole));
  value.set("steps", number(share.steps));
  if (share.stage >= 0) value.set("stage", number(share.stage));
  if (share.kind != Activity::Kind::message) return value;
  value.set("to_stage", number(share.to_stage));
  value.set("node", number(share.node));
  value.set("to_node", number(share.to_node));
  value.set("bytes", JsonValue(share.bytes / Bytes{1}));
  value.set("rate_bytes_per_s", JsonValue(share.rate() / BytesPerSecond{1}));
  return value;
}

JsonValue segment_value(const PathSegment& segment) {
  JsonValue value = empty_object();
  value.set("what", JsonValue(segment.what));
  value.set("kind", JsonValue(std::string(name_of_kind(segment.kind))));
  if (!segment.where.empty()) value.set("where", JsonValue(segment.where));
  value.set("begin_s", seconds(segment.begin));
  value.set("end_s", seconds(segment.end));
  value.set("steps", number(segment.steps));
  return value;
}

JsonValue slack_value(const Slack& slack) {
  JsonValue value = empty_object();
  value.set("what", JsonValue(slack.what));
  value.set("busy_s", seconds(slack.busy));
  value.set("on_path_s", seconds(slack.on_path));
  value.set("slack_s", seconds(slack.least));
  value.set("median_slack_s", seconds(slack.median));
  return value;
}

JsonValue what_if_value(const Explanation& explanation, const WhatIfResult& result) {
  JsonValue value = empty_object();
  value.set("what", JsonValue(result.change.what));
  value.set("kind", JsonValue(std::string(name_of(result.change.kind))));
  JsonValue set = empty_object();
  for (const auto& [pointer, text] : result.change.overrides) set.set(pointer, JsonValue(text));
  value.set("set", set);
  value.set("command", JsonValue(result.command));
  if (result.saves_at_most) value.set("saves_at_most", JsonValue(*result.saves_at_most));
  if (result.fate == WhatIfFate::cannot_matter || result.fate == WhatIfFate::over_budget) {
    value.set("not_simulated",
              JsonValue(std::string(result.fate == WhatIfFate::over_budget ? "budget"
                                                                           : "cannot_matter")));
    return value;
  }
  if (!result.failure.empty()) {
    value.set("failure", JsonValue(result.failure));
    return value;
  }
  value.set("iteration_time_s", seconds(result.iteration_time));
  value.set("change", JsonValue(result.iteration_time / explanation.report.iteration_time - 1));
  value.set("fits", JsonValue(result.fits));
  value.set("breakdown_s", breakdown_value(result.breakdown));
  return value;
}

}  // namespace

JsonValue path_value(const Explanation& e) {
  const Seconds whole = e.report.iteration_time;
  JsonValue value = empty_object();
  value.set("schema", JsonValue(std::string("windtunnel/explanation-v1")));
  value.set("iteration_time_s", seconds(whole));
  value.set("breakdown_s", breakdown_value(e.report.breakdown));
  value.set("critical_path", array_of(e.shares, [whole](const PathShare& share) {
              return share_value(share, whole);
            }));
  value.set("critical_path_s", breakdown_value(lines_of_path(e.shares)));
  value.set("segments", array_of(e.segments, segment_value));
  value.set("stages", array_of(e.stages, slack_value));
  value.set("devices", array_of(e.devices, slack_value));
  value.set("links", array_of(e.links, slack_value));
  return value;
}

JsonValue explanation_value(const Explanation& e) {
  JsonValue value = path_value(e);
  value.set("command", JsonValue(e.command));
  value.set("what_ifs", array_of(e.what_ifs, [&e](const WhatIfResult& result) {
              return what_if_value(e, result);
            }));
  value.set("report", report_value(e.report));
  return value;
}

}  // namespace windtunnel
