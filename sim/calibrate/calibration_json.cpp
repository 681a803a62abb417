#include <array>
#include <utility>

#include "calibrate/calibration_text.hpp"
#include "core/json_build.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

JsonValue score_value(const std::vector<ScoredRow>& comparisons) {
  const Score all = score(comparisons);
  const std::size_t largest = num_largest(comparisons.size());
  JsonValue value = object_of({{"scored", all.scored},
                               {"mape", all.mape},
                               {"median_ape", all.median_ape},
                               {"p90_ape", all.p90_ape},
                               {"worst_ape", all.worst_ape},
                               {"bias", all.bias}});
  if (largest > 0)
    value.set("mape_without_largest", JsonValue(score_without_largest(comparisons, largest).mape));
  return value;
}

JsonValue constant_value(const FittedConstant& fitted) {
  const auto where = [](bool is_known, const auto& content) {
    return is_known ? std::optional(content) : std::nullopt;
  };
  const std::string& unit = fitted.given.unit;
  const bool has_partner = !fitted.partner.empty(), has_width = fitted.prior_width > 0;
  return object_of(
      {{"name", fitted.constant.name},
       {"pointer", fitted.constant.pointer},
       {"start", fitted.given.number},
       {"value", fitted.value},
       {"unit", where(!unit.empty(), unit.substr(unit.starts_with(' ') ? 1 : 0))},
       {"bounds", array_of(std::array{fitted.range.bounds.lower, fitted.range.bounds.upper})},
       {"refits", array_of(std::array{fitted.lowest, fitted.highest})},
       {"sensitivity", fitted.sensitivity},
       {"largest_share_of_a_row", fitted.largest_share},
       {"correlated_with", where(has_partner, fitted.partner)},
       {"correlation", where(has_partner, fitted.correlation)},
       {"identification", identification_text(fitted)},
       {"kept", fitted.is_kept()},
       {"prior_width", where(has_width, fitted.prior_width)},
       {"posterior_width", where(has_width, fitted.posterior_width)},
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
  JsonValue document = object_of({{"schema", "windtunnel/calibration-v1"},
                                  {"sets", array_of(set_names(points))},
                                  {"given_fitted_on", array_of(points.fitted_sets)},
                                  {"constants", array_of(calibration.constants, constant_value)},
                                  {"as_given", score_value(calibration.as_given)},
                                  {"in_sample", score_value(calibration.in_sample)}});
  const auto& by_size = calibration.by_size;
  const auto& by_fold = calibration.by_fold;
  if (!by_size.empty())
    add_members(document, {{"leave_one_size_out", score_value(all_of(by_size))},
                           {"sizes", groups_value(calibration, by_size)}});
  if (!by_fold.empty())
    add_members(document, {{"random_folds", score_value(all_of(by_fold))},
                           {"random_folds_anchored", score_value(anchored_of(by_fold))},
                           {"folds", groups_value(calibration, by_fold)}});
  add_members(document, {{"points", points_value(calibration, points)},
                         {"skipped", skipped_value(points.skipped)},
                         {"simulations", num_predictions}});
  return document;
}

}  // namespace windtunnel
