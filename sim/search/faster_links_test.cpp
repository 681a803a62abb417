#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lower/program_builder.hpp"
#include "report/report_words.hpp"
#include "search/random_scenario_fixtures.hpp"

namespace windtunnel {
namespace {

constexpr double times_faster = 10;

Scenario with_faster_links_in_nodes(Scenario scenario) {
  const auto raise = [](std::vector<NodeType>& nodes) {
    for (NodeType& node : nodes)
      for (BytesPerSecond* rate :
           {&node.interconnect.saturated_bandwidth, &node.interconnect.small_bandwidth,
            &node.interconnect.point_to_point, &node.interconnect.all_to_all})
        *rate = *rate * times_faster;
  };
  raise(scenario.nodes);
  raise(scenario.platform.node_types);
  return scenario;
}

Scenario with_faster_network(Scenario scenario) {
  for (std::vector<NodeType>* nodes : {&scenario.nodes, &scenario.platform.node_types})
    for (NodeType& node : *nodes) node.nic_rate = node.nic_rate * times_faster;
  for (LinkOverride& link : scenario.platform.link_overrides)
    link.bandwidth = link.bandwidth * times_faster;
  if (scenario.platform.matrix)
    for (std::vector<BytesPerSecond>& row : scenario.platform.matrix->rate)
      for (BytesPerSecond& rate : row) rate = rate * times_faster;
  return scenario;
}

/// On an engine that gives each flow its rate alone, so that an iteration is made of maxima and sums. Where flows share links, one that
/// starts earlier may take bandwidth from another that more is waiting for (engine/program_simulator_test.cpp): on the native engine 73 of 9,100
/// checks like these fail, by up to 3.5 %, all of them with faster links in nodes.
double time_alone(const Scenario& scenario, const Plan& plan, Detail detail) {
  return time_of(scenario, plan, detail, make_heap_engine);
}

void check_faster_links(const Scenario& scenario, const Plan& plan) {
  const Scenario in_nodes = with_faster_links_in_nodes(scenario),
                 between_nodes = with_faster_network(scenario);
  for (const Detail detail : {Detail::pass, Detail::layer}) {
    CAPTURE(static_cast<int>(detail));
    const double most = time_alone(scenario, plan, detail) * (1 + 1e-9);
    CHECK(time_alone(in_nodes, plan, detail) <= most);
    // Not over NVLink domains: NCCL picks an algorithm by its own estimate, which at ten times the network's rate is one that takes up to
    // 0.06 % longer where no flow shares a link.
    if (scenario.platform.domain_nodes == 1) CHECK(time_alone(between_nodes, plan, detail) <= most);
  }
}

TEST_CASE("no plan that rank tries is slower where links are faster") {
  const int checked =
      for_each_drawn_plan(RandomBases(5), 300, 6, [](const Scenario& base, const Plan& plan) {
        CAPTURE(base.name);
        CAPTURE(detail::plan_text(plan.training, plan.parallel));
        check_faster_links(base, plan);
      });
  CHECK(checked > 500 / one_in);
}

TEST_CASE("no scenario is slower where links are faster") {
  RandomScenarios random(5);
  for (const Scenario& scenario : draw_scenarios(random, 300 / one_in)) {
    CAPTURE(scenario.name);
    check_faster_links(scenario, scenario.plan);
  }
}

TEST_CASE(
    "launches that a pass has waited for while it waited for others, it does not wait for again") {
  // A rack holds 72 of the 128 GPUs: a group that straddles two racks gathers over NICs, and others wait for it.
  const Scenario scenario = scenario_from(
      R"({"model": "gpt-1.7b", "platform": "gb300-nvl72", "software": "deepspeed-megatron-2020",
          "training": {"global_batch": 16, "micro_batch": 1, "precision": "fp8", "recompute": "full"},
          "parallel": {"tensor": 4, "data": 16, "zero_stage": 3, "zero_prefetch": 0, "zero_group": 4, "context": 2,
                       "context_method": "all_to_all"}})");
  check_faster_links(scenario, scenario.plan);
}

}  // namespace
}  // namespace windtunnel
