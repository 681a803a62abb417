#include "calibrate/calibration_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel {
namespace {

constexpr int value_digits = 4;

std::string value_text(double value) { return significant_text(value, value_digits); }
std::string signed_percent(double share) { return (share >= 0 ? "+" : "") + percent_text(share); }

std::string constants_text(const Calibration& calibration) {
  if (calibration.constants.empty())
    return "\n  nothing is fitted: the shipped constants, scored\n";
  std::vector<TextRow> rows{{"constant", "from", "fitted", "width", "bounds", "refits", "weight"}};
  for (const FittedConstant& fitted : calibration.constants)
    rows.push_back(
        {fitted.constant.name, text_of(fitted.given), value_text(fitted.value) + fitted.given.unit,
         fitted.posterior_width > 0 ? width_text(fitted.posterior_width) : std::string("-"),
         value_text(fitted.range.bounds.lower) + " .. " + value_text(fitted.range.bounds.upper),
         value_text(fitted.lowest) + " .. " + value_text(fitted.highest),
         fixed_text(fitted.sensitivity, 2), identification_text(fitted)});
  return "\n" + text_table("lr?rr???r??r?w", rows) +
         "  width: standard deviation of what the rows and the prior leave open; refits: without "
         "some rows each (below); weight: % of the time for 1 % of the "
         "constant\n";
}

TextRow score_row(const std::string& name, const std::vector<ScoredRow>& comparisons) {
  const Score all = score(comparisons);
  const std::size_t largest = num_largest(comparisons.size());
  TextRow row{name,
              percent_text(all.mape),
              percent_text(all.median_ape),
              percent_text(all.p90_ape),
              percent_text(all.worst_ape),
              signed_percent(all.bias)};
  if (largest > 0) row.push_back(percent_text(score_without_largest(comparisons, largest).mape));
  return row;
}

/// Whether rows say something of each other beyond the constants.
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
    if (is_shown && !comparisons.empty()) rows.push_back(score_row(name, comparisons));
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
        "ways, "
        "as --predict does.\n";
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
  for (const FittedConstant& fitted : calibration.constants) head.push_back(fitted.constant.name);
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

std::string skipped_text(const CalibrationPoints& points) {
  std::string text = points.skipped.empty() ? "" : "\n";
  for (const auto& [point, why] : points.skipped) text += "  skipped " + point + ": " + why + "\n";
  return text;
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
      return "not identified on its own: " + fitted.partner + " makes up for it (correlation " +
             fixed_text(fitted.correlation, 2) + ")";
    case Identification::at_bound:
      return "at its bound: not identified by these rows";
    case Identification::one_row:
      return "rests on one row: " + percent_text(fitted.largest_share) + " of what is known of it";
    case Identification::prior_only:
      return "not identified; kept: these rows narrow it from " + width_text(fitted.prior_width) +
             " to " + width_text(fitted.posterior_width);
    case Identification::agrees:
      return "kept: the given value agrees with these rows (" + width_text(fitted.posterior_width) +
             ")";
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
  return std::to_string(points.points.size()) + " points of " + listed(set_names(points)) + "; " +
         count_text(sizes, "model size") + "; " + std::to_string(num_predictions) +
         " simulations\n" + constants_text(calibration) + scores_text(calibration, points) +
         sets_text(calibration, points) + groups_text(calibration) + skipped_text(points);
}

namespace {

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

JsonValue points_value(const Calibration& calibration, const CalibrationPoints& points) {
  JsonValue::Array list;
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const ScoredRow& row = calibration.in_sample[i];
    list.push_back(object_of({{"set", points.points[i].set},
                              {"id", row.id},
                              {"size", row.group},
                              {"measured_s", row.measured},
                              {"predicted_s", row.predicted},
                              {"error", row.error()}}));
  }
  return JsonValue(std::move(list));
}

}  // namespace

JsonValue skipped_value(const std::vector<std::pair<std::string, std::string>>& skipped) {
  return array_of(skipped, [](const auto& each) {
    return object_of({{"id", each.first}, {"why", each.second}});
  });
}

JsonValue calibration_value(const Calibration& calibration, const CalibrationPoints& points,
                            std::size_t num_predictions) {
  const std::vector<HeldOut>&by_size = calibration.by_size, &by_fold = calibration.by_fold;
  const bool has_sizes = !by_size.empty(), has_folds = !by_fold.empty();
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
       {"points", points_value(calibration, points)},
       {"skipped", skipped_value(points.skipped)},
       {"simulations", num_predictions}});
}

}  // namespace windtunnel
