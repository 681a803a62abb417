// Tokens that are not spread evenly over experts: every layer and microbatch has a draw of its own.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "lower/token_draws.hpp"
#include "scenario/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Scenario read_uneven(const std::string& text, const Overrides& overrides = {},
                     std::uint64_t seed = 0) {
  ReadOptions options;
  options.overrides = overrides;
  options.seed = seed;
  return testing::read_text_with(options, text);
}

Simulation run_uneven(const Scenario& scenario, SimulateOptions options = {}) {
  options.make_engine = make_native_engine;
  return simulate(scenario, options);
}

Seconds time_of(const Scenario& scenario, Detail detail = Detail::pass,
                MakeEngine engine = make_native_engine) {
  SimulateOptions options;
  options.make_engine = engine;
  options.detail = detail;
  return simulate(scenario, options).report.iteration_time;
}

BuildInputs inputs_of(const Scenario& scenario, Tokens tokens) {
  BuildInputs inputs{&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software,
                     &scenario.plan};
  inputs.tokens = tokens;
  return inputs;
}

/// Eight GPUs of one node share out 16 experts, two layers, eight microbatches.
const std::string one_node =
    R"({"platform": "dgx-h100", "nodes": 1, "software": "megatron-core-2026@0",
  "model": {"layers": 2, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 32000, "ffn_hidden": 4096,
    "moe": {"experts": 16, "top_k": 2, "ffn_hidden": 1024, "balance": {"zipf": 0.5}}},
  "training": {"global_batch": 64, "micro_batch": 1},
  "parallel": {"data": 8, "expert": 8}})";

std::vector<double> forward_times(const Simulation& simulation) {
  std::vector<double> times;
  for (const Span& span : simulation.timeline.computes)
    if (span.op.phase == Phase::forward && span.device == DeviceId{0})
      times.push_back((span.end - span.begin).value());
  return times;
}

TEST_CASE("uneven experts make a step longer, and its FLOPs no more") {
  const auto report_of = [](const std::string& balance) {
    return run_uneven(read_uneven(one_node, {{"/model/moe/balance", balance},
                                             {"/training/attention", "flash"}}))
        .report;
  };
  const Report even = report_of("balanced"), uneven = report_of(R"({"zipf": 1.0})");
  CHECK(uneven.iteration_time > 1.05 * even.iteration_time);
  CHECK(uneven.model_flops_per_gpu * uneven.iteration_time /
            (even.model_flops_per_gpu * even.iteration_time) ==
        doctest::Approx(1).epsilon(1e-9));
  CHECK(uneven.mfu / even.mfu ==
        doctest::Approx(even.iteration_time / uneven.iteration_time).epsilon(1e-9));
  CHECK(uneven.hfu < even.hfu);
}

TEST_CASE("without a pipeline the wait for another group of experts is no bubble") {
  // Two groups of eight GPUs meet draws of their own, and reduce their gradients together; told is the first group.
  constexpr std::uint64_t seeds = 6;
  Seconds waited{};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Report report =
        run_uneven(read_uneven(one_node, {{"/nodes", "2"}, {"/parallel/data", "16"}}, seed)).report;
    CHECK(report.breakdown.of(Line::pipeline_bubble) == 0_s);
    CHECK(report.breakdown.total() / report.iteration_time == doctest::Approx(1).epsilon(1e-9));
    waited += report.breakdown.of(Line::peer_wait);
  }
  CHECK(waited > 0_s);
}

TEST_CASE("where tokens are not spread evenly, microbatches differ") {
  SimulateOptions options;
  options.keep_timeline = true;
  const std::vector<double> uneven = forward_times(run_uneven(read_uneven(one_node), options));
  REQUIRE(uneven.size() == 8);
  CHECK(std::set<double>(uneven.begin(), uneven.end()).size() >= 6);  // a draw may come again
  const std::vector<double> even = forward_times(
      run_uneven(read_uneven(one_node, {{"/model/moe/balance", "balanced"}}), options));
  for (const double time : even) CHECK(time == doctest::Approx(even.front()).epsilon(1e-9));
  for (const double time : uneven) CHECK(time > even.front());
}

TEST_CASE("a seed decides, and the same one gives the same time") {
  CHECK(time_of(read_uneven(one_node, {}, 5)) == time_of(read_uneven(one_node, {}, 5)));
  CHECK(time_of(read_uneven(one_node, {}, 5)) != time_of(read_uneven(one_node, {}, 6)));
  const Overrides even{{"/model/moe/balance", "balanced"}};
  CHECK(time_of(read_uneven(one_node, even, 5)) == time_of(read_uneven(one_node, even, 6)));
}

TEST_CASE("backward a microbatch meets the tokens that it met forward") {
  // One layer: what a pass takes beyond the least of all passes is in proportion forward and backward.
  SimulateOptions options;
  options.keep_timeline = true;
  const Simulation simulation =
      run_uneven(read_uneven(one_node, {{"/model/layers", "1"}}), options);
  std::vector<double> forward(8), backward(8);
  for (const Span& span : simulation.timeline.computes) {
    if (span.device != DeviceId{0}) continue;
    const double time = (span.end - span.begin).value();
    if (span.op.phase == Phase::forward) forward[span.op.microbatch] = time;
    if (span.op.phase == Phase::backward) backward[span.op.microbatch] = time;
  }
  const auto most =
      static_cast<std::size_t>(std::max_element(forward.begin(), forward.end()) - forward.begin());
  const auto least =
      static_cast<std::size_t>(std::min_element(forward.begin(), forward.end()) - forward.begin());
  const double ratio = (backward[most] - backward[least]) / (forward[most] - forward[least]);
  CHECK(ratio > 1);
  for (std::size_t m = 0; m < 8; ++m)
    CHECK(backward[m] - backward[least] ==
          doctest::Approx(ratio * (forward[m] - forward[least])).epsilon(1e-6));
}

TEST_CASE("the mean over seeds is what the mean draw gives") {
  // One group and one stage: an iteration is the sum of its passes, 16 draws each. With the spread of 256 seeds the mean is known to a
  // sixteenth of it; four times that is allowed.
  const Scenario scenario = read_uneven(one_node);
  const Seconds of_mean_draw =
      simulate_programs(build_programs(inputs_of(scenario, {})), make_native_engine).end;
  constexpr int seeds = 256;
  double sum = 0, squares = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const double time =
        simulate_programs(build_programs(inputs_of(scenario, {Tokens::Draws::by_seed,
                                                              static_cast<std::uint64_t>(seed)})),
                          make_native_engine)
            .end.value();
    sum += time;
    squares += time * time;
  }
  const double mean = sum / seeds, spread = std::sqrt(squares / seeds - mean * mean);
  CHECK(spread / mean > 1e-4);
  CHECK(std::abs(mean - of_mean_draw.value()) < 4 * spread / std::sqrt(seeds));
}

TEST_CASE("a layer and microbatch of a group has one draw, and another group another") {
  const Scenario scenario = read_uneven(
      one_node, {{"/parallel/expert", "4"}, {"/model/moe/balance", R"({"zipf": 1})"}}, 3);
  const TokenDraws draws(inputs_of(scenario, {Tokens::Draws::by_seed, 3}));
  REQUIRE(draws.vary());
  const auto of = [&](int replica) {
    return draws.of_chunk(
        scenario.plan, scenario.plan.devices[scenario.plan.device(replica, StageId{0}, 0).index()],
        0);
  };
  CHECK(of(0) == of(3));
  CHECK(of(0) != of(4));
  CHECK(of(4) == of(7));
  CHECK_FALSE(TokenDraws(inputs_of(scenario, {})).vary());
  // One expert on each rank: the fullest is as full in every draw.
  const Scenario apart = read_uneven(one_node, {{"/parallel/expert", "8"},
                                                {"/model/moe/experts", "8"},
                                                {"/model/moe/balance", R"({"zipf": 1})"}});
  CHECK_FALSE(TokenDraws(inputs_of(apart, {Tokens::Draws::by_seed, 3})).vary());
  const Scenario alone = read_uneven(one_node, {{"/parallel/expert", "1"}});
  CHECK_FALSE(TokenDraws(inputs_of(alone, {Tokens::Draws::by_seed, 3})).vary());
}

TEST_CASE("the slowest group decides when gradients are reduced") {
  // Four groups of two ranks in place of one of eight, each expert as full: the mean draw is shorter than what most seeds give.
  const Overrides four{{"/parallel/expert", "2"}};
  const Scenario scenario = read_uneven(one_node, four);
  const Seconds of_mean_draw =
      simulate_programs(build_programs(inputs_of(scenario, {})), make_native_engine).end;
  int longer = 0;
  for (std::uint64_t seed = 0; seed < 32; ++seed)
    if (time_of(read_uneven(one_node, four, seed)) > of_mean_draw) ++longer;
  CHECK(longer > 24);
}

TEST_CASE("replicas that exchange tokens are simulated as one, to the same time") {
  for (const char* expert : {"8", "4", "2"}) {
    const Scenario scenario = read_uneven(one_node, {{"/parallel/expert", expert}});
    SimulateOptions each;
    each.replicas = Replicas::each;
    const Report all = run_uneven(scenario, each).report, one = run_uneven(scenario).report;
    CHECK(all.iteration_time == one.iteration_time);
    CHECK(all.activities == one.activities);
    CHECK(one.simulated_replicas == 8 / std::stoi(expert));
  }
}

/// Two nodes of eight GPUs, over which experts are shared out.
const std::string two_nodes =
    R"({"platform": "dgx-h100", "nodes": 2, "software": "megatron-core-2026@0",
  "model": {"layers": 8, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 32000, "ffn_hidden": 4096,
    "tied_embeddings": false,
    "moe": {"experts": 32, "top_k": 2, "ffn_hidden": 1024, "shared_ffn_hidden": 512, "balance": {"zipf": 0.7}}},
  "training": {"global_batch": 64, "micro_batch": 1, "attention": "flash"},
  "parallel": {"data": 16, "expert": 16}})";

std::string one_of(std::initializer_list<std::string> words) {
  return *rc::gen::elementOf(std::vector<std::string>(words));
}

TEST_CASE("uneven tokens take as long as numbers as operation by operation") {
  CHECK(rc::check([] {
    const std::string schedule = one_of(
        {"1f1b", "1f1b", "gpipe", "zero_bubble_h1", "zero_bubble_v", "dualpipe", "dualpipe_v"});
    const bool has_stages = schedule != "1f1b" || *rc::gen::inRange(0, 2) == 1;
    const bool has_two_chunks = schedule == "zero_bubble_v" || schedule.starts_with("dualpipe");
    Overrides more{{"/model/moe/shared_ffn_hidden", one_of({"0", "512"})},
                   {"/model/moe/dense_layers", one_of({"0", "1"})},
                   {"/model/moe/capacity", one_of({"0", "1.25"})},
                   {"/training/recompute", one_of({"none", "full"})},
                   {"/software/experts/dispatch", one_of({"all_to_all", "one_copy_per_node"})},
                   {"/software/experts/overlap_shared", one_of({"false", "true"})},
                   {"/software/experts/overlap_exchanges", "false"},
                   {"/parallel/schedule", schedule},
                   {"/parallel/virtual_pipeline", has_two_chunks ? "2" : "1"},
                   {"/parallel/zero_stage", one_of({"0", "1"})},
                   {"/parallel/pipeline", has_stages ? "2" : "1"},
                   {"/parallel/data", has_stages ? "8" : "16"},
                   {"/parallel/expert", has_stages ? one_of({"4", "8"}) : one_of({"4", "16"})}};
    const Scenario scenario =
        read_uneven(two_nodes, more, static_cast<std::uint64_t>(*rc::gen::inRange(0, 1000)));
    const Seconds passes = time_of(scenario, Detail::pass, make_heap_engine),
                  operations = time_of(scenario, Detail::layer, make_heap_engine);
    RC_ASSERT(std::abs(operations / passes - 1) < 1e-9);
  }));
}

TEST_CASE("with ZeRO 3, tokens' draws are the same as numbers and operation by operation") {
  for (const char* prefetch : {"0", "1"})
    for (const unsigned seed : {1U, 2U, 3U}) {
      const Scenario scenario = read_uneven(
          two_nodes, {{"/parallel/zero_stage", "3"}, {"/parallel/zero_prefetch", prefetch}}, seed);
      CHECK(
          time_of(scenario, Detail::layer, make_heap_engine).value() ==
          doctest::Approx(time_of(scenario, Detail::pass, make_heap_engine).value()).epsilon(1e-9));
    }
}

TEST_CASE("uneven tokens on one slow link: both engines simulate the same flows") {
  const Overrides slow{
      {"/platform/link_overrides",
       R"([{"from": 0, "to": 1, "bandwidth": "25 GB/s", "source": "assumed: x"}])"},
      {"/model/layers", "2"}};
  const Seconds native = time_of(read_uneven(two_nodes, slow, 4)),
                simgrid =
                    time_of(read_uneven(two_nodes, slow, 4), Detail::pass, make_simgrid_engine),
                other = time_of(read_uneven(two_nodes, slow, 5));
  CHECK(native.value() == doctest::Approx(simgrid.value()).epsilon(1e-9));
  CHECK(native != other);
}

TEST_CASE("memory holds the fullest of all draws, whatever the seed") {
  const Bytes one = run_uneven(read_uneven(one_node, {}, 1)).report.memory.max_total,
              other = run_uneven(read_uneven(one_node, {}, 2)).report.memory.max_total;
  CHECK(one == other);
  CHECK(one > run_uneven(read_uneven(one_node, {{"/model/moe/balance", "balanced"}}))
                  .report.memory.max_total);
}

}  // namespace
}  // namespace windtunnel
