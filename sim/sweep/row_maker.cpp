#include "sweep/row_maker.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "core/contracts.hpp"
#include "core/hash.hpp"
#include "core/problem.hpp"
#include "evidence/interval.hpp"
#include "report/json_object.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "scenario/scenario.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/objective_value.hpp"
#include "simulate/simulate.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace {

const char* name_of(FailureKind kind) {
  static constexpr std::array names{"bad_input", "unsupported",   "environment",
                                    "crash",     "out_of_memory", "out_of_time"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string failure_text(const ChildFailure& failure) {
  return line_text(
      object_of({{"ok", false}, {"failure", name_of(failure.kind)}, {"error", failure.text}}));
}

/// The problems without places in files: the point is the place.
std::string reason(const InputError& error) {
  std::string text;
  for (const Problem& problem : error.problems()) {
    text += (text.empty() ? "" : "; ") + problem.message;
    if (!problem.pointer.empty()) text += " at " + problem.pointer;
    if (!problem.suggestion.empty()) text += " (" + problem.suggestion + ")";
  }
  return text;
}

/// In the unit of the objective.
double value_by(Objective objective, const Scenario& scenario, const Report& report) {
  return ObjectiveValue(scenario, objective, "/sweep/objective")
      .value(report.iteration_time, shares_of(report.breakdown));
}

/// Of the steps of the whole job.
double cost_of_job(const Scenario& scenario, const Report& report) {
  const double seconds = value_by(Objective::days, scenario, report) * seconds_per_day;
  return value_by(Objective::cost_per_token, scenario, report) * report.tokens_per_s * seconds;
}

}  // namespace

RowMaker::RowMaker(const Sweep& sweep, const ChildLimits& limits)
    : sweep_(&sweep), limits_(limits), evidence_(read_evidence(sweep.library())) {}

std::string RowMaker::whole_row(std::size_t point, const std::string& id,
                                const std::string& outcome) const {
  const std::string label = sweep_->points().label(point);
  JsonValue object =
      object_of({{"point", point}, {"id", id}, {"label", only_if(!label.empty(), label)}});
  for (const auto& [pointer, value] : sweep_->points().values(point)) object.set(pointer, value);
  return with_checksum("{" + line_text(object) + ", " + outcome + "}", sweep_->hash());
}

std::string RowMaker::figures(const Scenario& as_read) const {
  const ObjectiveValue objective(as_read, sweep_->choices().objective, "/sweep/objective");
  std::optional<Scenario> planned;
  if (sweep_->choices().plan != JobPlan::given) planned = sweep_->planned(as_read);
  const Scenario& scenario = planned ? *planned : as_read;
  // Energy depends on what GPUs do in a step; all else on how long it takes.
  const Report report = sweep_->choices().objective == Objective::energy_per_token
                            ? simulate(scenario).report
                            : simulate_key_figures(scenario, build(scenario));
  WT_ENSURE(report.iteration_time > 0_s);
  std::optional<std::pair<Seconds, Seconds>> interval;
  if (!evidence_.regimes.empty()) {
    const Interval found = interval_from(evidence_, traits_of(scenario), report.iteration_time,
                                         share_outside_kernels(report.breakdown));
    interval.emplace(found.low, found.high);
  }
  JsonValue row = object_of({{"ok", true},
                             {"gpus", report.num_gpus},
                             {"iteration_time_s", report.iteration_time},
                             {"iteration_time_interval_s", interval},
                             {"breakdown_s", breakdown_value(report.breakdown)},
                             {"job", object_of({{"model", scenario.model.name},
                                                {"parameters", total_parameters(scenario.model)},
                                                {"software", scenario.software.name},
                                                {"gpu_family", device_family(scenario.nodes)}})},
                             {"samples_per_s", report.samples_per_s},
                             {"tokens_per_s", report.tokens_per_s},
                             {"model_tflops_per_gpu", report.model_flops_per_gpu / 1_TFLOPS},
                             {"mfu", report.mfu},
                             {"memory_max_bytes", std::round(report.memory.max_total / Bytes{1})},
                             {"fits", report.memory.fits},
                             {"memory_verdict", name_of(report.memory.verdict)}});
  for (const std::string& figure : sweep_->asked_figures())
    if (figure != speedup_key)
      row.set(figure,
              figure == "plan"
                  ? JsonValue(detail::plan_text(scenario.plan.training, scenario.plan.parallel))
              : figure == "cost"
                  ? JsonValue(cost_of_job(scenario, report))
                  : JsonValue(value_by(figure == "days" ? Objective::days : objective.objective(),
                                       scenario, report)));
  return line_text(row);
}

std::string RowMaker::outcome_of(const Scenario& scenario) const {
  if (!limits_.time && !limits_.memory) return figures(scenario);
  const ChildOutcome outcome = run_in_child([&] { return figures(scenario); }, limits_);
  const auto* failure = std::get_if<ChildFailure>(&outcome);
  return failure != nullptr ? failure_text(*failure) : std::get<std::string>(outcome);
}

std::string RowMaker::row(std::size_t point) const {
  std::string id = id_of_unreadable(*sweep_, point), outcome;
  const auto failure = failure_in([&] {
    try {
      const Scenario scenario = sweep_->scenario(point);
      id = scenario.hash;
      outcome = outcome_of(scenario);
    } catch (const UnsupportedError& error) {
      outcome = failure_text({FailureKind::unsupported, reason(error)});
    } catch (const InputError& error) {
      outcome = failure_text({FailureKind::bad_input, reason(error)});
    }
  });
  if (failure) outcome = failure_text(*failure);
  return whole_row(point, id, outcome);
}

std::string RowMaker::failed_row(std::size_t point, const ChildFailure& failure) const {
  return whole_row(point, id_of_unreadable(*sweep_, point), failure_text(failure));
}

std::string id_of_unreadable(const Sweep& sweep, std::size_t point) {
  std::string text = sweep.hash();
  for (const auto& [pointer, value] : sweep.points().values(point))
    text += pointer + "=" + canonical_text(value);
  return fnv1a_128_hex(text);
}

}  // namespace windtunnel
