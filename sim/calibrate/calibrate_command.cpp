#include "calibrate/calibrate_command.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "calibrate/advice.hpp"
#include "calibrate/calibrate.hpp"
#include "calibrate/calibration_text.hpp"
#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "core/staged_files.hpp"
#include "core/text_list.hpp"
#include "platform/source_json.hpp"
#include "report/explanation.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/progress_line.hpp"
#include "report/report_view.hpp"
#include "scenario/library_files.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

using detail::time_text;

/// --set's words for what the command line sets, and over it the fitted values that the scenario takes.
Overrides with_fitted(Overrides overrides, const Calibration& calibration) {
  for (const FittedConstant& fitted : calibration.constants)
    if (!fitted.is_kept())
      overrides.emplace_back(fitted.constant.pointer, text_of({fitted.value, fitted.given.unit}));
  return overrides;
}

/// The plan of --predict, predicted with the constants that the rows moved, and moved by what measured rows near it missed. The interval of
/// `run` (90 %) moves likewise, and the logarithms of its ends over the prediction shrink by the square root of the share of the variance that
/// the rows near it leave open.
JsonValue predict_plan(const CalibrateRequest& request, const Library& library,
                       const std::vector<CalibrationPoint>& points,
                       const Calibration& calibration) {
  const Scenario plan = read_scenario(request.predict, library,
                                      {.overrides = with_fitted(request.overrides, calibration)});
  SimulateOptions options;
  options.evidence = &library;
  const Report report = simulate(plan, options).report;
  std::vector<std::size_t> rows(points.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const AnchoredResiduals anchors = anchors_of(points, rows, calibration.in_sample);
  const AnchorPlace place = anchor_place(plan);
  const AnchoredShift shift = anchors.at(place);
  const Seconds anchored = report.iteration_time * std::exp(shift.mean);
  const auto moved = [&](Seconds end) {
    const double distance = std::log(end / report.iteration_time);
    return anchored * std::exp(distance * std::sqrt(shift.left_open));
  };
  std::optional<std::pair<Seconds, Seconds>> interval;
  if (const auto& given = report.iteration_time_interval)
    interval = {moved(given->first), moved(given->second)};
  return object_of({{"iteration_time_s", report.iteration_time},
                    {"anchored_s", anchored},
                    {"anchored_interval_s", interval},
                    {"rows_near", anchors.num_near(place)},
                    {"variance_left_open", shift.left_open}});
}

///   ours/job.json: 3.435 s per iteration with these constants
///     anchored by 2 of 4 rows: 3.450 s     90 %: 3.012 s to 3.860 s
std::string prediction_text(const JsonValue& prediction, const std::string& file,
                            std::size_t num_rows) {
  const html::DataView view{&prediction};
  const auto time = [&](const char* pointer) {
    const Seconds at{view.amount(pointer)};
    return time_text(at, at);
  };
  std::string line = "\n" + file + ": " + time("/iteration_time_s") +
                     " per iteration with these constants\n  anchored by " +
                     std::to_string(static_cast<int>(view.amount("/rows_near"))) + " of " +
                     count_text(num_rows, "row") + ": " + time("/anchored_s");
  if (view.find("/anchored_interval_s") != nullptr)
    line +=
        "        90 %: " + time("/anchored_interval_s/0") + " to " + time("/anchored_interval_s/1");
  return line + "\n";
}
}  // namespace

namespace fs = std::filesystem;
namespace {

constexpr int written_digits = 4;

/// Where a kind of file stands in a scenario, and the option that names one.
struct PartPlace {
  const char* option;
  std::string_view prefix;
  const LibraryKind& kind;
};

/// A device stands in a platform: of two places that begin alike, the first one counts.
const PartPlace part_places[]{{"--device", "/platform/node_types/0/device/", device_files},
                              {"--software", "/software/", software_files},
                              {"--platform", "/platform/", platform_files}};
const PartPlace& place_of(const FittedFile& file) {
  return *std::ranges::find_if(part_places,
                               [&](const PartPlace& place) { return file.option == place.option; });
}

/// The place of the constant's number; a null pointer where no such file has it.
const PartPlace* place_of(const FitConstant& constant) {
  for (const PartPlace& place : part_places)
    if (constant.pointer.starts_with(place.prefix)) return &place;
  return nullptr;
}

bool stands_in(const FitConstant& constant, const FittedFile& file) {
  return place_of(constant) == &place_of(file);
}

/// The constant's place in the file: "/gemm/peak_fraction".
std::string pointer_in_file(const FitConstant& constant, const FittedFile& file) {
  return constant.pointer.substr(place_of(file).prefix.size() - 1);
}

/// The scenarios must have read their value from a file like this one.
void check_same_file(const FittedFile& file, const FittedConstant& fitted, JsonValue& original) {
  constexpr double rounding = 1e-9;
  const std::string pointer = pointer_in_file(fitted.constant, file);
  const auto there = number_at(original, pointer);
  if (!there) return;  // a default of the reader
  const bool same = there->unit == fitted.given.unit &&
                    std::abs(there->number - fitted.given.number) <= rounding * there->number;
  if (!same)
    throw option_error(file.option, file.name,
                       file.name + " has " + text_of(*there) + " at " + pointer +
                           ", the scenarios of the sets have " + text_of(fitted.given),
                       "name the file that the sets use");
}
}  // namespace

std::string provenance(const Calibration& calibration,
                       const std::vector<CalibrationPoint>& points) {
  std::set<std::string> sets;
  for (const CalibrationPoint& point : points) sets.insert(point.set);
  std::string text = "fitted: " + listed(sets) + " (";
  std::vector<FittedConstant> moved = calibration.constants;
  std::erase_if(moved, std::mem_fn(&FittedConstant::is_kept));
  text += listed(moved, [](const FittedConstant& each) {
    return each.constant.name +
           (each.posterior_width > 0 ? " " + width_text(each.posterior_width) : "");
  });
  text += "; " + std::to_string(points.size()) + " rows, in-sample " +
          percent_text(score(calibration.in_sample).mape);
  if (!calibration.by_size.empty())
    text += ", leave one size out " + percent_text(score(all_of(calibration.by_size)).mape);
  else if (!calibration.by_fold.empty())
    text += ", random folds " + percent_text(score(all_of(calibration.by_fold)).mape);
  return text + ")";
}

std::string fitted_file_text(const FittedFile& file, const Calibration& calibration,
                             const std::vector<CalibrationPoint>& points, const Library& library) {
  const auto& [option, prefix, kind] = place_of(file);
  const fs::path path =
      looks_like_path(file.name) ? fs::path(file.name) : library_file(library, kind, file.name);
  if (file_type_of(path) == fs::file_type::not_found)
    throw option_error(option, file.name, std::string("there is no ") + kind.noun + " " + file.name,
                       suggest_name(library, kind, file.name));
  Problems problems;
  JsonValue document = parse_json(read_source(path), problems);
  problems.throw_if_any();
  if (!document.is_object()) throw option_error(option, file.name, "the file holds no object", {});
  bool any = false;
  for (const FittedConstant& fitted : calibration.constants) {
    if (fitted.is_kept() || !stands_in(fitted.constant, file)) continue;
    check_same_file(file, fitted, document);
    const double rounded = rounded_to(fitted.value, written_digits);
    const std::string pointer = pointer_in_file(fitted.constant, file);
    const std::size_t slash = pointer.rfind('/');
    const bool is_set =
        set_at(document, pointer,
               fitted.given.unit.empty() ? JsonValue(rounded)
                                         : JsonValue(text_of({rounded, fitted.given.unit})));
    WT_ENSURE(is_set);
    set_source(*find_at(document, pointer.substr(0, slash)), pointer.substr(slash + 1),
               provenance(calibration, points));
    any = true;
  }
  if (!any)
    throw option_error(file.option, file.name,
                       std::string("none of the fitted constants stands in a ") +
                           place_of(file).kind.noun + " file",
                       {});
  if (document.find("name") != nullptr) document.set("name", JsonValue(file.out.stem().string()));
  return pretty_text(document) + "\n";
}

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
  const PartPlace* const place = constants.empty() ? nullptr : place_of(constants.front());
  return place == nullptr ? ""
                          : constants.front().name + " is " + constants.front().pointer +
                                " of a scenario: use " + place->option;
}

/// A calibration must have something to do, and the file something to take.
void check(const CalibrateRequest& request, const std::vector<FitConstant>& constants) {
  if (constants.empty() && request.residuals.empty())
    throw option_error("--fit", "", "calibrate needs to be told what to fit", "such as --fit emax");
  if (!request.file) return;
  if (std::ranges::none_of(constants, [&](const FitConstant& constant) {
        return stands_in(constant, *request.file);
      }))
    throw option_error(request.file->option, request.file->name,
                       "none of the constants to fit stands in such a file",
                       fitted_elsewhere(constants));
}

/// Why there is nothing to calibrate on; returns the exit code.
int say_nothing_is_left(const CalibrationPoints& points, std::ostream& messages) {
  for (const auto& [point, why] : points.skipped)
    messages << "calibrate: skipped " << point << ": " << why << "\n";
  messages << "calibrate: no point of these sets can be predicted\n";
  return 1;
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
    else if (request.file && stands_in(fitted.constant, *request.file))
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
      if (!stands_in(fitted.constant, *request.file))
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
      if (std::ranges::none_of(regimes,
                               [&](const EvidenceRegime& fresh) { return key(fresh) == key(old); }))
        regimes.push_back(std::move(old));
  }
  std::ranges::sort(
      regimes, [&](const EvidenceRegime& a, const EvidenceRegime& b) { return key(a) < key(b); });
  known.regimes = std::move(regimes);
  return evidence_json(known);
}

namespace {

int run_advise(const CalibrateRequest& request, const Library& library, std::ostream& out,
               std::ostream& messages) {
  const auto sets =
      request.sets.empty() ? std::vector<MeasurementSet>{} : read_sets(request.sets, library);
  ProgressLine line(messages, request.progress);
  AdviceRequest asked{request.advise, request.against, request.overrides,
                      parse_constants(request.fit), [&line](std::size_t done) {
                        line.show("calibrate: " + std::to_string(done) + " iterations simulated");
                      }};
  const Advice advice = advise(asked, sets, library);
  out << (request.format == ResultFormat::json
              ? advice_json(advice)
              : advice_text(advice, request.advise_name, request.against_name))
      << std::flush;
  return 0;
}

std::string result_text(const CalibrateRequest& request, const CalibrationPoints& points,
                        const Calibration& calibration, std::size_t num_predictions,
                        const std::optional<JsonValue>& prediction) {
  if (request.format == ResultFormat::text)
    return calibration_text(calibration, points, num_predictions) +
           (prediction ? prediction_text(*prediction, request.predict_name, points.points.size())
                       : "");
  JsonValue document = calibration_value(calibration, points, num_predictions);
  if (prediction) document.set("prediction", *prediction);
  return pretty_text(document) + "\n";
}

int run_draws(const CalibrateRequest& request, const std::vector<CalibrationPoint>& points,
              const CalibrationPlan& plan, PointPredictor& predictor, std::ostream& out) {
  if (points.size() <= request.draws->rows)
    throw option_error(
        "--rows", std::to_string(request.draws->rows),
        "the sets have " + std::to_string(points.size()) + " rows, and one must be left to predict",
        {});
  const JsonValue draws = draws_value(draw_calibrations(points, plan, *request.draws, predictor),
                                      *request.draws, points.size());
  out << (request.format == ResultFormat::json ? pretty_text(draws) + "\n" : draws_text(draws))
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
  const CalibrationPoints points = read_calibration_points(
      read_sets(request.sets, library), {&library, request.overrides, plan.constants});
  if (points.points.empty()) return say_nothing_is_left(points, messages);
  // A constant gets one value: say so where the files have several.
  for (std::size_t j = 0; j < plan.constants.size(); ++j) {
    const NumberWithUnit& first = points.points.front().given[j];
    for (const CalibrationPoint& point : points.points) {
      if (text_of(point.given[j]) == text_of(first)) continue;
      messages << "calibrate: " << plan.constants[j].name << " is " << text_of(first) << " in "
               << points.points.front().set << " and " << text_of(point.given[j]) << " in "
               << point.set << ": one value is fitted to both\n";
      break;
    }
  }

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
  std::optional<JsonValue> prediction;
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
