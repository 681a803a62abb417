#include "report/path_json.hpp"

#include <cstdint>
#include <vector>

#include "report/path_shares.hpp"
#include "report/why_text.hpp"

namespace windtunnel {

JsonValue path_value(const PlayedIteration& played, const CriticalPath& critical,
                     const Report& report) {
  const std::vector<PathShare> shares =
      path_shares(*played.plan, *played.programs, *played.timeline, critical);
  JsonValue::Array path;
  const Breakdown by_line = lines_of_path(shares);
  for (const PathShare& share : shares) {
    JsonValue step(JsonValue::Object{});
    step.set("what", JsonValue(share.what));
    step.set("line", JsonValue(std::string(name_of(share.line))));
    step.set("time_s", JsonValue(share.time / Seconds{1}));
    step.set("steps", JsonValue(std::int64_t{share.steps}));
    path.push_back(std::move(step));
  }
  JsonValue lines(JsonValue::Object{}), reasons(JsonValue::Object{});
  for (int i = 0; i < num_lines; ++i) {
    const auto line = static_cast<Line>(i);
    if (is_always_written(line) || by_line.of(line) > Seconds{0})
      lines.set(name_of(line), JsonValue(by_line.of(line) / Seconds{1}));
  }
  for (const Reason& reason : reasons_for_time(report))
    reasons.set(name_of(reason.line), JsonValue(reason.text));
  JsonValue why(JsonValue::Object{});
  why.set("path", JsonValue(std::move(path)));
  why.set("path_by_line_s", std::move(lines));
  why.set("reasons", std::move(reasons));
  return why;
}

}  // namespace windtunnel
