#include "evidence/interval.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "core/file_io.hpp"
#include "core/testing.hpp"
#include "evidence/measurement_set.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

ScenarioTraits traits(double gpus) {
  ScenarioTraits traits{"s", "a100", "p", {{"gpus", gpus}}, {}, {}};
  const auto number = [](const char* label, double value) {
    return UsedNumber{label, ValueUnit::count, 0.1, true, value, value};
  };
  traits.values[0].numbers = {{"launch", number("launches", 3)}};
  traits.values[1].numbers = {{"peak", number("peak rate", 312)}};
  traits.values[2].numbers = {{"nics", number("NICs", 4)}};
  return traits;
}

/// One value of stack, GPU or cluster far from what was measured.
void move_value(ScenarioTraits& traits, EvidenceAxis axis, const std::string& key) {
  UsedNumber& number = traits.values.at(static_cast<std::size_t>(axis)).numbers.at(key);
  number.low = number.high = 1000;
}

/// 8 to 64 GPUs measured; 39 residuals -0.19, -0.18, … 0.19.
EvidenceRegime even_regime() {
  EvidenceRegime regime;
  regime.software = "s";
  regime.device_family = "a100";
  regime.sets = {"set"};
  regime.include(traits(8));
  regime.include(traits(64));
  for (int i = -19; i <= 19; ++i) regime.residuals.push_back(i / 100.0);
  return regime;
}

/// Nine sets of which nothing was measured: 0.9 (9 + 1) are all nine.
const UnseenErrors unseen = [] {
  UnseenErrors errors{"left out", {{"few", {{}, {0.1, -0.4}}}, {"many", {{}, {0, 0.1, 0.2, 0.4}}}}};
  for (int i = 0; i < 7; ++i) errors.sets["set " + std::to_string(i)] = {{}, {0.01 * i}};
  return errors;
}();

double low_log(const Interval& interval) { return std::log(interval.low / Seconds{10}); }
double high_log(const Interval& interval) { return std::log(interval.high / Seconds{10}); }

/// Like the residuals of a shared cluster: 2 % of noise, and one run in ten that is up to 50 %
/// slow.
double draw_residual(std::mt19937_64& random) {
  std::normal_distribution<double> noise(0, 0.02);
  std::uniform_real_distribution<double> share(0, 1);
  const double residual = noise(random);
  return share(random) < 0.1 ? residual + 0.4 * share(random) : residual;
}

TEST_CASE("the bounds are the shortest interval that holds 0.9 (n+1) of the residuals") {
  // 0.9 (39 + 1) = 36 of 39 evenly spaced ones; all such intervals are 0.35 long, the first is taken
  const auto [low, high] = conformal_bounds(even_regime().residuals);
  CHECK(low == doctest::Approx(-0.19));
  CHECK(high == doctest::Approx(0.16));
}

TEST_CASE("with fewer than 9 residuals the extremes are widened by half") {
  const auto [low, high] = conformal_bounds({-0.02, 0.01, 0.1});
  CHECK(low == doctest::Approx(-0.03));
  CHECK(high == doctest::Approx(0.15));
}

TEST_CASE("one slow outlier among twenty does not widen the interval") {
  // 0.9 (20 + 1) = 18.9, so 19 of 20: all but the outlier
  std::vector<double> residuals;
  for (int i = 0; i < 19; ++i) residuals.push_back((i - 9) / 100.0);
  residuals.push_back(0.5);
  const auto [low, high] = conformal_bounds(residuals);
  CHECK(low == doctest::Approx(-0.09));
  CHECK(high == doctest::Approx(0.09));
}

TEST_CASE("the prediction itself lies in its interval even when all residuals have one sign") {
  CHECK(conformal_bounds({0.1, 0.2}).first == 0);
  CHECK(conformal_bounds({-0.2, -0.1}).second == 0);
}

TEST_CASE("intervals from synthetic residuals hold 85 to 95 of 100 new runs") {
  std::mt19937_64 random(1);
  int held = 0, total = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> residuals;
    for (int i = 0; i < 54; ++i) residuals.push_back(draw_residual(random));
    std::sort(residuals.begin(), residuals.end());
    const auto [low, high] = conformal_bounds(residuals);
    for (int i = 0; i < 100; ++i, ++total) {
      const double fresh = draw_residual(random);
      held += fresh >= low && fresh <= high;
    }
  }
  const double coverage = static_cast<double>(held) / total;
  CHECK(coverage > 0.85);
  CHECK(coverage < 0.95);
}

TEST_CASE("runs that compute less have wider intervals, where errors of such runs were larger") {
  UnseenErrors errors;
  for (int i = 0; i < 10; ++i)
    errors.sets["set " + std::to_string(i)] = {{}, {0.02, -0.02, 0.1, -0.1}, {0, 0, 0.8, 0.8}};
  errors.find_allowance();  // through (0, 0.02) and (0.8, 0.1)
  CHECK(errors.allowance.of(0.4) == doctest::Approx(0.06));
  for (const auto& [outside, bound] : {std::pair{0.0, 0.02}, {0.4, 0.06}, {0.8, 0.1}}) {
    CHECK(errors.bounds("s", outside).first == doctest::Approx(-bound));
    CHECK(errors.bounds("s", outside).second == doctest::Approx(bound));
  }
}

TEST_CASE("inside what was measured the interval is that of the residuals") {
  const Interval interval = interval_from({{even_regime()}, unseen}, traits(16), Seconds{10}, 0);
  CHECK(interval.basis == IntervalBasis::measured);
  CHECK(low_log(interval) == doctest::Approx(-0.19));
  CHECK(high_log(interval) == doctest::Approx(0.16));
  CHECK(interval.reason == "39 held-out runs of set");
  CHECK(interval_warning(interval).empty());
}

TEST_CASE("beyond what was measured it is wider by half and says what is new") {
  const Interval interval = interval_from({{even_regime()}, unseen}, traits(128), Seconds{10}, 0);
  CHECK(interval.basis == IntervalBasis::extrapolated);
  CHECK(high_log(interval) == doctest::Approx(0.24));  // 1.5 * 0.16
  CHECK(interval.reason == "gpus 128, measured 8 to 64");
  CHECK(interval_warning(interval) ==
        "the prediction interval is extrapolated: no comparable run that Windtunnel was fitted to "
        "had gpus 128 "
        "(measured 8 to 64); runs of your own narrow it (windtunnel calibrate --advise FILE)");
}

TEST_CASE("a stack measured on other GPUs is an extrapolation") {
  ScenarioTraits other = traits(16);
  other.device_family = "v100";
  move_value(other, EvidenceAxis::gpu, "peak");
  const Interval interval = interval_from({{even_regime()}, unseen}, other, Seconds{10}, 0);
  CHECK(interval.basis == IntervalBasis::extrapolated);
  CHECK(interval.reason == "v100 GPUs, measured a100 (peak rate 1000, measured 312)");
}

TEST_CASE("every set counts alike among those of which nothing was measured") {
  CHECK(UnseenErrors{}.bounds("s", 0) == std::pair<double, double>{0, 0});
  CHECK(unseen.bounds("s", 0) == std::pair<double, double>{-0.4, 0.4});
  // 0.9 (19 + 1) = 18 of 19 sets: eighteen of one run, of 0.01 to 0.18, and one of ten runs, of which none is needed.
  UnseenErrors errors;
  for (int i = 1; i <= 18; ++i) errors.sets[std::to_string(i)] = {{}, {i / 100.0}};
  errors.sets["slow"] = {{}, std::vector<double>(10, 0.9)};
  CHECK(errors.bounds("s", 0) == std::pair<double, double>{0, 0.18});
  // Two tenths of the last set make up for two tenths less of the others: those of -0.01 are nearer than 0.9.
  errors.sets["slow"].residuals = {-0.01, -0.01, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9};
  errors.sets["18"].residuals = {0.18, 0.18, 0.18, 0.18, 0.7};
  CHECK(errors.bounds("s", 0) == std::pair<double, double>{-0.01, 0.18});
  // Fewer than nine sets: the extremes, times 1.5.
  CHECK(UnseenErrors{"m", {{"one", {{}, {-0.2, 0.1}}}}}.bounds("s", 0).first ==
        doctest::Approx(-0.3));
}

TEST_CASE("a stack that no set ran is judged by those for which another's profile stood in") {
  UnseenErrors errors;
  for (int i = 1; i <= 18; ++i) errors.sets["profiled" + std::to_string(i)] = {{"t"}, {i / 100.0}};
  errors.sets["dense"] = {{"d"}, {0.4}};
  errors.sets["experts"] = {{"e"}, {-0.7}, {}, true};
  errors.profiles = {"t", "never run"};
  // 19 sets each, 0.9 * 20 = 18 wanted: 9.5 of the stand-in, half of it with the other sign, and 9.5 / 18 of each of the others.
  CHECK(errors.bounds("mine", 0) == std::pair<double, double>{-0.4, 0.4});
  CHECK(errors.bounds("mine", 0, true).first == doctest::Approx(-0.7));
  CHECK(errors.bounds("mine", 0, true).second == doctest::Approx(0.7));
  // Five stand-ins show the sign: 0.9 * 24 = 21.6 of 23 sets are wanted, 5 * 23 / 6 = 19.2 of them, and 12 of the 18 others.
  UnseenErrors five = errors;
  for (int i = 1; i <= 4; ++i) five.sets["dense" + std::to_string(i)] = {{"d"}, {0.4}};
  CHECK(five.bounds("mine", 0) == std::pair<double, double>{0, 0.4});
  CHECK(five.bounds("mine", 0, true) == errors.bounds("mine", 0, true));
  // A profile of one's own under the name of a stand-in is not its profile.
  CHECK(errors.bounds("d", 0) == errors.bounds("mine", 0));
  // Stand-ins say nothing of a stack with a profile, nor of a fitted one: 0.9 * 19 = 17.1 of 18.
  CHECK(errors.bounds("t", 0).second == doctest::Approx(0.18));
  CHECK(errors.bounds("never run", 0).second == doctest::Approx(0.18));
  CHECK(errors.bounds(std::nullopt, 0).second == doctest::Approx(0.18));
}

TEST_CASE("each set that ran the stack counts as much as all others together") {
  // 18.9 = 0.9 * 21 of 20 sets are wanted: 20 / 3 of each of the two that ran it, 0.01 and 0.02, and of the 18 others, which count
  // 20 / 3 / 18 = 0.37 each, (18.9 - 13.33) / 0.37 = 15.03, so 16.
  UnseenErrors errors;
  for (int i = 1; i <= 18; ++i)
    errors.sets["other" + std::to_string(i)] = {{"t"}, {0.02 + i / 100.0}};
  errors.sets["one"] = {{"s"}, {0.01}};
  errors.sets["two"] = {{"s", "t"}, {0.02}};
  CHECK(errors.bounds("s", 0).second == doctest::Approx(0.18));
  CHECK(errors.bounds("nobody's", 0).second == doctest::Approx(0.19));  // 19 of 20 that count alike
  errors.sets["one"].residuals = errors.sets["two"].residuals = {0.5};
  CHECK(errors.bounds("s", 0).second == doctest::Approx(0.5));
  CHECK(errors.bounds("nobody's", 0).second == doctest::Approx(0.5));
  errors.sets["two"] = {{"t"}, {0.03}};
  CHECK(errors.bounds("nobody's", 0).second == doctest::Approx(0.2));
}

TEST_CASE("a stack that nobody measured is as sure as left-out sets were predicted") {
  ScenarioTraits other = traits(16);
  other.software = "new";
  move_value(other, EvidenceAxis::stack, "launch");
  const Interval interval = interval_from({{even_regime()}, unseen}, other, Seconds{10}, 0);
  CHECK(interval.basis == IntervalBasis::unprofiled);
  CHECK(low_log(interval) == doctest::Approx(-0.4));
  CHECK(high_log(interval) == doctest::Approx(0.4));
}

TEST_CASE(
    "other stacks on the same GPUs make a stack that nobody measured neither surer nor less sure") {
  ScenarioTraits other = traits(16);
  move_value(other, EvidenceAxis::stack, "launch");
  EvidenceRegime wide = even_regime();
  for (double& residual : wide.residuals) residual *= 4;
  CHECK(high_log(interval_from({{wide}, unseen}, other, Seconds{10}, 0)) == doctest::Approx(0.4));
  CHECK(high_log(interval_from({{wide}, {}}, other, Seconds{10}, 0)) == doctest::Approx(0.64));
}

TEST_CASE(
    "each of stack, GPU and cluster that nobody measured is named, and a job widens by half") {
  ScenarioTraits other = traits(16);
  other.software = "mine";
  move_value(other, EvidenceAxis::stack, "launch");
  other.device_family = "h100";
  move_value(other, EvidenceAxis::gpu, "peak");
  move_value(other, EvidenceAxis::cluster, "nics");
  const Interval interval = interval_from({{even_regime()}, unseen}, other, Seconds{10}, 0);
  CHECK(high_log(interval) == doctest::Approx(0.4));
  CHECK(
      interval.reason ==
      "no measured runs of software mine (the nearest stack, s, differs in 1 value: launches 1000, "
      "measured 3); h100 GPUs, measured a100 (peak rate 1000, measured 312); platform p unlike it "
      "was measured (NICs 1000, measured 4)");
  CHECK(interval_warning(interval) ==
        "the prediction interval is a guess: no comparable run that Windtunnel was fitted to had "
        "software mine "
        "(none of its runs was measured), h100 GPUs (measured a100) or platform p with NICs 1000 "
        "(measured 4); runs of your own narrow it (windtunnel calibrate --advise FILE)");
  const Interval larger = interval_from({{even_regime()}, unseen}, traits(128), Seconds{10}, 0);
  CHECK(high_log(larger) == doctest::Approx(1.5 * 0.16));
}

TEST_CASE("sets that ran a stack are cited though nothing was fitted on them") {
  ScenarioTraits other = traits(16);
  other.software = "mine";
  move_value(other, EvidenceAxis::stack, "launch");
  // ln(measured / predicted) of 0.1 and -0.1: predictions 9.5 % short and 10.5 % long, 10.0 % off.
  UnseenErrors left_out{"m", {{"runs", {{"mine"}, {0.1, -0.1}}}, {"others", {{"theirs"}, {0.4}}}}};
  const Interval interval = interval_from({{even_regime()}, left_out}, other, Seconds{10}, 0);
  CHECK(interval.reason ==
        "software mine has no fitted runs, and predictions without a fit were 10.0 % off on "
        "average in runs (2 runs "
        "in runs "
        "10.0 %; the nearest stack, s, differs in 1 value: launches 1000, measured 3)");
  CHECK(interval.basis == IntervalBasis::extrapolated);
  // A set's own errors are no evidence while it is scored itself.
  left_out.sets.erase("runs");
  CHECK(interval_from({{even_regime()}, left_out}, other, Seconds{10}, 0).basis ==
        IntervalBasis::unprofiled);
}

TEST_CASE("GPUs and a cluster measured with another stack are no news") {
  ScenarioTraits other = traits(16);
  move_value(other, EvidenceAxis::stack, "launch");
  EvidenceRegime elsewhere = even_regime();
  elsewhere.values[1].numbers["peak"] = {125, 125};
  const Interval interval =
      interval_from({{elsewhere, even_regime()}, unseen}, other, Seconds{10}, 0);
  CHECK(interval.reason ==
        "software s was not measured with these values (the nearest stack, s, differs in 1 value: "
        "launches 1000, measured 3)");
}

TEST_CASE(
    "names decide nothing: a renamed copy is measured, an original with another number is not") {
  ScenarioTraits renamed = traits(16);
  renamed.software = renamed.device_family = renamed.platform = "renamed";
  CHECK(interval_from({{even_regime()}, unseen}, renamed, Seconds{10}, 0).basis ==
        IntervalBasis::measured);
  ScenarioTraits changed = traits(16);
  move_value(changed, EvidenceAxis::cluster, "nics");
  CHECK(interval_from({{even_regime()}, unseen}, changed, Seconds{10}, 0).basis ==
        IntervalBasis::extrapolated);
}

TEST_CASE(
    "of two stacks that this job cannot distinguish the likest, then the namesake, is taken") {
  const auto with_word = [](EvidenceRegime regime, const char* software, const char* word) {
    regime.software = software;
    regime.values[0].habits["send"] = {word};
    return regime;
  };
  const std::vector<EvidenceRegime> regimes{with_word(even_regime(), "a", "eager"),
                                            with_word(even_regime(), "b", "blocking"),
                                            with_word(even_regime(), "c", "blocking")};
  const auto speaker = [&](const char* name, const char* word) {
    ScenarioTraits scenario = traits(16);
    scenario.software = name;
    scenario.values[0].habits["send"] = {"send", false, word};
    std::vector<EvidenceRegime> named = regimes;
    for (EvidenceRegime& regime : named) regime.sets = {regime.software};
    return interval_from({named, unseen}, scenario, Seconds{10}, 0).reason;
  };
  CHECK(speaker("mine", "eager") == "39 held-out runs of a");
  CHECK(speaker("c", "blocking") == "39 held-out runs of c");
  CHECK(speaker("c", "eager") == "39 held-out runs of a");
}

TEST_CASE("a library without residuals gives no interval, one with them writes it to the report") {
  const Library shipped{source_dir()};
  const Scenario scenario =
      read_scenario(shipped.root / "scenarios" / "gpt3-175b-512xa100.json", shipped);
  const TemporaryFolder folder;
  const Library library{folder.path()};
  Report report;
  report.iteration_time = Seconds{10};
  add_interval(scenario, library, report);
  CHECK_FALSE(report.iteration_time_interval);
  CHECK(report.assumptions.empty());

  write_file_atomically(library.root / "validation" / "residuals.json",
                        evidence_json({{even_regime()}, unseen}));
  add_interval(scenario, library, report);
  REQUIRE(report.iteration_time_interval);
  CHECK(report.iteration_time_interval->second > Seconds{11.5});
  REQUIRE(report.assumptions.size() == 1);
  CHECK(report.assumptions[0].evidence == Evidence::assumed);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("platform selene-a100") != std::string::npos);
}

/// Report of a shipped scenario after some changes, with the shipped residuals.
using Overrides = std::vector<std::pair<std::string, std::string>>;
Report report_with(const Overrides& overrides) {
  const Library shipped{source_dir()};
  const Scenario scenario =
      read_scenario(shipped.root / "scenarios" / "gpt3-175b-512xa100.json", shipped, {overrides});
  Report report;
  report.iteration_time = Seconds{10};
  add_interval(scenario, shipped, report);
  return report;
}

const std::string node = "/platform/node_types/0";

TEST_CASE("a profile of one's own does not hide that its GPUs were never measured") {
  Overrides overrides{{node + "/device/name", "h100-sxm"},
                      {node + "/device/peak/fp16", "989 TFLOPS"},
                      {node + "/device/memory/bandwidth", "3350 GB/s"}};
  const Report with_known_stack = report_with(overrides);
  overrides.insert(overrides.end(),
                   {{"/software/name", "ours"}, {"/software/launch/kernel", "9 ms"}});
  const Report report = report_with(overrides);
  REQUIRE(report.warnings.size() == 1);
  CAPTURE(report.warnings[0]);
  CHECK(report.warnings[0].find("software ours (none of its runs was measured)") !=
        std::string::npos);
  CHECK(report.warnings[0].find("h100 GPUs (measured a100") != std::string::npos);
  const auto [low, high] = *report.iteration_time_interval;
  CHECK(low <= with_known_stack.iteration_time_interval->first);
  CHECK(high >= with_known_stack.iteration_time_interval->second);
}

/// A change, and what the report says left the measured range.
struct Moved {
  std::string pointer, value, said;
};

TEST_CASE("each number and habit that is moved away from what was measured is named") {
  const std::string links = node + "/interconnect";
  const std::vector<Moved> all{
      {node + "/device/peak/fp16", "2500 TFLOPS", "peak rate 2.50 PFLOP/s (measured 312 TFLOP/s"},
      {node + "/device/memory/bandwidth", "25 GB/s", "memory bandwidth 25.0 GB/s"},
      {node + "/device/gemm/peak_fraction", "0.95", "attained share of the peak 0.95"},
      {node + "/device/kernel_overhead", "40 us", "overhead of a kernel 40.0 us"},
      {node + "/compute_efficiency", "1.1", "speed of this cluster's GPUs 1.1 (measured 1"},
      {links + "/saturated_bandwidth", "25 GB/s", "in-node bandwidth 23"},
      {links + "/half_size", "1 GiB", "in-node bandwidth"},
      {links + "/point_to_point", "8 GB/s", "bandwidth from GPU to GPU 8.00 GB/s"},
      {node + "/nics", "1", "NICs per node 1 (measured 8"},
      {node + "/nic_rate", "400 Gbps", "attained NIC rate 42.5 GB/s (measured 21.2 GB/s"},
      {node + "/nic_efficiency", "0.5", "attained NIC rate 12.5 GB/s"},
      {"/platform/fabric/latency", "1 ms", "latency between nodes 1.00 ms"},
      {"/software/launch/kernel", "250 us", "launching a kernel 250 us (measured 25.0 us"},
      {"/software/iteration_overhead", "1 s", "overhead of an iteration 1.000 s"},
      {"/software/overlap_backward_tensor_collectives", "false",
       "hidden backward tensor collectives no (measured yes"},
      {"/software/fused_kernels", "false", "fused kernels no (measured yes"},
      {"/parallel/pipeline_send", "eager", "pipeline_send eager (measured blocking_pairs"},
      {"/parallel/gradient_ring", "hierarchical", "gradient_ring hierarchical (measured flat"}};
  for (const Moved& moved : all) {
    const Report report = report_with({{moved.pointer, moved.value}});
    CAPTURE(moved.pointer);
    REQUIRE(report.warnings.size() == 1);
    CAPTURE(report.warnings[0]);
    CHECK(report.warnings[0].find(moved.said) != std::string::npos);
    CHECK(report.iteration_time_interval->second > report_with({}).iteration_time_interval->second);
  }
}

TEST_CASE("names, what the job does not use, and less than the tolerance change no interval") {
  for (const Overrides& overrides :
       {Overrides{
            {"/software/name", "ours"}, {node + "/device/name", "b100"}, {"/platform/name", "q"}},
        Overrides{{node + "/device/peak/fp32", "1 TFLOPS"}},
        Overrides{{node + "/device/collective_multiprocessors", "54"}},
        Overrides{{node + "/device/memory/bandwidth", "2 TB/s"}},
        Overrides{{node + "/nic_efficiency", "0.8"}}}) {
    const Report report = report_with(overrides);
    CAPTURE(overrides.front().first);
    CHECK(report.warnings.empty());
    CHECK(report.iteration_time_interval == report_with({}).iteration_time_interval);
  }
}

TEST_CASE("files of one's own and inline objects are compared as --set is") {
  const Library shipped{source_dir()};
  const TemporaryFolder folder;
  JsonValue resolved =
      read_scenario(shipped.root / "scenarios" / "gpt3-175b-512xa100.json", shipped).resolved;
  const auto warnings = [&](JsonValue scenario) {
    Report report;
    report.iteration_time = Seconds{10};
    add_interval(read_scenario(std::move(scenario), folder.path(), shipped), shipped, report);
    return report.warnings;
  };
  CHECK(warnings(resolved).empty());  // all inline
  const std::string cluster = pretty_text(*resolved.find("platform"));
  folder.write("ours.json", cluster);
  set_at(resolved, "/platform", JsonValue(std::string("./ours.json")));
  CHECK(warnings(resolved).empty());
  JsonValue changed = resolved;
  set_at(changed, "/platform",
         *read_scenario(std::move(resolved), folder.path(), shipped).resolved.find("platform"));
  set_at(changed, "/platform/node_types/0/device/peak/fp16", JsonValue(std::string("2500 TFLOPS")));
  folder.write("base.json", pretty_text(changed));
  const Scenario extended = read_scenario(
      folder.write("ours-again.json", R"({"extends": "base.json", "version": 1})"), shipped);
  Report report;
  report.iteration_time = Seconds{10};
  add_interval(extended, shipped, report);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("peak rate 2.50 PFLOP/s") != std::string::npos);
}

TEST_CASE("every run behind the shipped residuals lies within what they were measured on") {
  const Library shipped{source_dir()};
  const MeasuredErrors errors = read_evidence(shipped.root / "validation" / residuals_file);
  std::set<std::string> sets;
  for (const EvidenceRegime& regime : errors.regimes)
    sets.insert(regime.sets.begin(), regime.sets.end());
  for (const fs::path& file :
       find_measurement_sets({sets.begin(), sets.end()}, shipped.root / "validation")) {
    const MeasurementSet set = read_measurement_set(file);
    for (const MeasurementPoint& point : set.points) {
      if (!why_not_scored(set, point).empty()) continue;
      const Scenario scenario = read_scenario(scenario_of(set, point), set.folder, shipped);
      const Interval interval = interval_from(errors, traits_of(scenario), Seconds{10}, 0);
      CAPTURE(set.name);
      CAPTURE(point.id);
      CAPTURE(interval.reason);  // not within: tools/residuals.sh writes the residuals again
      CHECK(interval.basis == IntervalBasis::measured);
    }
  }
}

}  // namespace
}  // namespace windtunnel
