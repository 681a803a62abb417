// Two jobs on one cluster, each slowed by the other.
#include "simulate/neighbours.hpp"

#include <doctest/doctest.h>

#include <string>

#include "scenario/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// Data-parallel on `nodes` nodes of 8 A100; three nodes below each leaf, with a sixteenth of the uplinks.
std::string job_on(int nodes, const std::string& more = "") {
  return R"({"version": 1, "name": "job of )" + std::to_string(nodes) + R"(", "model": "gpt-2.5b",
    "platform": {"extends": "a100-80gb-4hdr", "name": "tapered",
                 "node_types": [{"count": 12}], "fabric": {"nodes_per_leaf": 3, "oversubscription": 16, "source": "assumed: a test"}},
    "nodes": )" +
         std::to_string(nodes) + R"(, "training": {"global_batch": )" + std::to_string(4 * nodes) +
         R"(, "micro_batch": 4},
    "parallel": {"tensor": 8, "data": )" +
         std::to_string(nodes) + "}" + more + "}";
}

std::string with_neighbour(const std::string& other, int first_node) {
  return R"(, "neighbours": [{"scenario": )" + other + R"(, "first_node": )" +
         std::to_string(first_node) + "}]";
}

Scenario scenario_from(const std::string& text, const Overrides& overrides = {}) {
  return testing::read_text_with({overrides, 0, LeftToCaller::neighbours}, text);
}

BytesPerSecond rate_over(const Report& report, const std::string& link) {
  for (const LinkUse& use : report.links)
    if (use.name == link) return total_of(use.carried) / report.iteration_time;
  return {};
}

/// A neighbour's traffic over leaf1, as a scenario writes it.
std::string over_leaf1(const std::vector<NeighbourFlow>& flows) {
  std::string text;
  for (const NeighbourFlow& flow : flows)
    if (flow.link.starts_with("leaf1 "))
      text += (text.empty() ? "" : ", ") + std::string(R"({"link": ")") + flow.link +
              R"(", "rate": ")" + exact_number(flow.rate.value()) + R"( B/s"})";
  return "[" + text + "]";
}

TEST_CASE("two jobs that meet on a leaf's uplinks slow each other by their mean traffic") {
  // Nodes 0 to 3 and 4 to 7: both cross between leaf1 (nodes 3 to 5) and another leaf.
  const Scenario scenario = with_neighbours(scenario_from(job_on(4, with_neighbour(job_on(4), 4))));
  CHECK(scenario.neighbour_jobs.empty());
  REQUIRE(scenario.neighbour_costs.size() == 1);
  const NeighbourCost& other = scenario.neighbour_costs.front();
  const Report alone = simulate(scenario_from(job_on(4))).report;
  const Report report = simulate(scenario).report;
  CHECK(scenario.time_alone == alone.iteration_time);
  CHECK(time_alone(scenario) == alone.iteration_time);
  CHECK(report.iteration_time > alone.iteration_time);
  CHECK(other.together > other.alone);
  CHECK(other.shared_links == 2);
  CHECK(report.neighbours.size() == 1);
  CHECK(report.warnings == alone.warnings);  // none of links that the neighbour alone uses

  // By hand, as flows: what the other sends slows this one, and is less than what this one sends alone.
  const std::string sent = over_leaf1(scenario.platform.neighbours);
  const Report by_hand = simulate(scenario_from(job_on(4), {{"/neighbours", sent}})).report;
  CHECK(report.iteration_time == by_hand.iteration_time);
  // Over a leaf's links a ring over two leaves carries as much for a job of two and two nodes as for one of three and one.
  CHECK(other.alone == alone.iteration_time);
  const BytesPerSecond own = rate_over(alone, "leaf1 up");
  const std::string more = over_leaf1({{"leaf1 up", own}, {"leaf1 down", own}});
  const Report slowed = simulate(scenario_from(job_on(4), {{"/neighbours", more}})).report;
  CHECK(slowed.iteration_time > report.iteration_time);
}

TEST_CASE("jobs that share no link cost each other nothing") {
  const Scenario scenario = with_neighbours(scenario_from(job_on(3, with_neighbour(job_on(3), 3))));
  REQUIRE(scenario.neighbour_costs.size() == 1);
  CHECK(scenario.neighbour_costs.front().shared_links == 0);
  CHECK(scenario.neighbour_costs.front().alone == scenario.neighbour_costs.front().together);
  CHECK(simulate(scenario).report.iteration_time == scenario.time_alone);
}

TEST_CASE("a scenario with its neighbours reads again as flows, and takes as long") {
  const Scenario scenario = with_neighbours(scenario_from(job_on(4, with_neighbour(job_on(4), 4))));
  const Scenario again = read_scenario(scenario.resolved, {}, Library{source_dir()});
  CHECK(again.neighbour_jobs.empty());
  CHECK(simulate(again).report.iteration_time == simulate(scenario).report.iteration_time);
}

TEST_CASE("a second job is refused on nodes that it cannot have") {
  const auto problem = [](const std::string& text) {
    try {
      scenario_from(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(problem(job_on(4, with_neighbour(job_on(4), 2)))
            .find("this second job has nodes 2 to 5, and this one has 0 to 3 at "
                  "/neighbours/0/first_node (write 4 or more)") != std::string::npos);
  CHECK(problem(job_on(4, with_neighbour(R"("gpt-39b-512xa100")", 4)))
            .find("the second job is on another platform than this one (\"a100-80gb-4hdr\" and "
                  "\"tapered\")") != std::string::npos);
  CHECK(
      problem(
          job_on(4, with_neighbour(
                        R"({"version": 1, "model": "gpt-2.5b", "platform": "a100-80gb-4hdr"})", 4)))
          .find("missing key \"training\" at /neighbours/0/scenario") != std::string::npos);
  CHECK(problem(job_on(4, with_neighbour("7", 4))).find("which is no scenario") !=
        std::string::npos);
  CHECK_THROWS_WITH_AS(testing::read_text(job_on(4, with_neighbour(job_on(4), 4))),
                       doctest::Contains("a second job is simulated by run"), InputError);
}

}  // namespace
}  // namespace windtunnel
