#include "calibrate/calibrate_command.hpp"

#include <algorithm>
#include <ostream>
#include <tuple>
#include <utility>

#include "calibrate/advice.hpp"
#include "calibrate/anchored_prediction.hpp"
#include "calibrate/calibration_text.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "core/staged_files.hpp"
#include "report/progress_line.hpp"

namespace windtunnel {
namespace {

/// "emax,arf" and "emax=0.5..1" to constants; each once.
std::vector<FitConstant> parse_constants(const std::vector<std::string>& fit) {
  std::vector<FitConstant> constants;
  for (const std::string& list : fit) {
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t comma = std::min(list.find(',', start), list.size());
      constants.push_back(parse_fit_constant(list.substr(start, comma - start)));
      start = comma + 1;
      for (std::size_t j = 0; j + 1 < constants.size(); ++j)
        if (constants[j].pointer == constants.back().pointer)
          throw option_error("--fit", list, constants.back().name + " is named twice", {});
    }
  }
  return constants;
}

/// Which option names the kind of file that holds the first constant.
std::string fitted_elsewhere(const std::vector<FitConstant>& constants) {
  if (constants.empty()) return {};
  for (const FittedPart part : {FittedPart::device, FittedPart::software, FittedPart::platform})
    if (stands_in(constants.front(), part))
      return constants.front().name + " is " + constants.front().pointer + " of a scenario: use " +
             option_of(part);
  return {};
}

/// A calibration must have something to do, and the file something to take.
void check(const CalibrateRequest& request, const std::vector<FitConstant>& constants) {
  if (constants.empty() && request.residuals.empty())
    throw option_error("--fit", "", "calibrate needs to be told what to fit", "such as --fit emax");
  if (!request.file) return;
  const FittedPart part = request.file->part;
  if (std::none_of(constants.begin(), constants.end(),
                   [&](const FitConstant& constant) { return stands_in(constant, part); }))
    throw option_error(option_of(part), request.file->name,
                       "none of the constants to fit stands in such a file",
                       fitted_elsewhere(constants));
}

CalibrationPoints read_points(const CalibrateRequest& request, const Library& library,
                              const std::vector<FitConstant>& constants) {
  std::vector<MeasurementSet> sets;
  for (const auto& file : find_measurement_sets(request.sets, library.root / "validation"))
    sets.push_back(read_measurement_set(file));
  return read_calibration_points(sets, {&library, request.overrides, constants});
}

/// Why there is nothing to calibrate on; returns the exit code.
int say_nothing_is_left(const CalibrationPoints& points, std::ostream& messages) {
  for (const auto& [point, why] : points.skipped)
    messages << "calibrate: skipped " << point << ": " << why << "\n";
  messages << "calibrate: no point of these sets can be predicted\n";
  return 1;
}

/// A constant gets one value: say so where the files have several.
void warn_of_different_starts(const CalibrationPoints& points,
                              const std::vector<FitConstant>& constants, std::ostream& messages) {
  for (std::size_t j = 0; j < constants.size(); ++j) {
    const NumberWithUnit& first = points.points.front().given[j];
    for (const CalibrationPoint& point : points.points) {
      if (text_of(point.given[j]) == text_of(first)) continue;
      messages << "calibrate: " << constants[j].name << " is " << text_of(first) << " in "
               << points.points.front().set << " and " << text_of(point.given[j]) << " in "
               << point.set << ": one value is fitted to both\n";
      break;
    }
  }
}

std::string output_names(const CalibrateRequest& request) {
  std::string names = request.file ? request.file->out.string() : "";
  if (!request.residuals.empty())
    names += (names.empty() ? "" : " and ") + request.residuals.string();
  return names;
}

/// Says of each constant at a bound what that means. True when there is one: then no file may take its value.
bool refuse_bounds(const CalibrateRequest& request, const Calibration& calibration,
                   std::ostream& messages) {
  bool any = false;
  for (const FittedConstant& fitted : calibration.constants) {
    if (fitted.identification != Identification::at_bound) continue;
    messages << "calibrate: error: " << bound_text(fitted) << "\n";
    any = true;
  }
  if (!any) return false;
  messages
      << "calibrate: the measurements and this model do not agree. Were they taken on the GPU, "
         "the cluster and the stack that the set's scenarios name? Is another constant at "
         "fault? Where a number may well lie beyond its range, give a wider one, as in --fit "
         "NAME=LOWER..UPPER\n";
  if (const std::string names = output_names(request); !names.empty())
    messages << "calibrate: not written: " << names << "\n";
  return true;
}

/// Says which constants keep their values. True when that leaves nothing for the file.
bool refuse_kept(const CalibrateRequest& request, const Calibration& calibration,
                 std::ostream& messages) {
  bool any = false;
  for (const FittedConstant& fitted : calibration.constants) {
    if (fitted.is_kept())
      messages << "calibrate: " << fitted.constant.name << " " << text_of(fitted.given) << " "
               << identification_text(fitted) << "\n";
    else if (request.file && stands_in(fitted.constant, request.file->part))
      any = true;
  }
  if (!request.file || any) return false;
  messages << "calibrate: no constant of " << request.file->name
           << " is to be changed; not written: " << output_names(request) << "\n";
  return true;
}

/// Writes what was asked for and says so.
void write_files(const CalibrateRequest& request, const Library& library,
                 const std::vector<CalibrationPoint>& points, const Calibration& calibration,
                 std::ostream& messages) {
  StagedFiles files;
  if (request.file)
    files.add(request.file->out, fitted_file_text(*request.file, calibration, points, library));
  if (!request.residuals.empty())
    files.add(request.residuals,
              merged_residuals(request.residuals, evidence_of(points, calibration)));
  files.commit();
  if (request.file) {
    messages << "calibrate: wrote " << request.file->out.string() << "\n";
    for (const FittedConstant& fitted : calibration.constants)
      if (!stands_in(fitted.constant, request.file->part))
        messages << "calibrate: " << fitted.constant.name << " stands in another kind of file\n";
  }
  if (request.residuals.empty()) return;
  messages << "calibrate: wrote " << request.residuals.string() << "\n";
}

}  // namespace

std::string merged_residuals(const std::filesystem::path& file,
                             std::vector<EvidenceRegime> regimes) {
  const auto key = [](const EvidenceRegime& regime) {
    return std::tie(regime.software, regime.device_family);
  };
  MeasuredErrors known;
  if (file_type_of(file) != std::filesystem::file_type::not_found) {
    known = read_evidence(file, ReadFor::rewriting);
    for (EvidenceRegime& old : known.regimes)
      if (std::none_of(regimes.begin(), regimes.end(),
                       [&](const EvidenceRegime& fresh) { return key(fresh) == key(old); }))
        regimes.push_back(std::move(old));
  }
  std::sort(regimes.begin(), regimes.end(),
            [&](const EvidenceRegime& a, const EvidenceRegime& b) { return key(a) < key(b); });
  known.regimes = std::move(regimes);
  return evidence_json(known);
}

namespace {

int run_advise(const CalibrateRequest& request, const Library& library, std::ostream& out,
               std::ostream& messages) {
  std::vector<MeasurementSet> sets;
  if (!request.sets.empty())
    for (const auto& file : find_measurement_sets(request.sets, library.root / "validation"))
      sets.push_back(read_measurement_set(file));
  ProgressLine line(messages, request.progress);
  AdviceRequest asked{request.advise, request.overrides, parse_constants(request.fit),
                      [&line](std::size_t done) {
                        line.show("calibrate: " + std::to_string(done) + " iterations simulated");
                      }};
  const Advice advice = advise(asked, sets, library);
  out << (request.format == CalibrationFormat::json ? advice_json(advice)
                                                    : advice_text(advice, request.advise_name))
      << std::flush;
  return 0;
}

/// The constants that the rows moved are laid over what the command line sets.
AnchoredPrediction predict_plan(const CalibrateRequest& request, const Library& library,
                                const std::vector<CalibrationPoint>& points,
                                const Calibration& calibration) {
  ReadOptions options;
  options.overrides = request.overrides;
  for (auto& fitted : fitted_overrides(calibration)) options.overrides.push_back(std::move(fitted));
  const Scenario plan = read_scenario(request.predict, library, options);
  return predict_anchored(plan, library, points, calibration);
}

std::string result_text(const CalibrateRequest& request, const CalibrationPoints& points,
                        const Calibration& calibration, std::size_t num_predictions,
                        const std::optional<AnchoredPrediction>& prediction) {
  if (request.format == CalibrationFormat::text)
    return calibration_text(calibration, points, num_predictions) +
           (prediction ? prediction_text(*prediction, request.predict_name) : "");
  JsonValue document = calibration_value(calibration, points, num_predictions);
  if (prediction) document.set("prediction", prediction_value(*prediction));
  return pretty_text(document) + "\n";
}

int run_draws(const CalibrateRequest& request, const std::vector<CalibrationPoint>& points,
              const CalibrationPlan& plan, PointPredictor& predictor, std::ostream& out) {
  if (points.size() <= request.draws->rows)
    throw option_error(
        "--rows", std::to_string(request.draws->rows),
        "the sets have " + std::to_string(points.size()) + " rows, and one must be left to predict",
        {});
  const std::vector<Draw> draws = draw_calibrations(points, plan, *request.draws, predictor);
  out << (request.format == CalibrationFormat::json ? draws_json : draws_text)(
             draws, *request.draws, points.size())
      << std::flush;
  return 0;
}

}  // namespace

int run_calibrate(const CalibrateRequest& request, const Library& library, std::ostream& out,
                  std::ostream& messages) {
  if (!request.advise.empty()) return run_advise(request, library, out, messages);
  CalibrationPlan plan;
  plan.constants = parse_constants(request.fit);
  plan.seed = request.seed;
  plan.prior =
      request.prior.value_or(request.residuals.empty() ? PriorKind::shipped : PriorKind::none);
  check(request, plan.constants);
  const CalibrationPoints points = read_points(request, library, plan.constants);
  if (points.points.empty()) return say_nothing_is_left(points, messages);
  warn_of_different_starts(points, plan.constants, messages);
  ProgressLine line(messages, request.progress);
  const auto on_progress = [&line](std::size_t done) {
    line.show("calibrate: " + std::to_string(done) + " iterations simulated");
  };
  PointPredictor::Predict simulated = predict_by_simulation(library, request.overrides);
  PointPredictor predictor(
      points.points, plan.constants,
      request.draws ? tabulated(std::move(simulated), plan.constants) : std::move(simulated),
      on_progress);
  if (request.draws) return run_draws(request, points.points, plan, predictor, out);
  const Calibration calibration = calibrate(points.points, plan, predictor);
  std::optional<AnchoredPrediction> prediction;
  if (!request.predict.empty())
    prediction = predict_plan(request, library, points.points, calibration);
  out << result_text(request, points, calibration, predictor.num_predictions(), prediction)
      << std::flush;
  if (refuse_bounds(request, calibration, messages)) return 1;
  if (refuse_kept(request, calibration, messages)) return 1;
  write_files(request, library, points.points, calibration, messages);
  return 0;
}

}  // namespace windtunnel
