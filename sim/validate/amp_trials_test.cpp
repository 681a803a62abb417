// Predictions of three constants, fitted to five runs on 16 T4, for the other 42 and for a mix of V100 and T4.
#include <doctest/doctest.h>

#include <set>

#include "core/testing.hpp"
#include "validate/validate.hpp"

namespace windtunnel {
namespace {

const Library& library() {
  static const Library library{source_dir()};
  return library;
}

MeasurementSet set_called(const char* name) {
  return read_measurement_set(library().root / "validation/amp" / name);
}

ValidatedSet validated(const char* name) {
  Prediction prediction;
  prediction.predict = [](const JsonValue& scenario, const std::filesystem::path& folder) {
    return predict_by_simulation(scenario, folder, library());
  };
  return validate(set_called(name), prediction);
}

TEST_CASE("the rows that constants are fitted to are not among those that are scored") {
  std::set<std::string> fitted;
  for (const MeasurementPoint& point : set_called("calibration-rows.json").points)
    fitted.insert(point.id);
  CHECK(fitted.size() == 5);
  for (const char* name : {"t4.json", "t4-v100-mixed.json"})
    for (const MeasurementPoint& point : set_called(name).points)
      CHECK(fitted.count(point.id) == 0);
}

TEST_CASE("42 plans on 16 T4 are predicted to 20 %, and in the right order") {
  // AMP's own formula: 47.6 % and 0.935 on all 47.
  const ValidatedSet set = validated("t4.json");
  CHECK(set.comparisons.size() == 42);
  CHECK(set.skipped.size() == 5);
  CHECK(set.fitted_numbers.empty());
  CHECK(score(set.comparisons).mape < 0.20);
  CHECK(*spearman_rho(set.comparisons) > 0.93);
}

TEST_CASE("43 plans on V100 and T4 together are put in a better order than by formula") {
  // AMP's own formula: 0.394.
  const ValidatedSet set = validated("t4-v100-mixed.json");
  CHECK(set.comparisons.size() == 43);
  CHECK(set.fitted_numbers.empty());
  CHECK(*spearman_rho(set.comparisons) > 0.6);
}

}  // namespace
}  // namespace windtunnel
