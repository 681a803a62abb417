#include "validate/validate_command.hpp"

#include <optional>
#include <ostream>

#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/problem.hpp"
#include "core/staged_files.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "report/progress_line.hpp"
#include "simulate/forked.hpp"
#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

constexpr int digits_shown = 4;

/// Adds a line for each set above the limit, and one when no set has what it limits.
void check_limit(const ScoreLimit& limit, const std::vector<ValidatedSet>& sets,
                 std::vector<std::string>& lines) {
  bool applies = sets.empty();
  for (const ValidatedSet& set : sets) {
    const std::optional<double> reached = find_metric(limit.metric)->of(set);
    applies = applies || reached.has_value();
    if (reached.value_or(0) > limit.limit)
      lines.push_back(set.name + ": " + limit.metric + " is " +
                      significant_text(*reached, digits_shown) + ", above " +
                      significant_text(limit.limit, digits_shown));
  }
  if (!applies) lines.push_back("no set has anything for " + limit.metric + " to be limited");
}

ValidatedSet validate_with_progress(const MeasurementSet& set, Prediction prediction,
                                    ProgressStyle progress, std::ostream& messages) {
  ProgressLine line(messages, progress);
  prediction.on_progress = [&](std::size_t done, std::size_t total) {
    line.show(set.name + ": " + std::to_string(done) + " of " + std::to_string(total) +
              " points predicted");
  };
  return validate(set, prediction);
}

std::string result_text(const std::vector<ValidatedSet>& sets, const ValidateRequest& request) {
  if (request.format == ResultFormat::json) return validation_json(sets);
  if (request.detail != ValidateDetail::rows)
    return validation_summary(
        sets, request.detail == ValidateDetail::summary ? Legend::shown : Legend::hidden);
  std::string text;
  for (const ValidatedSet& set : sets) text += (text.empty() ? "" : "\n") + validation_text(set);
  return text;
}

/// Throws what is wrong with a --set itself, which would fail every point: seen at the first one.
void expect_readable_overrides(const MeasurementSet& set, const Library& library,
                               const ReadOptions& reading) {
  if (reading.overrides.empty() || set.points.empty() || set.points.front().collective) return;
  try {
    read_scenario(scenario_of(set, set.points.front()), set.folder, library, reading);
  } catch (const InputError& error) {  // of the point itself: it is skipped with its reason
    for (const Problem& problem : error.problems())
      if (problem.origin.kind == OriginKind::command_line) throw;
  }
}

}  // namespace

ScoreLimit parse_score_limit(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::vector<std::string> names;
  for (const Metric& metric : all_metrics()) names.emplace_back(metric.name);
  if (find_metric(name) == nullptr) {
    const std::string nearest = closest_match(name, names);
    throw option_error(
        "--fail-above", text, "unknown metric \"" + name + "\"",
        nearest.empty() ? "the metrics are " + listed(names) : "did you mean \"" + nearest + "\"?");
  }
  const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
  const std::optional<double> limit = number_in(number);
  if (!limit || *limit < 0)
    throw option_error("--fail-above", text, "\"" + number + "\" is no limit: errors are fractions",
                       "write " + name + "=0.06 for 6 %");
  return {name, *limit};
}

std::vector<std::string> negative_verdicts(const std::vector<ValidatedSet>& sets,
                                           const std::vector<ScoreLimit>& limits) {
  std::vector<std::string> lines;
  for (const ValidatedSet& set : sets) {
    if (set.has_failures())
      lines.push_back(set.name + ": some points could not be predicted (see skipped)");
    if (!set.has_scores()) lines.push_back(set.name + ": nothing could be scored");
  }
  for (const ScoreLimit& limit : limits) check_limit(limit, sets, lines);
  if (sets.empty()) lines.emplace_back("there are no measurement sets: nothing was validated");
  return lines;
}

int run_validate(const ValidateRequest& request, const Library& library, std::ostream& out,
                 std::ostream& messages) {
  std::vector<ScoreLimit> limits;
  for (const std::string& text : request.fail_above) limits.push_back(parse_score_limit(text));
  MeasuredErrors rewritten;
  if (!request.residuals.empty()) rewritten = read_evidence(request.residuals, ReadFor::rewriting);
  std::vector<MeasurementSet> sets;
  for (const auto& file : find_measurement_sets(request.sets, library.root / "validation"))
    sets.push_back(read_measurement_set(file));

  ReadOptions reading;
  reading.overrides = request.overrides;
  for (const MeasurementSet& set : sets) expect_readable_overrides(set, library, reading);
  Prediction prediction;
  prediction.at_once = request.threads == 0 ? default_at_once() : request.threads;
  const auto file = residuals_of(library);
  const MeasuredErrors all_errors =
      file ? read_evidence(*file, request.residuals.empty() ? ReadFor::use : ReadFor::rewriting)
           : MeasuredErrors{};
  MeasuredErrors errors;
  prediction.predict = [&](const JsonValue& scenario, const std::filesystem::path& folder) {
    return predict_by_simulation(scenario, folder, library, reading, &errors);
  };
  prediction.predict_collective = [&](const CollectiveRun& run, const JsonValue& scenario,
                                      const std::filesystem::path& folder) {
    return predict_collective(run, scenario, folder, library, reading);
  };
  std::vector<ValidatedSet> validated;
  for (const MeasurementSet& set : sets) {
    errors = all_errors;
    errors.leave_out(set.name);
    validated.push_back(validate_with_progress(set, prediction, request.progress, messages));
    validated.back().orders = score_orders(measured_runs({validated.back()}), errors.pairs);
    for (const auto& [pointer, value] : request.overrides)
      validated.back().overrides.push_back(pointer + "=" + value);
  }
  out << result_text(validated, request) << std::flush;
  StagedFiles files;
  if (!request.svg.empty()) files.add(request.svg, scatter_svg(validated));
  if (!request.report.empty()) files.add(request.report, validation_page(validated));
  if (!request.residuals.empty()) {
    std::vector<MeasuredRun> runs = measured_runs(validated);
    std::erase_if(runs, [&](const MeasuredRun& run) {
      return !rewritten.unseen.has_profile(run.predicted.software);
    });
    rewritten.pairs = pair_errors(runs);
    files.add(request.residuals, evidence_json(rewritten));
  }
  files.commit();

  const std::vector<std::string> verdicts = negative_verdicts(validated, limits);
  for (const std::string& line : verdicts) messages << "validate: " << line << "\n";
  return verdicts.empty() ? 0 : 1;
}

}  // namespace windtunnel
