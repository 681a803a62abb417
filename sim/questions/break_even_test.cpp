#include "questions/break_even.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "core/testing.hpp"
#include "questions/compare.hpp"
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

const Library shipped_library{source_dir()};

/// A model on two nodes, with a block of compression.
Scenario two_nodes(const std::string& parallel, const std::string& compression) {
  Problems problems;
  const auto source = std::make_shared<const SourceText>(
      SourceText{"two_nodes.json", R"({"model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2,
    "training": {"global_batch": 4, "micro_batch": 4, "precision": "fp16"}, "parallel": )" +
                                       parallel + R"(, "compression": )" + compression + "}"});
  return read_scenario(parse_json(source, problems), shipped_library.root, shipped_library);
}

const std::string two_stages = R"({"tensor": 8, "pipeline": 2, "data": 1})";
const std::string two_replicas = R"({"tensor": 8, "pipeline": 1, "data": 2})";

Scenario without_compression(const Scenario& scenario) {
  JsonValue resolved = scenario.resolved;
  resolved.erase("compression");
  return read_scenario(std::move(resolved), {}, shipped_library);
}

CodecBreakEven only_class(const Scenario& scenario) {
  const auto found = codec_break_evens(scenario);
  REQUIRE(found.size() == 1);
  return found.front();
}

/// Bandwidth of a rank at which simulations with and without compression take the same time.
BytesPerSecond simulated_break_even(const Scenario& scenario) {
  const Scenario bare = without_compression(scenario);
  const auto found = find_break_evens({{"compression", bare.resolved, scenario.resolved,
                                        NetworkPart::between_nodes, BytesPerSecond{1}}},
                                      shipped_library, {1.0 / 64, 64, 0.001, 2});
  REQUIRE(found[0].outcome == BreakEven::Outcome::crosses);
  CHECK(found[0].faster_below);
  return only_class(scenario).now * found[0].factor;
}

TEST_CASE("a codec of two rates pays below the bandwidth that the rates give") {
  // (1 - 1/4) / (1/20 + 1/30) = 0.75 * 12 = 9 GB/s, whatever the message weighs.
  const Scenario scenario = two_nodes(
      two_stages,
      R"({"pipeline_forward": {"codec": "fixed", "ratio": 4, "encode_rate": "20 GB/s", "decode_rate": "30 GB/s"}})");
  const CodecBreakEven found = only_class(scenario);
  CHECK(found.traffic == Traffic::pipeline_forward);
  REQUIRE(found.bandwidth.has_value());
  CHECK(found.bandwidth->value() == doctest::Approx(9e9).epsilon(1e-9));
  // 8 NICs of 200 Gb/s for 8 GPUs: 25 GB/s each, as far as they are attained.
  const NodeType& node = scenario.nodes.front();
  CHECK(found.now.value() == doctest::Approx(25e9 * node.nic_efficiency).epsilon(1e-9));
  CHECK(found.now > *found.bandwidth);  // it loses, alone
}

TEST_CASE("the formula and the simulation agree on where compressing stage messages pays") {
  // One microbatch: its one forward message waits for its codec and is waited for. With more, transfers hide and codecs do not.
  const Scenario scenario = two_nodes(
      two_stages,
      R"({"pipeline_forward": {"codec": "fixed", "ratio": 4, "encode_rate": "20 GB/s", "decode_rate": "30 GB/s"}})");
  CHECK(simulated_break_even(scenario).value() == doctest::Approx(9e9).epsilon(0.02));
}

TEST_CASE("a codec that costs nothing always pays, one that saves nothing never does") {
  const CodecBreakEven free =
      only_class(two_nodes(two_stages, R"({"pipeline_backward": {"codec": "fixed", "ratio": 2}})"));
  CHECK_FALSE(free.bandwidth.has_value());
  const CodecBreakEven useless = only_class(two_nodes(
      two_stages,
      R"({"pipeline_backward": {"codec": "fixed", "ratio": 1, "encode_rate": "1 GB/s"}})"));
  REQUIRE(useless.bandwidth.has_value());
  CHECK(*useless.bandwidth == BytesPerSecond{0});
}

TEST_CASE("a transfer that gains alone can make the job slower, and then the job decides") {
  // 64 microbatches: all messages but the first ones hide behind computing, encoding and decoding hide behind nothing.
  Scenario with = two_nodes(
      two_stages,
      R"({"pipeline_forward": {"codec": "fixed", "ratio": 4, "encode_rate": "200 GB/s", "decode_rate": "300 GB/s"}})");
  JsonValue resolved = with.resolved;
  set_at(resolved, "/training/global_batch", JsonValue(std::int64_t{256}));
  with = read_scenario(std::move(resolved), {}, shipped_library);
  const Scenario without = without_compression(with);
  const Comparison comparison = compare({{"without", without}, {"with", with}}, shipped_library);
  REQUIRE(comparison.codecs.size() == 1);
  const CodecBreakEven& codec = comparison.codecs.front();
  CHECK(codec.now < *codec.bandwidth);
  CHECK(codec.slows_job());
  const Seconds difference =
      comparison.runs[0].iteration_time() - comparison.runs[1].iteration_time();
  CHECK(codec.saved_by_job / difference == doctest::Approx(1).epsilon(1e-9));
  // One verdict, and nothing next to it that says the opposite.
  const std::string text = comparison_text(comparison);
  CHECK(text.find("pipeline forward: costs ") != std::string::npos);
  CHECK(text.find("wins") == std::string::npos);
  CHECK(text.find("loses") == std::string::npos);
}

TEST_CASE("what a codec saves is said of slow codecs too, where its speeds are assumed") {
  const auto compared = [](const char* codec) {
    const Scenario with = two_nodes(two_stages, codec);
    return compare({{"without", without_compression(with)}, {"with", with}}, shipped_library);
  };
  const Comparison assumed = compared(R"({"pipeline_backward": {"codec": "powersgd", "rank": 4}})");
  CHECK(assumed.codecs.at(0).saved_if_slow < assumed.codecs.at(0).saved_by_job);
  const auto mentions_assumed = [](const Comparison& comparison) {
    return comparison_text(comparison).find("(with all") != std::string::npos;
  };
  CHECK(mentions_assumed(assumed));
  const Comparison given = compared(R"({"pipeline_backward": {"codec": "fixed", "ratio": 2}})");
  CHECK(given.codecs.at(0).saved_if_slow == given.codecs.at(0).saved_by_job);
  CHECK_FALSE(mentions_assumed(given));
}

TEST_CASE("slow codecs have half the rates, twice the launches and five times the column step") {
  CodecSpeeds speeds;
  speeds.launch = 10_us;
  speeds.column_step = 10_us;
  speeds.selection = 90_GBps;
  speeds.zfp = {{8, 200_GBps, 240_GBps}};
  speeds.mpc_encode = 90_GBps;
  speeds.sources["mpc_encode"].evidence = Evidence::measured;
  const CodecSpeeds slow = slow_codecs(speeds);
  CHECK(slow.launch / 20_us == doctest::Approx(1));
  CHECK(*slow.column_step / 50_us == doctest::Approx(1));
  CHECK(*slow.selection / 45_GBps == doctest::Approx(1));
  CHECK(slow.zfp[0].encode / 100_GBps == doctest::Approx(1));
  CHECK(slow.zfp[0].decode / 120_GBps == doctest::Approx(1));
  CHECK(*slow.mpc_encode == 90_GBps);  // measured
  CHECK_FALSE(slow.mpc_decode);
}

}  // namespace
}  // namespace windtunnel
