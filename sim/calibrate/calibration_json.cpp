#include <array>
#include <utility>

#include "calibrate/calibration_text.hpp"
#include "core/json_build.hpp"

namespace windtunnel {
namespace {

JsonValue whole(std::size_t count) { return JsonValue(static_cast<std::int64_t>(count)); }

JsonValue score_value(const std::vector<ScoredRow>& comparisons) {
  const Score all = score(comparisons);
  const std::size_t largest = num_largest(comparisons.size());
  JsonValue value = empty_object();
  value.set("scored", whole(all.scored));
  value.set("mape", JsonValue(all.mape));
  value.set("median_ape", JsonValue(all.median_ape));
  value.set("p90_ape", JsonValue(all.p90_ape));
  value.set("worst_ape", JsonValue(all.worst_ape));
  value.set("bias", JsonValue(all.bias));
  if (largest > 0)
    value.set("mape_without_largest", JsonValue(score_without_largest(comparisons, largest).mape));
  return value;
}

JsonValue constant_value(const FittedConstant& fitted) {
  JsonValue value = empty_object();
  value.set("name", JsonValue(fitted.constant.name));
  value.set("pointer", JsonValue(fitted.constant.pointer));
  value.set("start", JsonValue(fitted.given.number));
  value.set("value", JsonValue(fitted.value));
  if (!fitted.given.unit.empty())
    value.set("unit",
              JsonValue(fitted.given.unit.substr(fitted.given.unit.front() == ' ' ? 1 : 0)));
  value.set("bounds", array_of(std::array{fitted.range.bounds.lower, fitted.range.bounds.upper}));
  value.set("refits", array_of(std::array{fitted.lowest, fitted.highest}));
  value.set("sensitivity", JsonValue(fitted.sensitivity));
  value.set("largest_share_of_a_row", JsonValue(fitted.largest_share));
  if (!fitted.partner.empty()) {
    value.set("correlated_with", JsonValue(fitted.partner));
    value.set("correlation", JsonValue(fitted.correlation));
  }
  value.set("identification", JsonValue(identification_text(fitted)));
  value.set("kept", JsonValue(fitted.is_kept()));
  if (fitted.prior_width > 0) {
    value.set("prior_width", JsonValue(fitted.prior_width));
    value.set("posterior_width", JsonValue(fitted.posterior_width));
  }
  value.set("at_bound", JsonValue(fitted.identification == Identification::at_bound));
  return value;
}

JsonValue groups_value(const Calibration& calibration, const std::vector<HeldOut>& groups) {
  return array_of(groups, [&](const HeldOut& group) {
    JsonValue value = empty_object();
    value.set("left_out", JsonValue(group.name));
    JsonValue values = empty_object();
    for (std::size_t j = 0; j < group.values.size(); ++j)
      values.set(calibration.constants[j].constant.name, JsonValue(group.values[j]));
    value.set("constants", std::move(values));
    value.set("score", score_value(group.comparisons));
    return value;
  });
}

JsonValue points_value(const Calibration& calibration, const CalibrationPoints& points) {
  JsonValue::Array list;
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const ScoredRow& row = calibration.in_sample[i];
    JsonValue value = empty_object();
    value.set("set", JsonValue(points.points[i].set));
    value.set("id", JsonValue(row.id));
    value.set("size", JsonValue(row.group));
    value.set("measured_s", JsonValue(row.measured.value()));
    value.set("predicted_s", JsonValue(row.predicted.value()));
    value.set("error", JsonValue(row.error()));
    list.push_back(std::move(value));
  }
  return JsonValue(std::move(list));
}

JsonValue skipped_value(const CalibrationPoints& points) {
  JsonValue::Array list;
  for (const auto& [point, why] : points.skipped) {
    JsonValue value = empty_object();
    value.set("id", JsonValue(point));
    value.set("why", JsonValue(why));
    list.push_back(std::move(value));
  }
  return JsonValue(std::move(list));
}

}  // namespace

JsonValue calibration_value(const Calibration& calibration, const CalibrationPoints& points,
                            std::size_t num_predictions) {
  JsonValue document = empty_object();
  document.set("schema", JsonValue(std::string("windtunnel/calibration-v1")));
  JsonValue::Array sets, constants;
  for (const std::string& set : set_names(points)) sets.emplace_back(set);
  for (const FittedConstant& fitted : calibration.constants)
    constants.push_back(constant_value(fitted));
  document.set("sets", JsonValue(std::move(sets)));
  JsonValue::Array fitted_sets;
  for (const std::string& set : points.fitted_sets) fitted_sets.emplace_back(set);
  document.set("given_fitted_on", JsonValue(std::move(fitted_sets)));
  document.set("constants", JsonValue(std::move(constants)));
  document.set("as_given", score_value(calibration.as_given));
  document.set("in_sample", score_value(calibration.in_sample));
  if (!calibration.by_size.empty()) {
    document.set("leave_one_size_out", score_value(all_of(calibration.by_size)));
    document.set("sizes", groups_value(calibration, calibration.by_size));
  }
  if (!calibration.by_fold.empty()) {
    document.set("random_folds", score_value(all_of(calibration.by_fold)));
    document.set("random_folds_anchored", score_value(anchored_of(calibration.by_fold)));
    document.set("folds", groups_value(calibration, calibration.by_fold));
  }
  document.set("points", points_value(calibration, points));
  document.set("skipped", skipped_value(points));
  document.set("simulations", whole(num_predictions));
  return document;
}

}  // namespace windtunnel
