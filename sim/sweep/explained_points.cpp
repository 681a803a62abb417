#include "sweep/explained_points.hpp"

#include <memory>
#include <utility>

#include "report/report_json.hpp"
#include "report/why_text.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

std::string explanation_text(const Sweep& sweep, std::size_t point) {
  SimulateOptions options;
  options.evidence = &sweep.library();
  const Report report = simulate(sweep.planned(sweep.scenario(point)), options).report;
  JsonValue reasons(JsonValue::Object{});
  for (const Reason& reason : reasons_for_time(report))
    reasons.set(name_of(reason.line), JsonValue(reason.text));
  JsonValue both(JsonValue::Object{});
  both.set("report", report_value(report));
  both.set("reasons", std::move(reasons));
  return canonical_text(both);
}

}  // namespace

std::vector<ExplainedPoint> explain_points(const Sweep& sweep,
                                           const std::vector<std::size_t>& points,
                                           const PointLimits& limits) {
  ForkedWork work;
  work.count = points.size();
  work.at_once = default_at_once();
  work.most_time = limits.time;
  work.most_memory = limits.memory;
  work.work = [&](std::size_t i) { return explanation_text(sweep, points[i]); };
  const std::vector<ChildOutcome> outcomes = run_forked(work);
  std::vector<ExplainedPoint> explained;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto* text = std::get_if<std::string>(&outcomes[i]);
    if (text == nullptr) continue;
    Problems problems;
    const JsonValue both =
        parse_json(std::make_shared<const SourceText>(SourceText{"a point", *text}), problems);
    problems.throw_if_any();
    explained.push_back({points[i], *both.find("report"), *both.find("reasons")});
  }
  return explained;
}

}  // namespace windtunnel
