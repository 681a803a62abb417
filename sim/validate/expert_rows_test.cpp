// Models with experts against measured iterations. Rows that constants may be fitted on are kept apart from those that nothing may be
// fitted on.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "validate/validate.hpp"

namespace windtunnel {
namespace {

/// The rows that constants of stacks and platforms may be fitted on, in addition to kernels and exchanges measured alone. Nothing was fitted on the others.
bool may_be_fitted_on(const std::string& id) { return id.starts_with("Qwen3_30B_a3B"); }

const Library& shipped() {
  static const Library shipped{source_dir()};
  return shipped;
}

ValidatedSet validated_file(const std::string& file) {
  Prediction prediction;
  prediction.predict = [](const JsonValue& scenario, const std::filesystem::path& folder) {
    return predict_by_simulation(scenario, folder, shipped());
  };
  return validate(read_measurement_set(shipped().root / "validation" / file), prediction);
}

/// The errors of the rows that begin so.
std::vector<double> errors_of(const ValidatedSet& set, const std::string& begin) {
  std::vector<double> errors;
  for (const ScoredRow& row : set.comparisons)
    if (row.id.starts_with(begin)) errors.push_back(std::abs(row.error()));
  return errors;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST_CASE(
    "rows of models with experts: one constant is fitted on those of Qwen3-30B, one on hosts of "
    "Grace") {
  const ValidatedSet set = validated_file("megatron-bridge/moe.json");
  CHECK(set.comparisons.size() == 78);
  REQUIRE(set.fitted_numbers.size() == 3);
  for (const std::string& number :
       set.fitted_numbers)  // loop_launch, and launch_slowdown of two platforms
    CHECK((number.find("experts/loop_launch") != std::string::npos ||
           number.find("launch_slowdown") != std::string::npos));
  const std::vector<double> open = errors_of(set, "Qwen3_30B_a3B");
  CHECK(open.size() == 26);
  CHECK(mean_of(open) < 0.16);
  std::vector<double> others;
  for (const ScoredRow& row : set.comparisons)
    if (!may_be_fitted_on(row.id)) others.push_back(std::abs(row.error()));
  CHECK(others.size() == 52);
  CHECK(mean_of(others) < 0.10);
  CHECK(mean_of(errors_of(set, "GPT_OSS_120B")) <
        0.22);  // releases differ by 1.6 times on one plan
  CHECK(mean_of(errors_of(set, "DeepSeekV3")) < 0.06);
  CHECK(mean_of(errors_of(set, "Qwen3_235B_a22B")) < 0.08);
}

TEST_CASE("DeepSeek's layers on one node of B200, and what they hold in memory") {
  const ValidatedSet set = validated_file("simumax/b200.json");
  CHECK(mean_of(errors_of(set, "simumax-b200-deepseek")) < 0.11);
  std::vector<double> memory;
  for (const MemoryComparison& each : set.memory)
    if (each.id.starts_with("simumax-b200-deepseek") && each.kind == MemoryKind::allocated)
      memory.push_back(std::abs(each.error()));
  CHECK(mean_of(memory) < 0.04);
}

}  // namespace
}  // namespace windtunnel
