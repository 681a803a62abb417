
#include <doctest/doctest.h>

#include <memory>

#include "core/testing.hpp"
#include "questions/break_even.hpp"
#include "questions/compare.hpp"

namespace windtunnel {
namespace {

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

/// What a rank attains where simulating with and without compression takes the same time.
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
  // One verdict, and nothing beside it that says the opposite.
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
    return comparison_text(comparison).find("(with assumed") != std::string::npos;
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
