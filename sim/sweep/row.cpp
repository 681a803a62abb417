#include "sweep/row.hpp"

#include <array>
#include <cmath>
#include <memory>
#include <string_view>

#include "core/contracts.hpp"
#include "core/hash.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "evidence/interval.hpp"
#include "memory/memory_account.hpp"
#include "report/json_object.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/objective_value.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

constexpr std::string_view checksum_key = ", \"checksum\": \"";
constexpr std::size_t hash_digits = 32;
constexpr std::string_view row_end = "\"}";

/// The fault in the figures of a simulated point; empty: none.
std::string fault_of_figures(const JsonValue& row) {
  for (const char* key : {"samples_per_s", "tokens_per_s", "model_tflops_per_gpu", "mfu",
                          "memory_max_bytes", "iteration_time_s"})
    if (number_of(row.find(key)).value_or(-1) < 0)
      return std::string("its ") + key + " is no figure of a simulation";
  if (number_of(row.find("iteration_time_s")) == 0.0) return "its iteration takes no time";
  const JsonValue* gpus = row.find("gpus");
  if (gpus == nullptr || !gpus->is_integer() || std::get<std::int64_t>(gpus->content) < 1)
    return "its gpus are no number of GPUs";
  const JsonValue* fits = row.find("fits");
  return fits == nullptr || !fits->is_bool() ? "it does not say whether the point fits" : "";
}

std::string fault_of_checksum(const std::string& line, const std::string& sweep_hash) {
  const std::size_t tail = checksum_key.size() + hash_digits + row_end.size();
  if (line.size() <= tail ||
      line.compare(line.size() - tail, checksum_key.size(), checksum_key) != 0)
    return "it has no checksum, so nobody can know whether it was changed";
  return line == with_checksum(line.substr(0, line.size() - tail) + "}", sweep_hash)
             ? ""
             : "its checksum does not match: it was changed after it was written, or is of another "
               "sweep";
}

std::string fault_of_values(const JsonValue& row, const PointValues& values) {
  for (const auto& [pointer, value] : values) {
    const JsonValue* found = row.find(pointer);
    if (found == nullptr || canonical_text(*found) != canonical_text(value))
      return "its " + pointer + " is not what the sweep sets there";
  }
  const std::string id = text_at(row, "id");
  return id.size() == hash_digits && id.find_first_not_of("0123456789abcdef") == std::string::npos
             ? ""
             : "its id is none of a scenario";
}

}  // namespace

std::string line_text(const JsonValue& object) {
  return listed(object.object(), [](const JsonValue::Member& member) {
    return canonical_text(JsonValue(member.key)) + ": " + canonical_text(member.value);
  });
}

std::optional<Row> parse_row(const std::string& line) {
  Problems problems;
  Row row;
  row.content = parse_json(std::make_shared<const SourceText>(SourceText{"", line}), problems);
  if (!problems.empty() || !row.content.is_object()) return std::nullopt;
  const JsonValue* point = row.content.find("point");
  const JsonValue* ok = row.content.find("ok");
  if (point == nullptr || !point->is_integer() || ok == nullptr || !ok->is_bool())
    return std::nullopt;
  row.point = static_cast<std::size_t>(std::get<std::int64_t>(point->content));
  row.ok = std::get<bool>(ok->content);
  row.line = line;
  return row;
}

std::optional<std::pair<double, double>> interval_of(const JsonValue& row, const char* key) {
  const JsonValue* interval = row.find(key);
  if (interval == nullptr || !interval->is_array() || interval->array().size() != 2)
    return std::nullopt;
  const auto low = number_of(&interval->array()[0]), high = number_of(&interval->array()[1]);
  if (!low || !high) return std::nullopt;
  return std::pair(*low, *high);
}

double figure(const JsonValue& row, const std::string& key) {
  return number_of(row.find(key)).value_or(0);
}

std::string text_at(const JsonValue& object, const std::string& key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return "";
  return value->is_string() ? value->string() : canonical_text(*value);
}

const char* memory_mark(const JsonValue& row) {
  return text_at(row, "memory_verdict") == name_of(MemoryVerdict::lower_bound) ? "≥ " : "";
}

const char* doubt_of_fit(const JsonValue& row) {
  return *memory_mark(row) != 0                                              ? "not known"
         : text_at(row, "memory_verdict") == name_of(MemoryVerdict::at_risk) ? "at risk"
                                                                             : "";
}

bool fits(const JsonValue& row) {
  const JsonValue* value = row.find("fits");
  return value != nullptr && value->is_bool() && std::get<bool>(value->content);
}

double penalty_of(const Sweep& sweep, const JsonValue& row) {
  const Objective objective = sweep.choices().objective;
  if (objective == Objective::tokens_per_second) return -figure(row, "tokens_per_s");
  return figure(row, objective == Objective::time ? "iteration_time_s" : name_of(objective));
}

std::string point_name(const JsonValue& row, const std::vector<std::string>& columns) {
  std::string name = text_at(row, "label");
  if (!name.empty()) return name;
  for (const std::string& column : columns)
    if (row.find(column) != nullptr)
      name += (name.empty() ? "" : ", ") + short_name(column, columns) + " " + text_at(row, column);
  return name;
}

std::string with_checksum(const std::string& row, const std::string& sweep_hash) {
  WT_EXPECT(row.ends_with('}'));
  return row.substr(0, row.size() - 1) + std::string(checksum_key) +
         fnv1a_128_hex(sweep_hash + row) + std::string(row_end);
}

std::string with_members(const std::string& row, const JsonValue& more,
                         const std::string& sweep_hash) {
  return with_checksum(row.substr(0, row.rfind(checksum_key)) + ", " + line_text(more) + "}",
                       sweep_hash);
}

std::variant<Row, std::string> read_row(const std::string& line, const Sweep& sweep) {
  std::optional<Row> row = parse_row(line);
  if (!row) return "it is no row";
  if (row->point >= sweep.points().size()) return "the sweep has no such point";
  std::string fault = fault_of_checksum(line, sweep.hash());
  if (fault.empty()) fault = fault_of_values(row->content, sweep.points().values(row->point));
  if (fault.empty() && row->ok) fault = fault_of_figures(row->content);
  if (fault.empty() && !row->ok && text_at(row->content, "failure").empty())
    fault = "it does not say why its point failed";
  if (!fault.empty()) return fault;
  return std::move(*row);
}

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
  // In the unit of the objective.
  const auto value_by = [&](Objective each) {
    return ObjectiveValue(scenario, each, "/sweep/objective")
        .value(report.iteration_time, shares_of(report.breakdown));
  };
  for (const std::string& figure : sweep_->asked_figures()) {
    if (figure == "plan")
      row.set(figure, JsonValue(detail::plan_text(scenario.plan.training, scenario.plan.parallel)));
    else if (figure == "cost")  // of all steps of the job
      row.set(figure, JsonValue(value_by(Objective::cost_per_token) * report.tokens_per_s *
                                (value_by(Objective::days) * seconds_per_day)));
    else if (figure != speedup_key)
      row.set(figure,
              JsonValue(value_by(figure == "days" ? Objective::days : objective.objective())));
  }
  return line_text(row);
}

std::string RowMaker::row(std::size_t point) const {
  std::string id = id_of_unreadable(*sweep_, point), outcome;
  const auto failure = failure_in([&] {
    try {
      const Scenario scenario = sweep_->scenario(point);
      id = scenario.hash;
      if (!limits_.time && !limits_.memory) {
        outcome = figures(scenario);
      } else {
        const ChildOutcome found = run_in_child([&] { return figures(scenario); }, limits_);
        const auto* of_child = std::get_if<ChildFailure>(&found);
        outcome = of_child != nullptr ? failure_text(*of_child) : std::get<std::string>(found);
      }
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
