#include "calibrate/advice.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/problem.hpp"
#include "core/testing.hpp"
#include "evidence/interval.hpp"
#include "report/terminal_text.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

TEST_CASE("a measured time narrows what is known of the constants that it depends on") {
  // By hand: C = diag(0.04, 0.09), g = (1, 0.5), noise 0.1. C g = (0.04, 0.045), g C g = 0.0625, so the sum is 0.0725.
  LinearBelief belief({0.2, 0.3});
  const std::vector<double> gradient{1, 0.5};
  CHECK(belief.variance(gradient) == doctest::Approx(0.0625));
  CHECK(belief.variance_after(gradient, gradient, 0.1) ==
        doctest::Approx(0.0625 - 0.0625 * 0.0625 / 0.0725));
  // The first constant alone: 0.04 - 0.04^2 / 0.0725
  CHECK(belief.variance_after({1, 0}, gradient, 0.1) == doctest::Approx(0.04 - 0.0016 / 0.0725));
  belief.measure(gradient, 0.1);
  CHECK(belief.spread(0) == doctest::Approx(std::sqrt(0.04 - 0.0016 / 0.0725)));
  CHECK(belief.spread(1) == doctest::Approx(std::sqrt(0.09 - 0.045 * 0.045 / 0.0725)));
  // Constants on which no time depends stay as they were.
  LinearBelief other({0.2, 0.3});
  other.measure({1, 0}, 0.1);
  CHECK(other.spread(1) == doctest::Approx(0.3));
}

const char* const plan = R"({"version": 1, "platform": "selene-a100", "nodes": 8,
    "software": "megatron-core-2024",
    "model": {"layers": 32, "hidden": 4096, "heads": 32, "sequence": 2048, "vocab": 51200},
    "training": {"global_batch": 256, "micro_batch": 1, "attention": "flash"},
    "parallel": {"tensor": 4, "pipeline": 4, "data": 4}})";

Advice advice_for(const TemporaryFolder& folder, std::vector<FitConstant> constants = {},
                  const std::vector<MeasurementSet>& sets = {}, Overrides overrides = {}) {
  folder.write("plan.json", plan);
  AdviceRequest request;
  request.file = folder.path() / "plan.json";
  request.constants = std::move(constants);
  request.overrides = std::move(overrides);
  return advise(request, sets, Library{source_dir()});
}

TEST_CASE("each advised run narrows the plan's interval, and fits on few nodes") {
  const TemporaryFolder folder;
  const Advice advice = advice_for(folder);
  REQUIRE(!advice.runs.empty());
  CHECK(advice.num_rows == 0);
  double width = advice.width;
  for (const AdvisedRun& run : advice.runs) {
    CHECK(run.width_after < width);
    CHECK(run.width_after >= advice.noise);
    CHECK(run.gpus <= 32);
    width = run.width_after;
  }
}

TEST_CASE("before a run is measured, the interval is the one that run states") {
  const TemporaryFolder folder;
  const Advice advice = advice_for(folder);
  const Library library{source_dir()};
  const Scenario scenario = read_scenario(folder.path() / "plan.json", library);
  Report report = simulate(scenario).report;
  add_interval(scenario, library, report);
  REQUIRE(report.iteration_time_interval);
  const auto [low, high] = *report.iteration_time_interval;
  CHECK(advice_text(advice, "plan.json")
            .find("90 % interval: " + detail::time_text(low, high) + " to " +
                  detail::time_text(high, high) + ", as run states it") != std::string::npos);
  CHECK(advice_text(advice, "plan.json").find("    emax (peak_fraction)  ") != std::string::npos);
}

TEST_CASE("a constant of nodes is advised on nodes that it matters on") {
  const TemporaryFolder folder;
  const Advice advice = advice_for(folder, {parse_fit_constant("nic_efficiency")}, {},
                                   {{"/platform/node_types/0/nic_rate", "10 Gbps"}});
  REQUIRE(!advice.runs.empty());
  CHECK(advice.runs.front().gpus > 8);  // inside one node no NIC is used
}

TEST_CASE("an advised run keeps what was set for the plan, but for what it changes") {
  const TemporaryFolder folder;
  const Advice advice =
      advice_for(folder, {}, {},
                 {{"/model/hidden", "8192"}, {"/parallel/tensor", "8"}, {"/parallel/data", "2"}});
  REQUIRE(!advice.runs.empty());
  for (const AdvisedRun& run : advice.runs) {
    const auto given = [&](const std::string& pointer) {
      return std::count_if(run.overrides.begin(), run.overrides.end(),
                           [&](const auto& each) { return each.first == pointer; });
    };
    CHECK(run.overrides.front() == Overrides::value_type("/model/hidden", "8192"));
    CHECK(given("/parallel/tensor") == 1);
  }
}

TEST_CASE("a plan of uneven stages is advised on other numbers of stages") {
  const TemporaryFolder folder;
  const Advice even = advice_for(folder);
  const Advice uneven = advice_for(folder, {}, {}, {{"/parallel/stage_layers", "[9, 8, 8, 7]"}});
  CHECK(uneven.num_candidates == even.num_candidates);
  const auto count = [](const Advice& advice) {
    const Overrides& set = advice.runs.at(0).overrides;
    return std::count_if(set.begin(), set.end(),
                         [](const auto& each) { return each.first == "/parallel/stage_layers"; });
  };
  CHECK(count(even) == 0);
  CHECK(count(uneven) == 1);
}

TEST_CASE("experts are split over as many ranks as a candidate has") {
  const TemporaryFolder folder;
  const Overrides experts{{"/model/moe", R"({"experts": 8, "top_k": 2, "ffn_hidden": 4096})"},
                          {"/parallel/expert", "8"},
                          {"/parallel/sequence_parallel", "true"}};
  const Advice split = advice_for(folder, {}, {}, experts);
  CHECK(split.num_refused == 0);
  Overrides whole = experts;
  whole[1].second = "4";
  whole.emplace_back("/parallel/expert_tensor", "4");
  CHECK(advice_for(folder, {}, {}, whole).num_refused == 0);
}

TEST_CASE("no run is advised that the stack does not support") {
  const TemporaryFolder folder;
  // Tensor and pipeline degrees are the plan's own, or those that the profile lists; with tensor 4 and 2 the plan fits, too.
  const Overrides supports{{"/software/supports",
                            R"({"tensor": [2], "pipeline": [1, 4], "source": "datasheet: none"})"}};
  const Advice all = advice_for(folder), few = advice_for(folder, {}, {}, supports);
  CHECK(few.num_candidates < all.num_candidates);
  REQUIRE(!few.runs.empty());
  for (const AdvisedRun& run : few.runs)
    for (const auto& [pointer, value] : run.overrides) {
      if (pointer == "/parallel/tensor") CHECK((value == "2" || value == "4"));
      if (pointer == "/parallel/pipeline") CHECK((value == "1" || value == "4"));
    }
}

TEST_CASE("where the layers of a stage fit on no few nodes, fewer of them are advised") {
  const TemporaryFolder folder;
  // A GPU has an eighth of 128 * 12 * 8192^2 weights, 12.9 G: 26 GB, and gradients of as much or more.
  const Advice advice = advice_for(folder, {}, {},
                                   {{"/model/layers", "128"},
                                    {"/model/hidden", "8192"},
                                    {"/model/heads", "64"},
                                    {"/parallel/tensor", "8"},
                                    {"/parallel/pipeline", "1"},
                                    {"/parallel/data", "8"}});
  REQUIRE(!advice.runs.empty());
  for (const AdvisedRun& run : advice.runs) {
    const auto given = [&](const char* pointer) {  // the last one holds
      const auto found = std::find_if(run.overrides.rbegin(), run.overrides.rend(),
                                      [&](const auto& each) { return each.first == pointer; });
      REQUIRE(found != run.overrides.rend());
      return std::stoi(found->second);
    };
    CHECK(given("/model/layers") / given("/parallel/pipeline") < 128);
  }
}

TEST_CASE("candidates and rows that cannot be simulated are said") {
  const TemporaryFolder folder;
  const Advice advice = advice_for(folder, {}, {}, {{"/model/heads", "4"}});
  CHECK(advice.num_refused > 0);
  CHECK(advice.why_refused.find("heads") != std::string::npos);
  const std::string text = advice_text(advice, "plan.json");
  CHECK(text.find(std::to_string(advice.num_refused) + " more cannot be simulated; the first: " +
                  advice.why_refused) != std::string::npos);
  CHECK(advice_json(advice).find("\"refused\": " + std::to_string(advice.num_refused)) !=
        std::string::npos);
}

TEST_CASE("rows that are measured already leave less to be asked") {
  const TemporaryFolder folder;
  folder.write("set.json", std::string(R"({"schema": "windtunnel/measurements-v1", "name": "ours",
      "kind": "iteration", "source": {"citation": "made up", "licence": "none"},
      "points": [{"id": "a", "scenario": )") +
                               plan + R"(, "measured": {"iteration_time_s": 10}}]})");
  const MeasurementSet set = read_measurement_set(folder.path() / "set.json");
  const Advice before = advice_for(folder), after = advice_for(folder, {}, {set});
  CHECK(after.num_rows == 1);
  CHECK(after.width < before.width);
}

TEST_CASE("a measured time moves what it depends on as far as it is trusted") {
  // As above: C g = (0.04, 0.045) and the sum is 0.0725; ln(measured / predicted) is 0.145.
  LinearBelief belief({0.2, 0.3});
  belief.measure({1, 0.5}, 0.1, 0.145);
  CHECK(belief.expected({1, 0}) == doctest::Approx(0.08));
  CHECK(belief.expected({0, 1}) == doctest::Approx(0.09));
}

TEST_CASE("runs decide between two plans, and rows redo the decision") {
  const TemporaryFolder folder;
  folder.write("plan.json", plan);
  std::string other = plan;
  other.replace(other.find("\"tensor\": 4, \"pipeline\": 4"), 26, "\"tensor\": 8, \"pipeline\": 2");
  folder.write("other.json", other);
  AdviceRequest request;
  request.file = folder.path() / "plan.json";
  request.against = folder.path() / "other.json";
  const Library library{source_dir()};
  const Advice advice = advise(request, {}, library);
  REQUIRE(advice.decision);
  CHECK(advice.decision->sure > 0.5);
  CHECK(advice.decision->width >= std::sqrt(2.0) * advice.noise);
  REQUIRE(!advice.runs.empty());
  for (const AdvisedRun& run : advice.runs) CHECK(run.sure_after > advice.decision->sure);
  const std::string text = advice_text(advice, "plan.json", "other.json");
  CHECK(text.find(" than other.json, which is right in ") != std::string::npos);
  CHECK(advice_json(advice).find("\"decision\": {") != std::string::npos);

  // The plan itself measured a third slower than predicted: its time moves part of the way, and so does the decision.
  const double slow = advice.iteration_time / Seconds{1} * 1.33;
  folder.write("set.json", std::string(R"({"schema": "windtunnel/measurements-v1", "name": "ours",
      "kind": "iteration", "source": {"citation": "made up", "licence": "none"},
      "points": [{"id": "a", "scenario": )") +
                               plan + R"(, "measured": {"iteration_time_s": )" +
                               std::to_string(slow) + "}}]}");
  const Advice after = advise(request, {read_measurement_set(folder.path() / "set.json")}, library);
  CHECK(after.decision->width < advice.decision->width);
  CHECK(after.iteration_time > advice.iteration_time);
  CHECK(after.iteration_time < advice.iteration_time * 1.33);
  CHECK(after.decision->gain != advice.decision->gain);

  request.overrides = {{"/software/launch/kernel", "100 us"}};
  CHECK_NOTHROW(advise(request, {}, library));  // of both
  folder.write("other.json", other.replace(other.find("selene-a100"), 11, "dgx-h100"));
  CHECK_THROWS_AS(advise(request, {}, library), InputError);
}

TEST_CASE("a constant that the plan has no value of is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(advice_for(folder, {parse_fit_constant("/software/nothing")}), InputError);
}

}  // namespace
}  // namespace windtunnel
