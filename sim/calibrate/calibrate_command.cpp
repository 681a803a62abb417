#include "calibrate/calibrate_command.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <ostream>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "calibrate/advice.hpp"
#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/option_error.hpp"
#include "core/staged_files.hpp"
#include "core/text_list.hpp"
#include "platform/platform_json.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "report/terminal_text.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

constexpr int value_digits = 4;

std::string value_text(double value) { return significant_text(value, value_digits); }
constexpr std::string_view first_type = "/platform/node_types/0/";

std::string signed_percent(double share) { return (share >= 0 ? "+" : "") + percent_text(share); }

std::string constants_text(const Calibration& calibration) {
  if (calibration.constants.empty())
    return "\n  nothing is fitted: the shipped constants, scored\n";
  std::vector<TextRow> rows{{"constant", "from", "fitted", "width", "bounds", "refits", "weight"}};
  for (const FittedConstant& fitted : calibration.constants)
    rows.push_back(
        {shown_name(fitted.constant.name), text_of(fitted.given),
         value_text(fitted.value) + fitted.given.unit,
         fitted.posterior_width > 0 ? width_text(fitted.posterior_width) : std::string("-"),
         value_text(fitted.range.bounds.lower) + " .. " + value_text(fitted.range.bounds.upper),
         value_text(fitted.lowest) + " .. " + value_text(fitted.highest),
         fixed_text(fitted.sensitivity, 2), identification_text(fitted)});
  const std::string table = text_table("lr?rr???r??r?w", rows), head = first_line_of(table);
  std::vector<std::string> meanings;
  for (const auto& [column, meaning] :
       {std::pair("width", "standard deviation of what the rows and the prior leave open"),
        std::pair("refits", "without some rows each (below)"),
        std::pair("weight", "% of the time for 1 % of the constant")})
    if (head.find(column) != std::string::npos)
      meanings.push_back(std::string(column) + ": " + meaning);
  return "\n" + table + (meanings.empty() ? "" : "  " + joined(meanings, "; ") + "\n");
}

/// True if rows say something of each other beyond the constants.
bool is_anchored(const Calibration& calibration) {
  const std::vector<ScoredRow> plain = all_of(calibration.by_fold);
  const std::vector<ScoredRow> moved = all_of(calibration.by_fold, &HeldOut::anchored);
  return !std::equal(
      plain.begin(), plain.end(), moved.begin(), moved.end(),
      [](const ScoredRow& a, const ScoredRow& b) { return a.predicted == b.predicted; });
}

std::string scores_text(const Calibration& calibration, const CalibrationPoints& points) {
  const std::size_t largest = num_largest(calibration.as_given.size());
  std::vector<TextRow> rows{{"error", "mean", "median", "90th", "worst", "bias"}};
  if (largest > 0) rows.front().push_back("without the " + std::to_string(largest) + " largest");
  const bool is_fitted = !calibration.constants.empty();
  const auto add = [&](const char* name, const std::vector<ScoredRow>& comparisons, bool is_shown) {
    if (!is_shown || comparisons.empty()) return;
    const Score all = score(comparisons);
    rows.push_back({name});
    for (const double error : {all.mape, all.median_ape, all.p90_ape, all.worst_ape})
      rows.back().push_back(percent_text(error));
    rows.back().push_back(signed_percent(all.bias));
    if (const std::size_t most = num_largest(comparisons.size()); most > 0)
      rows.back().push_back(percent_text(score_without_largest(comparisons, most).mape));
  };
  add("as given", calibration.as_given, true);
  add("fitted, in-sample", calibration.in_sample, is_fitted);
  add("leave one size out", all_of(calibration.by_size), is_fitted);
  add("random folds", all_of(calibration.by_fold), is_fitted);
  add("folds, anchored", all_of(calibration.by_fold, &HeldOut::anchored), is_anchored(calibration));
  std::string text = "\n" + text_table("lrr??r?rrr???", rows);
  if (!calibration.constants.empty())
    text +=
        "  in-sample: on the very rows that the constants were fitted to. Expect the held-out "
        "errors elsewhere, not these.\n";
  if (is_anchored(calibration))
    text +=
        "  anchored: each row moved by what rows near it missed, of the same model and tensor "
        "degree, as --predict does.\n";
  for (const std::string& set : points.fitted_sets)
    text += "  as given: numbers of the files were themselves fitted on " + set +
            ", so that this line is in-sample too.\n";
  if (largest > 0)
    text += "  without the " + std::to_string(largest) +
            " largest: picked after looking, 5 % of the rows; no score, it tells what a few rows "
            "weigh.\n";
  return text;
}

/// The sets side by side, where there are several.
std::string sets_text(const Calibration& calibration, const CalibrationPoints& points) {
  const std::vector<std::string> names = set_names(points);
  if (names.size() < 2 || calibration.constants.empty()) return {};
  const std::vector<ScoredRow> held_out = held_out_by_row(calibration);
  std::vector<TextRow> rows{{"set", "rows", "in-sample", "held out", "bias"}};
  for (const std::string& name : names) {
    std::vector<ScoredRow> seen, unseen;
    for (std::size_t i = 0; i < points.points.size(); ++i) {
      if (points.points[i].set != name) continue;
      seen.push_back(calibration.in_sample[i]);
      unseen.push_back(held_out[i]);
    }
    const Score held_out_score = score(unseen);
    rows.push_back({name, std::to_string(seen.size()), percent_text(score(seen).mape),
                    percent_text(held_out_score.mape), signed_percent(held_out_score.bias)});
  }
  return "\n" + text_table("lr", rows);
}

std::string groups_text(const Calibration& calibration) {
  const auto& groups = calibration.by_size.empty() ? calibration.by_fold : calibration.by_size;
  if (groups.empty() || calibration.constants.empty()) return {};
  TextRow head{"left out", "rows", "mean", "bias"};
  for (const FittedConstant& fitted : calibration.constants)
    head.push_back(shown_name(fitted.constant.name));
  std::vector<TextRow> rows{head};
  for (const HeldOut& group : groups) {
    const Score of_group = score(group.comparisons);
    TextRow row{group.name, std::to_string(group.points.size()), percent_text(of_group.mape),
                signed_percent(of_group.bias)};
    for (const double value : group.values) row.push_back(value_text(value));
    rows.push_back(row);
  }
  return "\n" + text_table("wrrr?", rows);
}

JsonValue score_value(const std::vector<ScoredRow>& comparisons) {
  const Score all = score(comparisons);
  const std::size_t largest = num_largest(comparisons.size());
  return object_of({{"scored", all.scored},
                    {"mape", all.mape},
                    {"median_ape", all.median_ape},
                    {"p90_ape", all.p90_ape},
                    {"worst_ape", all.worst_ape},
                    {"bias", all.bias},
                    {"mape_without_largest",
                     only_if(largest > 0, score_without_largest(comparisons, largest).mape)}});
}

JsonValue constant_value(const FittedConstant& fitted) {
  const std::string& unit = fitted.given.unit;
  const bool has_partner = !fitted.partner.empty(), has_width = fitted.prior_width > 0;
  return object_of(
      {{"name", fitted.constant.name},
       {"pointer", fitted.constant.pointer},
       {"start", fitted.given.number},
       {"value", fitted.value},
       {"unit", only_if(!unit.empty(), unit.substr(unit.starts_with(' ') ? 1 : 0))},
       {"bounds", array_of(std::array{fitted.range.bounds.lower, fitted.range.bounds.upper})},
       {"refits", array_of(std::array{fitted.lowest, fitted.highest})},
       {"sensitivity", fitted.sensitivity},
       {"largest_share_of_a_row", fitted.largest_share},
       {"correlated_with", only_if(has_partner, fitted.partner)},
       {"correlation", only_if(has_partner, fitted.correlation)},
       {"identification", identification_text(fitted)},
       {"kept", fitted.is_kept()},
       {"prior_width", only_if(has_width, fitted.prior_width)},
       {"posterior_width", only_if(has_width, fitted.posterior_width)},
       {"at_bound", fitted.identification == Identification::at_bound}});
}

JsonValue groups_value(const Calibration& calibration, const std::vector<HeldOut>& groups) {
  return array_of(groups, [&](const HeldOut& group) {
    JsonValue values = empty_object();
    for (std::size_t j = 0; j < group.values.size(); ++j)
      values.set(calibration.constants[j].constant.name, JsonValue(group.values[j]));
    return object_of({{"left_out", group.name},
                      {"constants", values},
                      {"score", score_value(group.comparisons)}});
  });
}

/// The plan of --predict, predicted with the constants that the rows moved, and moved by what measured rows near it missed. The interval of
/// `run` (90 %) moves likewise, and the logarithms of its ends over the prediction shrink by the square root of the share of the variance that
/// the rows near it leave open.
JsonValue predict_plan(const CalibrateRequest& request, const Library& library,
                       const std::vector<CalibrationPoint>& points,
                       const Calibration& calibration) {
  Scenario as_given = read_scenario(request.predict, library, {.overrides = request.overrides});
  // --set's words for what the command line sets, and over it the fitted values that the scenario takes.
  Overrides overrides = request.overrides;
  for (const FittedConstant& fitted : calibration.constants)
    if (!fitted.is_kept())
      for (auto& each :
           on_all_places({{fitted.constant.pointer, text_of({fitted.value, fitted.given.unit})}},
                         alike_places({fitted.constant}, as_given.resolved)))
        overrides.push_back(std::move(each));
  const Scenario plan =
      read_scenario(request.predict, library, {.overrides = std::move(overrides)});
  SimulateOptions options;
  options.evidence = &library;
  const Report report = simulate(plan, options).report;
  std::vector<std::size_t> rows(points.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const AnchoredResiduals anchors = anchors_of(points, rows, calibration.in_sample);
  const AnchorPlace place = anchor_place(as_given);  // the rows stand as given, too
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
    return detail::time_text(at, at);
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

constexpr int written_digits = 4;

/// Place of a kind of file in a scenario, and the option that names one.
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

/// The scenarios must have read their value from a file like this one: `whole`, with what it extends.
void check_same_file(const FittedFile& file, const FittedConstant& fitted, JsonValue& whole) {
  constexpr double rounding = 1e-9;
  const std::string pointer = pointer_in_file(fitted.constant, file);
  const auto there = number_at(whole, pointer);
  if (!there) return;  // a default of the reader
  const bool same = there->unit == fitted.given.unit &&
                    std::abs(there->number - fitted.given.number) <= rounding * there->number;
  if (!same)
    throw option_error(file.option, file.name,
                       file.name + " has " + text_of(*there) + " at " + pointer +
                           ", the scenarios of the sets have " + text_of(fitted.given),
                       "name the file that the sets use");
}

/// "emax,arf" and "emax=0.5..1" to constants; each once. Software and nodes have a compute_efficiency: with --platform it is the nodes'.
std::vector<FitConstant> parse_constants(const std::vector<std::string>& fit,
                                         const std::optional<FittedFile>& file) {
  const bool is_platform = file && file->option == "--platform";
  std::vector<FitConstant> constants;
  for (const std::string& list : fit) {
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t comma = std::min(list.find(',', start), list.size());
      std::string name = list.substr(start, comma - start);
      const bool is_of_nodes =
          is_platform && name.substr(0, name.find('=')) == "compute_efficiency";
      if (is_of_nodes) name.insert(0, first_type);
      constants.push_back(parse_fit_constant(name));
      if (is_of_nodes) constants.back().node_types = NodeTypes::alike;
      start = comma + 1;
      for (std::size_t j = 0; j + 1 < constants.size(); ++j)
        if (constants[j].pointer == constants.back().pointer)
          throw option_error("--fit", list, constants.back().name + " is named twice", {});
    }
  }
  return constants;
}

/// A calibration must have something to do, and the file something to take.
void check(const CalibrateRequest& request, const std::vector<FitConstant>& constants) {
  if (constants.empty() && request.residuals.empty())
    throw option_error("calibrate", "--fit", "a calibration needs a constant to fit",
                       "such as --fit emax");
  const auto stands = [&](const FitConstant& each) { return stands_in(each, *request.file); };
  if (!request.file || std::ranges::any_of(constants, stands)) return;
  // The option that names the kind of file with the first constant.
  const PartPlace* const place = constants.empty() ? nullptr : place_of(constants.front());
  throw option_error(request.file->option, request.file->name,
                     "none of the constants to fit stands in such a file",
                     place == nullptr
                         ? ""
                         : constants.front().name + " is " + constants.front().pointer +
                               " of a scenario: use " + place->option);
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
  if (!request.residuals.empty())
    messages << "calibrate: wrote " << request.residuals.string() << "\n";
}

int run_advise(const CalibrateRequest& request, const Library& library, std::ostream& out,
               std::ostream& messages) {
  const auto sets =
      request.sets.empty() ? std::vector<MeasurementSet>{} : read_sets(request.sets, library);
  ProgressLine line(messages, request.progress);
  AdviceRequest asked{request.advise, request.against, request.overrides,
                      parse_constants(request.fit, request.file), [&line](std::size_t done) {
                        line.show("calibrate: " + std::to_string(done) + " iterations simulated");
                      }};
  const Advice advice = advise(asked, sets, library);
  out << (request.format == ResultFormat::json
              ? advice_json(advice)
              : advice_text(advice, request.advise_name, request.against_name))
      << std::flush;
  return 0;
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

std::vector<std::string> set_names(const CalibrationPoints& points) {
  std::vector<std::string> names;
  for (const CalibrationPoint& point : points.points)
    if (std::ranges::find(names, point.set) == names.end()) names.push_back(point.set);
  return names;
}

std::string width_text(double width) { return "+-" + percent_text(width); }

std::string identification_text(const FittedConstant& fitted) {
  switch (fitted.identification) {
    case Identification::good:
      return "well identified";
    case Identification::weak:
      return "weakly identified: refits differ by more than 10 %";
    case Identification::traded:
      return "not identified on its own: " + shown_name(fitted.partner) +
             " makes up for it (correlation " + fixed_text(fitted.correlation, 2) + ")";
    case Identification::at_bound:
      return "at its bound: not identified by these rows";
    case Identification::one_row:
      return "rests on one row: " + percent_text(fitted.largest_share) + " of what is known of it";
    case Identification::prior_only:
      return "not identified; kept: these rows narrow it from " + width_text(fitted.prior_width) +
             " to " + width_text(fitted.posterior_width) + " (--prior none fits to them alone)";
    case Identification::agrees: {
      const std::string width = " (" + width_text(fitted.posterior_width) + ")";
      if (std::abs(std::log(fitted.favoured / fitted.range.start)) < fitted.posterior_width)
        return "kept: the given value agrees with these rows" + width;
      return "kept: too few rows to move it to " + value_text(fitted.favoured) + fitted.given.unit +
             width + "; --prior none does";
    }
    case Identification::contradicted:
      return "kept: fitted values make more than a fifth of these rows worse";
    case Identification::no_effect:
      return "no effect on these rows";
  }
  return {};
}

std::string bound_text(const FittedConstant& fitted) {
  const auto amount = [&](double number) { return value_text(number) + fitted.given.unit; };
  const FitBounds& bounds = fitted.range.bounds;
  const bool is_upper = fitted.side() == BoundSide::upper;
  return fitted.constant.name + " ends at the " + (is_upper ? "upper" : "lower") +
         " bound of its range, " + amount(is_upper ? bounds.upper : bounds.lower) + " (range " +
         amount(bounds.lower) + " to " + amount(bounds.upper) + ", from " + text_of(fitted.given) +
         "): the value is the bound's, not that of the measured rows, which no value in the range "
         "fits best";
}

std::string calibration_text(const Calibration& calibration, const CalibrationPoints& points,
                             std::size_t num_predictions) {
  const std::size_t sizes = std::max<std::size_t>(1, calibration.by_size.size());
  std::string text = count_text(points.points.size(), "point") + " of " +
                     listed(set_names(points)) + "; " + count_text(sizes, "model size") + "; " +
                     std::to_string(num_predictions) + " simulations\n" +
                     constants_text(calibration) + scores_text(calibration, points) +
                     sets_text(calibration, points) + groups_text(calibration);
  if (!points.skipped.empty()) text += "\n";
  for (const auto& [point, why] : points.skipped) text += "  skipped " + point + ": " + why + "\n";
  return text;
}

JsonValue skipped_value(const std::vector<std::pair<std::string, std::string>>& skipped) {
  return array_of(skipped, [](const auto& each) {
    return object_of({{"id", each.first}, {"why", each.second}});
  });
}

JsonValue calibration_value(const Calibration& calibration, const CalibrationPoints& points,
                            std::size_t num_predictions) {
  const std::vector<HeldOut>&by_size = calibration.by_size, &by_fold = calibration.by_fold;
  const bool has_sizes = !by_size.empty(), has_folds = !by_fold.empty();
  JsonValue::Array list;
  for (const ScoredRow& row : calibration.in_sample)
    list.push_back(object_of({{"set", points.points[list.size()].set},
                              {"id", row.id},
                              {"size", row.group},
                              {"measured_s", row.measured},
                              {"predicted_s", row.predicted},
                              {"error", row.error()}}));
  const auto score_of = [](bool is_known, const std::vector<ScoredRow>& rows) {
    return is_known ? std::optional(score_value(rows)) : std::nullopt;
  };
  return object_of(
      {{"schema", "windtunnel/calibration-v1"},
       {"sets", array_of(set_names(points))},
       {"given_fitted_on", array_of(points.fitted_sets)},
       {"constants", array_of(calibration.constants, constant_value)},
       {"as_given", score_value(calibration.as_given)},
       {"in_sample", score_value(calibration.in_sample)},
       {"leave_one_size_out", score_of(has_sizes, all_of(by_size))},
       {"sizes", only_if(has_sizes, groups_value(calibration, by_size))},
       {"random_folds", score_of(has_folds, all_of(by_fold))},
       {"random_folds_anchored", score_of(has_folds, all_of(by_fold, &HeldOut::anchored))},
       {"folds", only_if(has_folds, groups_value(calibration, by_fold))},
       {"points", JsonValue(std::move(list))},
       {"skipped", skipped_value(points.skipped)},
       {"simulations", num_predictions}});
}

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
  JsonValue whole(file.name);
  ScenarioFiles(library, {}, problems).expand(whole, kind, "");
  problems.throw_if_any();
  bool any = false;
  for (const FittedConstant& fitted : calibration.constants) {
    if (fitted.is_kept() || !stands_in(fitted.constant, file)) continue;
    check_same_file(file, fitted, whole);
    const double rounded = rounded_to(fitted.value, written_digits);
    std::vector<FitConstant> places{fitted.constant};
    if (file.option == "--platform")
      if (const auto alike = points.front().alike.find(fitted.constant.pointer);
          alike != points.front().alike.end())
        for (const std::string& other : alike->second) places.push_back({other, other, {}});
    for (const FitConstant& place : places) {
      const std::string pointer = pointer_in_file(place, file);
      const std::size_t slash = pointer.rfind('/');
      make_room_for_node_type(document, pointer);
      const bool is_set =
          set_at(document, pointer,
                 fitted.given.unit.empty() ? JsonValue(rounded)
                                           : JsonValue(text_of({rounded, fitted.given.unit})));
      WT_ENSURE(is_set);
      set_source(*find_at(document, pointer.substr(0, slash)), pointer.substr(slash + 1),
                 provenance(calibration, points));
    }
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

int run_calibrate(const CalibrateRequest& request, const Library& library, std::ostream& out,
                  std::ostream& messages) {
  if (!request.advise.empty()) return run_advise(request, library, out, messages);
  CalibrationPlan plan;
  plan.constants = parse_constants(request.fit, request.file);
  plan.seed = request.seed;
  plan.prior =
      request.prior.value_or(request.residuals.empty() ? PriorKind::shipped : PriorKind::none);
  check(request, plan.constants);
  const PointReading reading{&library, request.overrides, plan.constants};
  const CalibrationPoints points =
      read_calibration_points(read_sets(request.sets, library), reading);
  if (points.points.empty()) {
    for (const auto& [point, why] : points.skipped)
      messages << "calibrate: skipped " << point << ": " << why << "\n";
    messages << "calibrate: no point of these sets can be predicted\n";
    return 1;
  }
  narrow_to_readable(plan.constants, points.points, reading);
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
  if (request.format == ResultFormat::text) {
    out << calibration_text(calibration, points, predictor.num_predictions());
    if (prediction) out << prediction_text(*prediction, request.predict_name, points.points.size());
  } else {
    JsonValue document = calibration_value(calibration, points, predictor.num_predictions());
    if (prediction) document.set("prediction", *prediction);
    out << pretty_text(document) << "\n";
  }
  out << std::flush;
  if (refuse_bounds(request, calibration, messages)) return 1;
  if (refuse_kept(request, calibration, messages)) return 1;
  write_files(request, library, points.points, calibration, messages);
  return 0;
}

}  // namespace windtunnel
