#include "report/run_page.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "core/testing.hpp"
#include "report/report_json.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

struct SimulatedRun {
  ProgramSet programs = testing::two_stage_programs();
  Plan plan = testing::two_stage_plan();
  Network network;
  testing::SimulatedWorld simulated = testing::simulate_alone(programs);
  Report report = testing::small_report();

  std::string page() const {
    const Explanation explanation = explain_path(report, plan, programs, simulated.timeline);
    return run_page(explanation,
                    {&simulated.timeline, &programs, &network, &plan, simulated.result.last_device},
                    "{\"version\": 1}  // <here>");
  }
};

TEST_CASE("a run's page says how long, how sure, whether it fits and why, without a script") {
  SimulatedRun world;
  world.report.iteration_time_interval = {30_us, 35_us};
  const std::string page = world.page();
  CHECK(contains(
      page,
      R"(<span class="big"><span data-at="/iteration_time_s">32.0 us</span></span> per iteration)"));
  CHECK(contains(page, R"(<span data-at="/iteration_time_interval_s/1">35.0 us</span>)"));
  CHECK(contains(page, "fits: stage 0 uses 29.8 GiB of 79.0 GiB usable"));
  CHECK(contains(page, "Pipeline bubble: 9.000 us, 28.1 %"));
  CHECK(contains(page, "The end of the iteration waited for <b>"));
  CHECK(contains(page, "all 2 simulated devices (16 GPUs)"));
  CHECK(contains(page, "// &lt;here&gt;"));
}

TEST_CASE("the JSON report stands in the page but for the time it took to make it") {
  const SimulatedRun world;
  CHECK(contains(world.page(),
                 "id=\"report\">" + without_wall_time(to_json(world.report)) + "</script>"));
}

TEST_CASE(
    "memory over the iteration rises with each microbatch in flight and falls back to where it "
    "began") {
  SimulatedRun world;
  world.report.memory.worst_stage = StageId(1);
  const std::string page = world.page();
  const std::size_t chart = page.find("Memory allocated on a GPU of stage 1 over the iteration");
  REQUIRE(chart != std::string::npos);
  CHECK(page.find("weights, gradients, optimizer", chart) != std::string::npos);
  const std::size_t begin = page.find("<polyline points=\"", chart) + 18;
  std::istringstream points(page.substr(begin, page.find('"', begin) - begin));
  std::vector<double> heights;  // downwards
  for (double x = 0, y = 0; points >> x && points.ignore() && points >> y;) heights.push_back(y);
  REQUIRE(heights.size() > 4);
  CHECK(heights.front() == heights.back());
  CHECK(*std::min_element(heights.begin(), heights.end()) < heights.front());
  CHECK(*std::max_element(heights.begin(), heights.end()) == heights.front());

  world.report.memory.stages.clear();
  CHECK(!contains(world.page(), "over the iteration\""));
}

TEST_CASE("every assumption is in the page with its source") {
  const SimulatedRun world;
  const std::string page = world.page();
  for (const Assumption& assumption : world.report.assumptions)
    CHECK(contains(page, "<td>" + assumption.what + "</td>"));
  CHECK(contains(page, "<span class=\"badge e-fitted\">fitted</span>"));
  CHECK(contains(page, "5 inputs: 1 measured, 1 from datasheets, 1 fitted, 2 assumed"));
}

TEST_CASE("the hottest link is named, with what it carries") {
  SimulatedRun world;
  CHECK(contains(world.page(), "Nothing crosses a shared link"));
  LinkUse link{"node1 up", 100_GBps, {}};
  link.carried[static_cast<std::size_t>(Traffic::data_gradients)] = 1.6 * 1_MB;
  world.report.links = {link};
  // 1.6 MB of the 3.2 MB that 100 GB/s carry in 32 us.
  CHECK(contains(world.page(), "Hottest: <b>node1 up</b>, 50.0 % of what it could carry"));
  CHECK(contains(world.page(), "data gradients 100.0 %"));
}

TEST_CASE("a plan that does not fit says so before anything else") {
  SimulatedRun world;
  world.report.memory.fits = false;
  world.report.memory.verdict = MemoryVerdict::does_not_fit;
  world.report.memory.advice = "stage 0 needs more";
  const std::string page = world.page();
  CHECK(page.find("DOES NOT FIT: stage 0 needs more") < page.find("Where the time goes"));
  CHECK(contains(page, "what it would be if the plan fitted"));
}

}  // namespace
}  // namespace windtunnel
