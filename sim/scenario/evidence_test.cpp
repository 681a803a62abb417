#include "scenario/evidence.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/file_io.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

Library library() { return Library{source_dir()}; }

ScenarioTraits shipped_traits() {
  return traits_of(
      read_scenario(library().root / "scenarios" / "gpt3-175b-512xa100.json", library()));
}

EvidenceRegime small_regime() {
  EvidenceRegime regime;
  regime.software = "s";
  regime.device_family = "a100";
  regime.sets = {"set"};
  regime.method = "blind";
  ScenarioTraits traits{"s", "a100", "p", {{"gpus", 8}}, {{"recompute", "full"}}};
  regime.include(traits);
  traits.amounts["gpus"] = 64;
  regime.include(traits);
  regime.residuals = {-0.02, 0.0, 0.31};
  return regime;
}

TEST_CASE("the traits of a scenario are its stack, its GPUs, its amounts and its choices") {
  const ScenarioTraits traits = shipped_traits();
  CHECK(traits.device_family == "a100");
  CHECK(traits.amounts.at("gpus") == 512);
  CHECK(traits.amounts.at("parameters") == doctest::Approx(175e9).epsilon(0.02));
  CHECK(traits.choices.at("schedule") == "1f1b");
  CHECK(traits.choices.at("compression") == "none");
}

TEST_CASE("a regime says what of a scenario lies beyond it") {
  const EvidenceRegime regime = small_regime();
  ScenarioTraits traits{"s", "a100", "p", {{"gpus", 32}}, {{"recompute", "full"}}};
  for (const auto& reasons : regime.beyond(traits).reasons) CHECK(reasons.empty());
  traits.amounts["gpus"] = 128;
  traits.choices["recompute"] = "none";
  traits.platform = "q";
  traits.device_family = "h100";
  traits.software = "t";
  const Beyond beyond = regime.beyond(traits);
  using Reasons = std::vector<std::string>;
  CHECK(beyond.of(EvidenceAxis::stack) == Reasons{"no measured runs of software t"});
  CHECK(beyond.of(EvidenceAxis::gpu) == Reasons{"h100 GPUs, measured a100"});
  CHECK(beyond.of(EvidenceAxis::cluster) == Reasons{"platform q, measured p"});
  CHECK(beyond.of(EvidenceAxis::job) ==
        Reasons{"gpus 128, measured 8 to 64", "recompute none, measured full"});
}

TEST_CASE("what is written can be read again") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("residuals.json", evidence_json({small_regime()}));
  const auto regimes = read_evidence(file);
  REQUIRE(regimes.size() == 1);
  CHECK(regimes[0].ranges.at("gpus") == std::pair<double, double>{8, 64});
  CHECK(regimes[0].choices.at("recompute") == std::set<std::string>{"full"});
  CHECK(regimes[0].residuals == std::vector<double>{-0.02, 0.0, 0.31});
  CHECK(evidence_json(regimes) == evidence_json({small_regime()}));
}

TEST_CASE("a file of residuals that cannot be right is refused with its place") {
  const TemporaryFolder folder;
  const fs::path file = folder.write(
      "residuals.json", R"({"schema": "windtunnel/residuals-v1", "regimes": [{"software": "s",
    "device_family": "a100", "platforms": [3], "sets": [], "method": "m", "ranges": {"gpus": [1]},
    "choices": {}, "residuals": []}]})");
  CHECK_THROWS_WITH_AS(read_evidence(file), doctest::Contains("/regimes/0/residuals"), InputError);
  CHECK_THROWS_WITH_AS(read_evidence(file), doctest::Contains("two ends"), InputError);
  CHECK_THROWS_AS(read_evidence("/no/such/file"), EnvironmentError);
}

}  // namespace
}  // namespace windtunnel
