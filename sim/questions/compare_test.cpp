#include "questions/compare.hpp"

#include <doctest/doctest.h>

#include "core/testing.hpp"
#include "report/report_json.hpp"
#include "scenario/corpus_fixtures.hpp"

namespace windtunnel {
namespace {

constexpr const char* plain = R"({"version": 1, "model": "tiny", "platform": "boxes",
  "training": {"global_batch": 64, "micro_batch": 1, "recompute": "full"},
  "parallel": {"tensor": 2, "pipeline": 2, "data": 2}})";

std::string lines_of(const std::vector<InputDifference>& differences) {
  std::string text;
  for (const InputDifference& difference : differences) {
    text += difference.pointer + ":";
    for (const std::string& value : difference.values) text += " " + value;
    text += "\n";
  }
  return text;
}

CompareInput input(const std::filesystem::path& file, const ReadOptions& options = {}) {
  return read_compare_input(file, test_library(), options);
}

std::string differences_between(const std::filesystem::path& file, const ReadOptions& options) {
  const CompareInput a = input(file), b = input(file, options);
  return lines_of(input_differences(
      {&std::get<Scenario>(a.content).resolved, &std::get<Scenario>(b.content).resolved}));
}

TEST_CASE("inputs that differ are named with both values, defaults included") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  CHECK(differences_between(file, {}) == "");
  CHECK(differences_between(file, {{{"/parallel/tensor", "1"}, {"/name", "other"}}, 0}) ==
        "/parallel/tensor: 2 1\n");
  CHECK(differences_between(file, {{{"/training/recompute", "null"}}, 0}) ==
        "/training/recompute: full none\n");
  CHECK(differences_between(file, {{{"/platform/node_types/0/nic_rate", "50 Gbps"}}, 0}) ==
        "/platform/node_types/0/nic_rate: 100 Gbps 50 Gbps\n");
}

TEST_CASE("parts of other names differ in their names, not value by value") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  CHECK(differences_between(file, {{{"/platform", "pair"}}, 0}) ==
        "/platform: boxes pair\n/nodes: 1 2\n");
}

TEST_CASE("a run on a machine that is slower in all that differs is slower for certain") {
  const TemporaryFolder folder;
  const Library library{source_dir()};
  const auto file = folder.write("job.json", R"({"version": 1, "model": "llama3-8b",
    "platform": "dgx-h100", "nodes": 2, "training": {"global_batch": 64, "micro_batch": 1},
    "parallel": {"tensor": 2, "data": 8}, "software": "megatron-core-2024"})");
  const auto against = [&](const Overrides& overrides) {
    return compare({read_compare_input(file, library, {}),
                    read_compare_input(file, library, {overrides, 0})},
                   library)
        .orderings.at(1)
        .value();
  };
  const std::string nic = "/platform/node_types/0/nic_rate", fault = "/platform/faults",
                    half = R"([{"node": 0, "nic": 0, "share": 0.5}])";
  for (const auto& [pointer, value] : {std::pair(nic, std::string("100 Gbps")), {fault, half}}) {
    const Ordering ordering = against({{pointer, value}});
    CHECK(ordering.verdict == OrderVerdict::slower);
    CHECK(ordering.sure == 1);
    CHECK(ordering.interval.first < 1);
    CHECK(ordering.interval.second <= 1);
  }
  CHECK(against({{nic, "800 Gbps"}}).verdict == OrderVerdict::faster);
  // A lost card's messages go by others; to both sides; or in more than the machine.
  const std::string weak = R"([{"node": 0, "nic": 0, "share": 0.02}])",
                    lost = R"([{"node": 0, "nic": 0, "share": 0}])";
  CHECK_FALSE(compare({read_compare_input(file, library, {.overrides = {{fault, weak}}}),
                       read_compare_input(file, library, {.overrides = {{fault, lost}}})},
                      library)
                  .orderings.at(1)
                  ->is_certain);
  CHECK_FALSE(against({{nic, "100 Gbps"}, {"/platform/fabric/latency", "1 us"}}).is_certain);
  CHECK_FALSE(against({{nic, "100 Gbps"}, {"/training/micro_batch", "2"}}).is_certain);
}

TEST_CASE("a report and the scenario it came from compare as equal") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  const Comparison both = compare({input(file), input(file)}, test_library());
  const auto report = folder.write("report.json", pretty_text(both.runs[0].report));
  const CompareInput read = input(report);
  REQUIRE(std::holds_alternative<JsonValue>(read.content));
  const Comparison comparison = compare({read, input(file)}, test_library());
  CHECK(comparison.speedup(1) == 1.0);
  CHECK(comparison.differences.empty());
  CHECK(comparison.warnings ==
        std::vector<std::string>{"the runs are of one and the same scenario"});
  CHECK(without_wall_time(pretty_text(comparison.runs[0].report)) ==
        without_wall_time(pretty_text(comparison.runs[1].report)));
}

TEST_CASE("a run is as fast as itself, whatever predictions miss by") {
  const Library shipped{source_dir()};
  const auto read = [&](const Overrides& overrides) {
    return read_compare_input(source_dir() / "scenarios/gpt-39b-512xa100.json", shipped,
                              {.overrides = overrides});
  };
  const Overrides slower{{"/platform/node_types/0/nic_rate", "50 Gbps"}};
  const Comparison same = compare({read({}), read({})}, shipped),
                   other = compare({read({}), read(slower)}, shipped);
  CHECK(same.orderings.empty());
  REQUIRE(other.orderings.size() == 2);
  CHECK(other.orderings[1].has_value());
}

TEST_CASE("against a report the differences are those of the job") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  const Comparison both = compare({input(file), input(file)}, test_library());
  const auto report = folder.write("report.json", pretty_text(both.runs[0].report));
  const ReadOptions other{{{"/training/micro_batch", "2"}}, 0};
  const Comparison comparison = compare({input(report), input(file, other)}, test_library());
  CHECK(lines_of(comparison.differences) == "/micro_batch: 1 2\n/microbatches: 32 16\n");
  // A choice without a line of its own is seen in the plan.
  const ReadOptions chosen{{{"/training/recompute", "none"}}, 0};
  const Comparison planned = compare({input(report), input(file, chosen)}, test_library());
  REQUIRE(planned.differences.size() == 1);
  CHECK(planned.differences[0].pointer == "/plan");
  // Changes that the job of a report does not show are still noticed.
  const ReadOptions hidden{{{"/software/iteration_overhead", "3 ms"}}, 0};
  const Comparison unseen = compare({input(report), input(file, hidden)}, test_library());
  CHECK(unseen.differences.empty());
  CHECK(unseen.warnings ==
        std::vector<std::string>{
            "the scenarios differ in what reports do not hold; compare the files"});
}

TEST_CASE("a toggle runs without and with what stands at the pointer") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  const auto inputs = toggle_inputs(file, test_library(), {}, "training/recompute");
  REQUIRE(inputs.size() == 2);
  CHECK(inputs[0].label == "without /training/recompute");
  CHECK(inputs[1].label == "with /training/recompute");
  CHECK(std::get<Scenario>(inputs[0].content).plan.training.recompute == Recompute::none);
  CHECK(std::get<Scenario>(inputs[1].content).plan.training.recompute == Recompute::full);
  const Comparison comparison = compare(inputs, test_library());
  CHECK(comparison.speedup(1) < 1);  // recomputing costs a forward pass
  CHECK(lines_of(comparison.differences) == "/training/recompute: none full\n");
}

TEST_CASE("a toggle that changes nothing is refused") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  CHECK_THROWS_WITH_AS(toggle_inputs(file, test_library(), {}, "compression"),
                       doctest::Contains("--set '/compression={\"data_gradients\""), InputError);
  CHECK_THROWS_AS(toggle_inputs(file, test_library(), {}, "/training/precision"), InputError);
  CHECK_THROWS_AS(toggle_inputs(file, test_library(), {}, "/model"), InputError);
  CHECK_THROWS_WITH_AS(toggle_inputs(file, test_library(), {}, "/foo"),
                       doctest::Contains("unknown key \"foo\""), const InputError&);
}

TEST_CASE("break-evens are looked for on request, on both networks") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  const auto inputs = toggle_inputs(file, test_library(), {}, "/training/recompute");
  CHECK(compare(inputs, test_library()).break_evens.empty());
  const Comparison comparison = compare(inputs, test_library(), BreakEvens::simulated);
  REQUIRE(comparison.break_evens.size() == 2);
  CHECK(comparison.break_evens[0].part == NetworkPart::between_nodes);
  CHECK(comparison.break_evens[1].part == NetworkPart::inside_nodes);
  for (const BreakEven& found : comparison.break_evens)
    CHECK(found.outcome == BreakEven::Outcome::always_slower);
}

TEST_CASE("a run that fails is listed next to the others, and thrown when nothing else is left") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  CompareInput good = input(file), bad = input(file);
  bad.label = "bad.json";
  // Its placement has yet to be searched: simulating it breaks a contract.
  std::get<Scenario>(bad.content).placement_request = PlacementRequest::search;
  const Comparison comparison = compare({bad, good}, test_library());
  REQUIRE(comparison.runs.size() == 1);
  CHECK(comparison.runs[0].label == good.label);
  REQUIRE(comparison.failed.size() == 1);
  CHECK(comparison.failed[0].label == "bad.json");
  CHECK_FALSE(comparison.all_fit());
  CHECK(comparison_text(comparison).find("bad.json could not be simulated") != std::string::npos);
  CHECK_THROWS_AS(compare({bad, bad}, test_library()), std::runtime_error);
}

TEST_CASE("for a page each run keeps its timeline, its critical path and its scenario") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  const Comparison comparison =
      compare({input(file), input(file)}, test_library(), BreakEvens::none, RunDetail::page);
  for (const ComparedRun& run : comparison.runs) {
    REQUIRE(run.details);
    CHECK(run.details->timeline.find("\"columns\"") != std::string::npos);
    CHECK(run.details->scenario.find("plain.json") != std::string::npos);
    Seconds sum{};
    for (const JsonValue& step : run.details->why.find("path")->array())
      sum += Seconds{std::get<double>(step.find("time_s")->content)};
    CHECK(sum / run.iteration_time() == doctest::Approx(1).epsilon(1e-9));
  }
  CHECK_FALSE(compare({input(file), input(file)}, test_library()).runs[0].details);
}

TEST_CASE("an object that only one run has is named by its members") {
  const TemporaryFolder folder;
  const auto file = folder.write("plain.json", plain);
  const std::string block = R"({"data_gradients": {"codec": "int8"}})";
  CHECK(differences_between(file, {{{"/compression", block}}, 0}) ==
        "/compression: absent data_gradients codec int8\n");
}

}  // namespace
}  // namespace windtunnel
