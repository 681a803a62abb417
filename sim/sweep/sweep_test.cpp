#include "sweep/sweep.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/testing.hpp"
#include "report/report_json.hpp"
#include "report/terminal_text.hpp"
#include "simulate/simulate.hpp"
#include "sweep/results.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep_fixtures.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel {
namespace {

using testing::problem_of;
using testing::SweepFixture;

TEST_CASE("a row says what run --set of the same values says") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2], "/model/layers": [8, 16]}})");
  const auto row = parse_row(RowMaker(sweep, {}).row(3));
  REQUIRE(row);
  const Scenario scenario = read_scenario(fixture.folder.path() / "scenario.json", fixture.library,
                                          {{{"/nodes", "2"}, {"/model/layers", "16"}}, 0});
  CHECK(row->content.find("id")->string() == scenario.hash);
  const Report alone = simulate(scenario).report;
  CHECK(std::get<double>(row->content.find("iteration_time_s")->content) ==
        alone.iteration_time / Seconds{1});
  CHECK(std::get<std::int64_t>(row->content.find("gpus")->content) == 16);
}

double number_in(const JsonValue& row, const char* key) {
  const JsonValue* value = row.find(key);
  REQUIRE(value != nullptr);
  return std::get<double>(value->content);
}

TEST_CASE("a point may be simulated with another plan, which its row names") {
  const SweepFixture fixture;
  const auto by_pipeline = [](Scenario scenario) {
    CHECK(scenario.search.objective == Objective::tokens_per_second);
    CHECK(scenario.search.values.at("pipeline") == std::vector{4});
    scenario.plan.training.micro_batch = 7;  // as a search would, for the name alone
    return scenario;
  };
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}, "plan": "best"})",
                                    {{"/search", R"({"pipeline": [4]})"}}, by_pipeline);
  const auto row = parse_row(RowMaker(sweep, {}).row(1));
  REQUIRE(row);
  REQUIRE(row->ok);
  CHECK(row->content.find("plan")->string().starts_with("tensor 2 × pipeline 2 × data 4, 1f1b, "));
  CHECK(row->content.find("plan")->string().find(" of 7 samples, ") != std::string::npos);
  CHECK(
      contains(results_csv({}, sweep.points().columns(), sweep.asked_figures()), ",error,plan\n"));
  const Sweep as_given = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})");
  CHECK(parse_row(RowMaker(as_given, {}).row(1))->content.find("plan") == nullptr);
  CHECK(sweep.hash() != as_given.hash());
}

TEST_CASE("a point whose plan is searched needs no legal plan of its own") {
  const testing::SweepFixture fixture;
  const std::string matrix = R"({"matrix": {"/parallel/pipeline": [16]})";
  CHECK_THROWS_AS(fixture.sweep(matrix + "}").scenario(0), InputError);
  const Scenario read = fixture.sweep(matrix + R"(, "plan": "best"})").scenario(0);
  CHECK(read.plan.parallel.pipeline != 16);
  // Problems that do not concern the plan are still reported.
  CHECK_THROWS_AS(
      fixture.sweep(R"({"matrix": {"/model/layers": ["many"]}, "plan": "best"})").scenario(0),
      InputError);
}

TEST_CASE("a job with the best plan changes no plan of a sweep's rows") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/parallel/pipeline": [16, 32]}})",
                                    {{"/job", R"({"steps": 1000, "plan": "best"})"}});
  for (const std::size_t point : {std::size_t{0}, std::size_t{1}}) {
    CHECK_THROWS_AS(sweep.scenario(point), InputError);
    const auto row = parse_row(RowMaker(sweep, {}).row(point));
    REQUIRE(row);
    CHECK_FALSE(row->ok);
    // 2 * 16 or 2 * 32 GPUs of the point's own degrees
    CHECK(sweep.job_scenario(point).plan.num_ranks() == (point == 0 ? 32 : 64));
  }
  const Sweep by_point =
      fixture.sweep(R"({"matrix": {"/job/plan": ["given", "best"], "/parallel/pipeline": [16]}})",
                    {{"/job", R"({"steps": 1000, "plan": "best"})"}});
  CHECK_THROWS_AS(by_point.job_scenario(0), InputError);
  CHECK_NOTHROW(by_point.job_scenario(1));
}

TEST_CASE("points that make the plan of their job the best one keep the search block") {
  const SweepFixture fixture;
  const auto searched = [&](const std::string& block, const char* job) {
    const Sweep sweep = fixture.sweep(block, {{"/search", R"({"pipeline": [4]})"}, {"/job", job}});
    return sweep.job_scenario(sweep.points().size() - 1).search.values.count("pipeline") == 1;
  };
  const char* const given = R"({"steps": 1000, "plan": "given"})";
  CHECK(searched(R"({"matrix": {"/job/plan": ["given", "best"]}})", given));
  CHECK(searched(R"({"matrix": {"/nodes": [1]}, "include": [{"/nodes": 2, "/job/plan": "best"}]})",
                 given));
  CHECK_FALSE(searched(R"({"matrix": {"/job/plan": ["given"]}})", given));
  const Sweep jobs = fixture.sweep(R"({"matrix": {"/job": [{"steps": 10, "plan": "best"}]}})",
                                   {{"/search", R"({"pipeline": [4]})"}});
  CHECK(jobs.job_scenario(0).search.values.count("pipeline") == 1);
}

TEST_CASE("a plan in place of one that is not legal is for as many GPUs") {
  const SweepFixture fixture;
  const auto ranks = [&](const std::string& parallel, const std::string& more = "") {
    return fixture
        .sweep(R"({"matrix": {"/parallel": [)" + parallel + "]" + more + R"(}, "plan": "best"})")
        .scenario(0)
        .plan.num_ranks();
  };
  // A tensor degree of 16 does not divide 8 heads.
  CHECK(ranks(R"({"tensor": 16, "pipeline": 2, "data": 2})") == 64);
  CHECK(ranks(R"({"tensor": 16})") == 16);
  CHECK(ranks(R"({"tensor": 16, "pipeline": 2, "data": 2})", R"(, "/nodes": [4])") == 32);
  // No degrees, none that leave a number of replicas which divides 64 samples, and one that is no degree.
  CHECK_THROWS_AS(ranks("{}", R"(, "/training/micro_batch": [65])"), InputError);
  CHECK_THROWS_AS(ranks(R"({"tensor": 16, "pipeline": 11})"), InputError);
  CHECK_THROWS_AS(ranks(R"({"tensor": 16, "data": 2.5})"), InputError);
}

TEST_CASE("money, energy and days of a point are worked out from its time") {
  const SweepFixture fixture;
  const std::string job =
      R"({"steps": 1000, "price": {"gpu_hour": 3},
          "power": {"computing": 400, "communicating": 400, "idle": 400, "node": 800, "pue": 1.5}})";
  const auto row_by = [&](const std::string& objective) {
    const Sweep sweep = fixture.sweep(
        R"({"matrix": {"/nodes": [2]}, "objective": ")" + objective + R"("})", {{"/job", job}});
    return parse_row(RowMaker(sweep, {}).row(0))->content;
  };
  const JsonValue cost = row_by("cost_per_token");
  const double time = number_in(cost, "iteration_time_s"),
               tokens = time * number_in(cost, "tokens_per_s");
  // 16 GPUs at 3 an hour
  CHECK(number_in(cost, "cost_per_token") == doctest::Approx(16 * 3 * time / 3600 / tokens));
  // 16 GPUs of 400 W whatever they do, 2 nodes of 800 W, half as much again for cooling
  CHECK(number_in(row_by("energy_per_token"), "energy_per_token") ==
        doctest::Approx((16 * 400 + 2 * 800) * 1.5 * time / tokens));
  CHECK(number_in(row_by("days"), "days") == doctest::Approx(1000 * time / 86400));
  CHECK(row_by("time").find("cost_per_token") == nullptr);
}

TEST_CASE("an objective without what it needs is the point's problem, with the pointer") {
  const SweepFixture fixture;
  const Sweep sweep =
      fixture.sweep(R"({"matrix": {"/nodes": [2]}, "objective": "cost_per_token"})");
  const auto row = parse_row(RowMaker(sweep, {}).row(0));
  CHECK(!row->ok);
  CHECK(contains(row->content.find("error")->string(),
                 "cost_per_token needs a job block at /sweep/objective"));
}

/// The figures of a row, by their keys in a report.
std::string figures_of(const JsonValue& object) {
  std::string text;
  for (const char* key :
       {"iteration_time_s", "samples_per_s", "tokens_per_s", "model_tflops_per_gpu", "mfu"})
    text += key + (" " + canonical_text(*object.find(key))) + "\n";
  return text;
}

TEST_CASE("a row of many microbatches says to the last digit what run of that point says") {
  const SweepFixture fixture;
  const Sweep sweep =
      fixture.sweep(R"({"matrix": {"/training/global_batch": [64, 32768], "/nodes": [1, 2]}})");
  const auto row = parse_row(RowMaker(sweep, {}).row(2));
  REQUIRE(row);
  REQUIRE(row->ok);
  const Scenario scenario =
      read_scenario(fixture.folder.path() / "scenario.json", fixture.library,
                    {{{"/training/global_batch", "32768"}, {"/nodes", "1"}}, 0});
  const Report alone = simulate(scenario).report;
  const JsonValue report = testing::json(to_json(alone));
  CHECK(figures_of(row->content) == figures_of(report));
  CHECK(std::get<std::int64_t>(row->content.find("memory_max_bytes")->content) ==
        std::llround(alone.memory.max_total / Bytes{1}));
  // The steady state of the 32,768 / data microbatches was simulated once and repeated, and comes out as if simulated one by one.
  REQUIRE(report.find("engine")->find("played_microbatches") != nullptr);
  CHECK(std::get<std::int64_t>(report.find("engine")->find("played_microbatches")->content) < 1000);
  SimulateOptions whole;
  whole.folding = Folding::never;
  const Report unfolded = simulate(scenario, whole).report;
  CHECK(testing::json(to_json(unfolded)).find("engine")->find("played_microbatches") == nullptr);
  CHECK(alone.iteration_time / unfolded.iteration_time ==
        doctest::Approx(1).epsilon(1e-9));  // rounding of 32,768 sums
}

TEST_CASE("a row is the same however often and in whatever order it is made") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/training/micro_batch": [1, 2, 4]}})");
  const RowMaker rows(sweep, {});
  const std::string first = rows.row(0);
  rows.row(2);
  CHECK(rows.row(0) == first);
}

TEST_CASE("a point that cannot be is a row with the reason, and an id of its own") {
  const SweepFixture fixture;
  // 64 samples do not divide by 2 replicas of 3 samples a microbatch, nor by 5.
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/training/micro_batch": [1, 3, 5]}})");
  const RowMaker rows(sweep, {});
  const auto three = parse_row(rows.row(1)), five = parse_row(rows.row(2));
  REQUIRE(three);
  CHECK_FALSE(three->ok);
  CHECK(three->content.find("failure")->string() == "bad_input");
  CHECK(contains(three->content.find("error")->string(), "global_batch"));
  CHECK(three->content.find("id")->string() != five->content.find("id")->string());
}

TEST_CASE("swept amounts need no source, and null takes a key away") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(
      R"({"matrix": {"/platform/node_types/0/nic_rate": ["50 Gbps"], "/parallel/tensor": [null, 4]}})");
  CHECK(sweep.scenario(1).plan.parallel.tensor == 4);
  CHECK(sweep.scenario(1).nodes[0].nic_rate == 50_Gbps);
}

TEST_CASE("neither do amounts in swept lists, and in objects without sources") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"points": [
    {"/platform/fabric/kind": "fat_tree", "/platform/fabric/nodes_per_switch": [1, 2],
     "/platform/fabric/taper": [1, 1]},
    {"/platform/fabric": {"kind": "fat_tree", "nodes_per_switch": [1, 2], "taper": [1, 1],
                          "latency": "10 us", "collective_latency": "5 us"}}]})");
  for (const std::size_t point : {0U, 1U}) {
    const Sources sources = sweep.scenario(point).platform.sources;
    REQUIRE(sources.count("fabric/nodes_per_switch") == 1);
    CHECK(sources.at("fabric/nodes_per_switch").text == "given on the command line");
  }
}

TEST_CASE("a value inside a swept one is set on top of it, whichever is written first") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(
      R"({"matrix": {"/platform/node_types/0/nics": [1, 8], "/platform": ["boxes", "pair"]},
          "include": [{"/platform/node_types/0/nics": 4, "/platform": "pair"}]})");
  const auto says = [&](std::size_t point, const char* platform, int nics) {
    const Scenario scenario = sweep.scenario(point);
    return scenario.platform.name == platform && scenario.platform.node_types[0].nics == nics;
  };
  CHECK(says(0, "boxes", 1));
  CHECK(says(1, "pair", 1));
  CHECK(says(2, "boxes", 8));
  CHECK(says(3, "pair", 8));
  CHECK(says(4, "pair", 4));
}

TEST_CASE("a --set that swept values replace is refused with what to write") {
  const SweepFixture fixture;
  const std::string platforms = R"({"matrix": {"/platform": ["boxes", "pair"], "/nodes": [1]}})";
  const auto refusal = [&](const char* pointer, const char* value) {
    return problem_of([&] { fixture.sweep(platforms, {{pointer, value}}); });
  };
  CHECK(contains(refusal("/platform/node_types/0/nics", "8"),
                 "the sweep replaces /platform, and with it --set /platform/node_types/0/nics"));
  CHECK(
      contains(refusal("/platform", "pair"), R"(write --set '/sweep/matrix/~1platform=["pair"]')"));
  CHECK(refusal("/training/recompute", "full") == "no problem");
  // The included point has the nodes of the file.
  CHECK(problem_of([&] {
          fixture.sweep(R"({"matrix": {"/nodes": [1]}, "include": [{"/training/micro_batch": 2}]})",
                        {{"/nodes", "2"}});
        }) == "no problem");
}

TEST_CASE("objects are swept, and shown as they are written") {
  const SweepFixture fixture;
  const Sweep sweep =
      fixture.sweep(R"({"matrix": {"/training/recompute_layers": [{"first": 1}, {"every": 1}]}})",
                    {{"/training/recompute", "full"}});
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < sweep.points().size(); ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  CHECK(contains(sweep_text(sweep, rows, "out"), R"( {"first":1} )"));
  CHECK(contains(results_csv(rows, sweep.points().columns()), R"(,"{""first"":1}",)"));
}

TEST_CASE("plans of points stand below the table, and what they have in common once") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}, "plan": "best"})", {},
                                    [](Scenario scenario) { return scenario; });
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < sweep.points().size(); ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  const std::string text = sweep_text(sweep, rows, "out");
  CHECK(contains(
      text, "\n  plan of point 0: tensor 2 × pipeline 2 × data 2, 32 microbatches of 1 sample\n"));
  CHECK(contains(
      text, "\n  plan of point 1: tensor 2 × pipeline 2 × data 4, 16 microbatches of 1 sample\n"));
  CHECK(contains(text, "\n  all plans: 1f1b, "));
}

TEST_CASE("points whose values make the same scenario are named") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(
      R"({"matrix": {"/name": ["a", "b", "c"], "/training/micro_batch": [1, 2]},
          "exclude": [{"/name": "c", "/training/micro_batch": 2}]})");
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < sweep.points().size(); ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  CHECK(same_scenarios(rows) == SameScenarios{{0, 2, 4}, {1, 3}});
  CHECK(same_text(sweep, rows) ==
        "5 points are 2 different scenarios\n"
        "  points 0, 2 and 4 differ in /name (\"a\", \"b\" and \"c\"), which changes nothing\n"
        "  points 1 and 3 differ in /name (\"a\" and \"b\"), which changes nothing");
  rows.by_point.erase(4);
  CHECK(
      contains(sweep_text(sweep, rows, "out"), "\nwarning: 4 points are 2 different scenarios\n"));
  CHECK(contains(points_text(sweep), "3 the same as another\n"));
  CHECK(contains(points_text(sweep), "4  /name=c  /training/micro_batch=1  = point 0\n"));
  CHECK(same_text(fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})"), {}).empty());
}

TEST_CASE("a swept file is relative to the scenario, and is part of the sweep's hash") {
  const SweepFixture fixture;
  const std::string block = R"({"matrix": {"/model": ["tiny", "mine.json"]}})";
  const std::string mine =
      R"({"layers": 4, "hidden": 64, "heads": 8, "sequence": 128, "vocab": 1000})";
  fixture.folder.write("mine.json", mine);
  const Sweep sweep = fixture.sweep(block);
  CHECK(sweep.scenario(1).model.layers == 4);
  CHECK(sweep.scenario(0).model.layers == 8);
  fixture.folder.write("mine.json", R"({"layers": 8)" + mine.substr(mine.find(", \"hidden")));
  CHECK(fixture.sweep(block).hash() != sweep.hash());
}

TEST_CASE("a file named inside a swept object or file is part of the sweep's hash") {
  const SweepFixture fixture;
  const std::string card = read_source(fixture.library.root / "platforms/devices/card.json")->text;
  const std::string boxes = read_source(fixture.library.root / "platforms/boxes.json")->text;
  const auto object = [&](const std::string& file) {
    std::string text = boxes;
    return text.replace(text.find("\"card\""), 6, "\"" + file + "\"");
  };
  for (const std::string& block : {R"({"matrix": {"/platform": [)" + object("./mine.json") + "]}}",
                                   std::string(R"({"matrix": {"/platform": ["boxes", "pair"],
                        "/platform/node_types/0/device": ["card", "./mine.json"]}})")}) {
    fixture.folder.write("mine.json", card);
    const std::string before = fixture.sweep(block).hash();
    CHECK(fixture.sweep(block).hash() == before);
    fixture.folder.write("mine.json",
                         "{\"multiprocessors\": 11" + card.substr(card.find(",\n  \"kernel")));
    CHECK(fixture.sweep(block).hash() != before);
  }
}

TEST_CASE("the residuals that give the intervals are part of the sweep's hash") {
  const SweepFixture fixture;
  const TemporaryFolder data;
  std::filesystem::copy(fixture.library.root, data.path() / "library",
                        std::filesystem::copy_options::recursive);
  const auto file = fixture.file(R"({"matrix": {"/nodes": [1, 2]}})");
  const auto hash = [&] { return Sweep(file, Library{data.path() / "library"}, {{}, 0}).hash(); };
  const std::string without = hash();
  data.write("library/validation/residuals.json", "{}");
  const std::string with = hash();
  data.write("library/validation/residuals.json", "{ }");
  CHECK(with != without);
  CHECK(hash() != with);
}

TEST_CASE("a problem that every point has is the file's, one that some have is theirs") {
  const SweepFixture fixture;
  CHECK(
      problem_of([&] {
        fixture.sweep(R"({"matrix": {"/training/micro_batch": [3, 5]}})").expect_a_readable_point();
      }) == "no problem");
  CHECK(contains(problem_of([&] {
                   fixture
                       .sweep(R"({"matrix": {"/training/attention": ["flush", "flash"],
                                  "/training/precision": ["fp17"]}})")
                       .expect_a_readable_point();
                 }),
                 "fp17"));
}

TEST_CASE("what is wrong with the sweep is reported with what is wrong elsewhere") {
  const SweepFixture fixture;
  const auto problems = [&](const std::string& block, const Overrides& overrides) {
    return problem_of([&] { fixture.sweep(block, overrides); });
  };
  for (const char* block : {R"({"list": [{"/nodes": 1}]})", R"({"points": []})",
                            R"({"points": [{"/nodes": 1}], "baseline": "none"})"}) {
    CAPTURE(block);
    const std::string said = problems(
        block, {{"/job/tokens", "1e9"}, {"/job/prices", "2"}, {"/training/precison", "1"}});
    CHECK(contains(said, "at /sweep"));
    CHECK(contains(said, "unknown key \"prices\" at /job"));
    CHECK(contains(said, "unknown key \"precison\" at /training"));
  }
  // Points may give what is missing, and degrees that go together.
  const std::string sweeps_alone =
      problems(R"({"list": [{"/nodes": 1}]})",
               {{"/model", "null"}, {"/training/global_batch", "63"}, {"/parallel/tensor", "3"}});
  CHECK(contains(sweeps_alone, "unknown key \"list\" at /sweep"));
  CHECK(!contains(sweeps_alone, "at /model"));
  CHECK(!contains(sweeps_alone, "at /parallel"));
  CHECK(!contains(sweeps_alone, "global_batch"));
}

TEST_CASE("a file without a sweep is told so, with what to write") {
  const SweepFixture fixture;
  CHECK(contains(problem_of([&] { fixture.sweep("null"); }), "has no sweep"));
  CHECK(contains(problem_of([&] { fixture.sweep(R"({"matrix": {"/nods": [1]}})"); }), "/nodes"));
}

TEST_CASE("another baseline asks for no new rows") {
  const SweepFixture fixture;
  const Sweep none = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})");
  const Sweep other =
      fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})", {{"/sweep/baseline", "1"}});
  CHECK(other.points().baseline() == 1);
  CHECK(none.hash() == other.hash());
}

}  // namespace
}  // namespace windtunnel
