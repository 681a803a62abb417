#include "questions/break_even.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "scenario/corpus_fixtures.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// Two stages on two nodes of one NIC each: a message and its gradient cross the network, one after the other, and nothing else does.
Scenario pair_of_stages(std::vector<std::pair<std::string, std::string>> overrides) {
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"stages.json", R"({
    "model": {"extends": "tiny", "tied_embeddings": false, "hidden": 512}, "platform": "pair",
    "training": {"global_batch": 2, "micro_batch": 2}, "parallel": {"tensor": 4, "pipeline": 2}})"});
  return read_scenario(parse_json(source, problems), corpus(), test_library(),
                       {std::move(overrides), 0});
}

const std::string nic_rate = "/platform/node_types/0/nic_rate";
const std::string latency = "/platform/fabric/latency";

Seconds time_of(const Scenario& scenario) {
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  return simulate(scenario, heap).report.iteration_time;
}

BreakEvenQuestion question(const Scenario& first, const Scenario& second, NetworkPart part) {
  return {"second", first.resolved, second.resolved, part, network_bandwidth(second, part)};
}

TEST_CASE("a scaled network is the same as one written with other rates") {
  const Scenario base = pair_of_stages({});
  const Scenario half = read_scenario(
      with_scaled_network(base.resolved, NetworkPart::between_nodes, 0.5), {}, test_library());
  CHECK(network_bandwidth(half, NetworkPart::between_nodes).value() ==
        doctest::Approx(network_bandwidth(base, NetworkPart::between_nodes).value() / 2));
  CHECK(time_of(half) == time_of(pair_of_stages({{nic_rate, "50 Gbps"}})));
  CHECK(time_of(half) > time_of(base));
  const Scenario inside = read_scenario(
      with_scaled_network(base.resolved, NetworkPart::inside_nodes, 0.5), {}, test_library());
  CHECK(network_bandwidth(inside, NetworkPart::inside_nodes) ==
        network_bandwidth(base, NetworkPart::inside_nodes) / 2);
  CHECK(network_bandwidth(inside, NetworkPart::between_nodes) ==
        network_bandwidth(base, NetworkPart::between_nodes));
}

TEST_CASE("measured matrices and single links are scaled with the NICs") {
  Scenario scenario = pair_of_stages(
      {{"/platform/bandwidth_matrix",
        R"({"unit": "GB/s", "rows": [[0, 8], [4, 0]], "source": "assumed: made up"})"},
       {"/platform/link_overrides",
        R"([{"from": 0, "to": 1, "bandwidth": "2 GB/s", "source": "assumed: made up"}])"}});
  const Scenario twice = read_scenario(
      with_scaled_network(scenario.resolved, NetworkPart::between_nodes, 2), {}, test_library());
  REQUIRE(twice.platform.matrix.has_value());
  CHECK(twice.platform.matrix->rate[0][1] == 16_GBps);
  CHECK(twice.platform.matrix->rate[1][0] == 8_GBps);
  CHECK(twice.platform.link_overrides[0].bandwidth == 4_GBps);
}

TEST_CASE("the break-even of twice the rate against a longer latency is where the formula has it") {
  // Two messages take 2 (V/B + l). With twice the rate and d more latency it is 2 (V/(2B) + l + d): equal at B = V/(2d). V/B at the rate of
  // the file follows from two simulations: 2 (V/B - V/(2B)) = T - T(twice the rate).
  const Scenario base = pair_of_stages({});
  const Seconds half_transfer = time_of(base) - time_of(pair_of_stages({{nic_rate, "200 Gbps"}}));
  REQUIRE(half_transfer > 0_s);
  // With d = (V/2B) * 0.3 the crossing is at a factor of V/(2d) / B = 1/0.3.
  const Seconds extra = half_transfer * (0.3 / 2);
  const std::string longer = std::to_string((10_us + extra) / 1_us) + " us";
  const Scenario other = pair_of_stages({{nic_rate, "200 Gbps"}, {latency, longer}});
  const auto found = find_break_evens({question(base, other, NetworkPart::between_nodes),
                                       question(other, base, NetworkPart::between_nodes)},
                                      test_library(), {});
  REQUIRE(found[0].outcome == BreakEven::Outcome::crosses);
  CHECK(found[0].faster_below);
  CHECK(found[0].factor == doctest::Approx(1 / 0.3).epsilon(0.01));  // the search stops at 0.5 %
  CHECK(found[0].bandwidth.value() ==
        doctest::Approx((found[0].bandwidth_now * found[0].factor).value()));
  // Asked the other way round, the same place and the opposite verdict.
  REQUIRE(found[1].outcome == BreakEven::Outcome::crosses);
  CHECK_FALSE(found[1].faster_below);
  CHECK(found[1].factor == doctest::Approx(found[0].factor).epsilon(0.01));
}

TEST_CASE("without a crossing the verdict says which run is faster throughout") {
  const Scenario base = pair_of_stages({});
  const Scenario quick = pair_of_stages({{latency, "1 us"}});
  const auto found = find_break_evens({question(base, quick, NetworkPart::between_nodes),
                                       question(quick, base, NetworkPart::inside_nodes),
                                       question(base, base, NetworkPart::inside_nodes)},
                                      test_library(), {0.5, 2, 0.1, 2});
  CHECK(found[0].outcome == BreakEven::Outcome::always_faster);
  CHECK(found[1].outcome == BreakEven::Outcome::always_slower);
  CHECK(found[2].outcome == BreakEven::Outcome::always_equal);
}

}  // namespace
}  // namespace windtunnel
