#include <doctest/doctest.h>

#include "core/testing.hpp"
#include "report/comparison.hpp"
#include "report/report_json.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

/// The small run of 32 us, and one of 28 us with less bubble, whose timeline is that of the small world.
Comparison two_runs() {
  Report faster = testing::small_report();
  faster.iteration_time = 28_us;
  faster.tokens_per_s *= 32.0 / 28.0;
  faster.breakdown.seconds = {12_us, 6_us, 1_us, 6_us, 0_s, 2_us, 0_s, 1_us, 0_s};
  faster.memory.max_total = 90_GiB;
  faster.assumptions[0].value = "0.8";
  Comparison comparison;
  comparison.runs = {testing::run_of("a.json", testing::small_report()),
                     testing::run_of("b.json", faster)};
  comparison.differences = {{"/parallel/tensor", {"8", "4 < 5"}}};
  const ProgramSet programs = testing::two_stage_programs();
  const Plan plan = testing::two_stage_plan();
  const Network network;
  const testing::PlayedWorld world = testing::play_alone(programs);
  comparison.runs[1].details =
      run_details("{\"version\": 1}  // <here>",
                  {&world.timeline, &programs, &network, &plan, world.played.last_device}, faster);
  return comparison;
}

TEST_CASE("a comparison's page says first which run is faster, and by how much") {
  const std::string page = compare_page(two_runs());
  // 28 us / 32 us - 1 = -12.5 %
  CHECK(contains(page,
                 R"(<span data-at="/runs/1/iteration_time_s" data-per="/runs/0/iteration_time_s">)"
                 R"(−12.5 %</span></span> iteration time: B against A)"));
  CHECK(contains(page, R"(<span data-at="/speedup/1">1.143x</span>)"));
  CHECK(contains(page, "<code>4 &lt; 5</code>"));
  CHECK(contains(page, "id=\"report\">{"));
}

TEST_CASE("the lines that differ stand with their difference and the reason") {
  const std::string page = compare_page(two_runs());
  CHECK(contains(page, "Why is B faster than A?"));
  // 6 us - 9 us
  CHECK(contains(page, R"(<span data-at="/runs/1/breakdown_s/pipeline_bubble" )"
                       R"(data-minus="/runs/0/breakdown_s/pipeline_bubble">-3.000 us</span>)"));
  CHECK(contains(page, "Waiting for messages that have not been sent yet"));
}

TEST_CASE("the document of --json stands in the page but for the time it took to make it") {
  Comparison comparison = two_runs();
  comparison.differences.clear();  // no '<', which stands escaped
  CHECK(contains(compare_page(comparison),
                 "id=\"report\">" + without_wall_time(comparison_json(comparison)) + "</script>"));
}

TEST_CASE("a run known by its report alone has no timeline and says so") {
  const std::string page = compare_page(two_runs());
  CHECK_FALSE(contains(page, "id=\"timeline-0\""));
  CHECK(contains(page, "id=\"timeline-1\">{"));
  CHECK(contains(page, "a.json is known by its report alone"));
  CHECK(contains(page, "a.json: a report, which does not hold the scenario"));
  CHECK(contains(page, "// &lt;here&gt;"));
}

TEST_CASE("numbers that not all runs share stand apart from those that all do") {
  const std::string page = compare_page(two_runs());
  CHECK(
      contains(page, "<td>NIC efficiency</td><td><code>0.9</code></td><td><code>0.8</code></td>"));
  CHECK(contains(page, "4 numbers that all runs rest on"));
}

TEST_CASE("a run that failed is named, and the others are shown") {
  Comparison comparison = two_runs();
  comparison.runs.pop_back();
  comparison.failed = {{"b.json", "it <broke>"}};
  const std::string page = compare_page(comparison);
  CHECK(contains(page, "b.json could not be simulated: it &lt;broke&gt;"));
  CHECK(contains(page, "1 run</span> is left to show"));
  CHECK_FALSE(comparison.all_fit());
}

TEST_CASE("runs of other batches are compared by tokens per second") {
  Comparison comparison = two_runs();
  JsonValue& report = comparison.runs[1].report;
  report.set("tokens_per_s", JsonValue(2 * comparison.runs[1].number("/tokens_per_s")));
  CHECK(contains(compare_page(comparison), "</span> tokens per second: B against A"));
}

TEST_CASE("break-evens are in the page when they were looked for") {
  Comparison comparison = two_runs();
  CHECK_FALSE(contains(compare_page(comparison), "id=\"break-even\""));
  BreakEven found;
  found.what = "b.json";
  found.outcome = BreakEven::Outcome::crosses;
  found.factor = 0.5;
  found.bandwidth = 5_GBps;
  found.bandwidth_now = 10_GBps;
  comparison.break_evens = {found};
  const std::string page = compare_page(comparison);
  CHECK(contains(page, "faster below 5.00 GB/s"));
  CHECK(contains(page, "/break_even/0/bandwidth_bytes_per_s"));
}

}  // namespace
}  // namespace windtunnel
