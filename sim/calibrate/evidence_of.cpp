#include <algorithm>
#include <cmath>

#include "calibrate/calibrate.hpp"

namespace windtunnel {
namespace {

std::string method_of(const Calibration& calibration) {
  if (calibration.constants.empty()) return "predicted with the constants of the shipped files";
  std::string names;
  for (const FittedConstant& fitted : calibration.constants)
    names += (names.empty() ? "" : ", ") + fitted.constant.name;
  return (calibration.by_size.empty() ? "refitted without one random fifth each: "
                                      : "refitted without one model size each: ") +
         names;
}

}  // namespace

std::vector<ScoredRow> held_out_by_row(const Calibration& calibration) {
  std::vector<ScoredRow> by_row = calibration.as_given;
  if (calibration.constants.empty()) return by_row;
  for (const HeldOut& group :
       calibration.by_size.empty() ? calibration.by_fold : calibration.by_size)
    for (std::size_t i = 0; i < group.points.size(); ++i)
      by_row[group.points[i]] = group.comparisons[i];
  return by_row;
}

std::vector<EvidenceRegime> evidence_of(const std::vector<CalibrationPoint>& points,
                                        const Calibration& calibration) {
  std::vector<EvidenceRegime> regimes;
  const std::vector<ScoredRow> rows = held_out_by_row(calibration);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ScenarioTraits& traits = points[i].traits;
    auto regime = std::find_if(regimes.begin(), regimes.end(), [&](const EvidenceRegime& known) {
      return known.software == traits.software && known.device_family == traits.device_family;
    });
    if (regime == regimes.end()) {
      regime = regimes.insert(regimes.end(), EvidenceRegime{});
      regime->software = traits.software;
      regime->device_family = traits.device_family;
      regime->method = method_of(calibration);
    }
    regime->sets.insert(points[i].set);
    regime->include(traits);
    regime->residuals.push_back(std::log(rows[i].measured / rows[i].predicted));
  }
  for (EvidenceRegime& regime : regimes)
    std::sort(regime.residuals.begin(), regime.residuals.end());
  return regimes;
}

}  // namespace windtunnel
