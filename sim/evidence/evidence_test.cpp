#include "evidence/evidence.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

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

ScenarioTraits small_traits(double gpus) {
  ScenarioTraits traits{"s", "a100", "p", {{"gpus", gpus}}, {{"recompute", "full"}}, {}};
  traits.values[0].habits = {{"fused", {"fused kernels", true, "yes"}}};
  traits.values[1].numbers = {
      {"peak", {"peak rate", ValueUnit::flop_rate, 0.03, true, 312e12, 312e12}}};
  traits.values[2].numbers = {
      {"nic_rate", {"NIC rate", ValueUnit::data_rate, 0.1, true, 20e9, 25e9}}};
  return traits;
}

EvidenceRegime small_regime() {
  EvidenceRegime regime;
  regime.software = "s";
  regime.device_family = "a100";
  regime.sets = {"set"};
  regime.method = "held out";
  regime.include(small_traits(8));
  regime.include(small_traits(64));
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
  CHECK(traits.values[1].numbers.at("peak").high == doctest::Approx(312e12));
  CHECK(traits.values[2].numbers.at("nic_rate").low == doctest::Approx(0.85 * 25e9));
}

TEST_CASE("a fitted number belongs to the file that states it, also where another extends that") {
  const auto names_of = [](const char* software) {
    const Scenario scenario =
        read_scenario(library().root / "scenarios" / "gpt3-175b-512xa100.json", library(),
                      {{{"/software", software}}, 0});
    std::set<std::string> names;
    for (const FittedNumber& number : fitted_numbers(scenario))
      if (number.name.starts_with("software ")) names.insert(number.name);
    return names;
  };
  const std::set<std::string> own = names_of("nanotron-2024");
  CHECK(own.contains("software nanotron-2024: launch/collective_per_rank"));
  CHECK(names_of("nanotron-2024-slow-launches") == own);
}

TEST_CASE("a regime says what of a scenario lies beyond it") {
  const EvidenceRegime regime = small_regime();
  ScenarioTraits traits = small_traits(32);
  for (const auto& reasons : regime.extrapolation(traits).reasons) CHECK(reasons.empty());
  traits.amounts["gpus"] = 128;
  traits.choices["recompute"] = "none";
  traits.values[0].habits["fused"].word = "no";
  traits.values[1].numbers["peak"].high = 400e12;
  traits.values[2].numbers["nic_rate"].low = 1e9;
  traits.values[2].numbers["taper"] = {"taper", ValueUnit::ratio, 0, true, 2, 2};
  traits.values[2].numbers["pairs"] = {"pairs", ValueUnit::ratio, 0, false, 2, 2};
  const Extrapolation extrapolation = regime.extrapolation(traits);
  using Reasons = std::vector<std::string>;
  const auto reasons_of = [&extrapolation](EvidenceAxis axis) {
    Reasons texts;
    for (const Difference& difference : extrapolation.of(axis)) texts.push_back(difference());
    return texts;
  };
  CHECK(reasons_of(EvidenceAxis::stack) == Reasons{"fused kernels no, measured yes"});
  CHECK(reasons_of(EvidenceAxis::gpu) == Reasons{"peak rate 400 TFLOP/s, measured 312 TFLOP/s"});
  CHECK(reasons_of(EvidenceAxis::cluster) ==
        Reasons{"NIC rate 1.00 GB/s, measured 20.0 GB/s to 25.0 GB/s", "taper 2, never measured"});
  CHECK(reasons_of(EvidenceAxis::job) ==
        Reasons{"gpus 128, measured 8 to 64", "recompute none, measured full"});
}

TEST_CASE("a number as near to measured ones as such numbers vary is one of them") {
  const EvidenceRegime regime = small_regime();
  ScenarioTraits traits = small_traits(8);
  traits.values[2].numbers["nic_rate"].low = 18.1e9;   // 10 % below 20 is 18
  traits.values[2].numbers["nic_rate"].high = 27.4e9;  // 10 % above 25 is 27.5
  CHECK(regime.extrapolation(traits).of(EvidenceAxis::cluster).empty());
  traits.values[2].numbers["nic_rate"].high = 27.6e9;
  CHECK(regime.extrapolation(traits).of(EvidenceAxis::cluster).size() == 1);
}

TEST_CASE("what is written can be read again") {
  const TemporaryFolder folder;
  const MeasuredErrors written{{small_regime()},
                               {"left out", {{"set", {{"stack"}, {0.25, -0.5}, {0.1, 0.7}}}}}};
  const MeasuredErrors read = read_evidence(folder.write("residuals.json", evidence_json(written)));
  const auto& regimes = read.regimes;
  REQUIRE(regimes.size() == 1);
  CHECK(regimes[0].ranges.at("gpus") == std::pair<double, double>{8, 64});
  CHECK(regimes[0].choices.at("recompute") == std::set<std::string>{"full"});
  CHECK(regimes[0].values[0].habits.at("fused") == std::set<std::string>{"yes"});
  CHECK(regimes[0].values[2].numbers.at("nic_rate") == std::pair<double, double>{20e9, 25e9});
  CHECK(regimes[0].residuals == std::vector<double>{-0.02, 0.0, 0.31});
  CHECK(read.unseen.method == "left out");
  CHECK(read.unseen.sets.at("set").residuals == std::vector<double>{0.25, -0.5});
  CHECK(read.unseen.of_software("stack").at("set").size() == 2);
  CHECK(read.unseen.of_software("other").empty());
  CHECK(read.unseen.sets.at("set").outside_kernels == std::vector<double>{0.1, 0.7});
  CHECK(evidence_json(read) == evidence_json(written));
}

TEST_CASE("a file of residuals that cannot be right is refused with its place") {
  const TemporaryFolder folder;
  const fs::path file = folder.write(
      "residuals.json", R"({"schema": "windtunnel/residuals-v2", "regimes": [{"software": "s",
    "device_family": "a100", "platforms": [3], "sets": [], "method": "m", "ranges": {"gpus": [1]},
    "choices": {}, "values": {"stack": {"launch": [1, 2, 3]}, "gpu": {}, "cluster": {}}, "residuals": []}]})");
  CHECK_THROWS_WITH_AS(read_evidence(file), doctest::Contains("/regimes/0/residuals"), InputError);
  CHECK_THROWS_WITH_AS(read_evidence(file), doctest::Contains("two ends at /regimes/0/ranges/gpus"),
                       InputError);
  CHECK_THROWS_WITH_AS(read_evidence(file),
                       doctest::Contains("two ends at /regimes/0/values/stack/launch"), InputError);
  CHECK_THROWS_AS(read_evidence("/no/such/file"), EnvironmentError);
}

TEST_CASE(
    "a source names the sets it was fitted on, and those it was never fitted on do not count") {
  const FittedNumber number{"",
                            "vtrain-a100-multi-node (0.85 of HDR); never fitted on "
                            "megatron-sc21-table1"};
  CHECK(number.is_fitted_on("vtrain-a100-multi-node"));
  CHECK_FALSE(number.is_fitted_on("megatron-sc21-table1"));
}

TEST_CASE("only the list that a source begins with names sets, and only whole names count") {
  const auto is_fitted = [](const char* source, const char* set) {
    return FittedNumber{"", source}.is_fitted_on(set);
  };
  const char* const jointly = "jointly on vtrain-a100, table 5 and bigscience (0.83), torchao";
  for (const char* set : {"vtrain-a100", "table 5"}) CHECK(is_fitted(jointly, set));
  CHECK_FALSE(is_fitted(jointly, "torchao"));
  CHECK_FALSE(is_fitted(jointly, "vtrain"));
  CHECK(is_fitted("vtrain-a100 and table-5, one for both", "table-5"));
  CHECK_FALSE(is_fitted("kernels rowwise.csv, torchao on H100", "torchao"));
  CHECK(is_fitted("torchao", "torchao"));
  CHECK_FALSE(is_fitted("", "torchao"));
}

}  // namespace
}  // namespace windtunnel
