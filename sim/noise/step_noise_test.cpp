#include "noise/step_noise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/philox.hpp"
#include "core/testing.hpp"
#include "engine/engine.hpp"
#include "lower/program_builder.hpp"
#include "noise/step_series.hpp"
#include "scenario/testing.hpp"
#include "units/quantity.hpp"

namespace windtunnel {
namespace {

Work work_of(double compute, double tensor, double launches) {
  Work work;
  work.parts[static_cast<std::size_t>(Part::compute)] = Seconds{compute};
  work.parts[static_cast<std::size_t>(Part::tensor_comm)] = Seconds{tensor};
  work.parts[static_cast<std::size_t>(Part::other)] = Seconds{launches};
  work.duration = Seconds{compute + tensor + launches};
  return work;
}

double slower(const Work& work, double factor) {
  return with_slower_kernels(work, factor) / Seconds{1};
}

TEST_CASE("a slow GPU computes slower, and sends and launches as fast") {
  CHECK(slower(work_of(8, 2, 0), 1.25) == doctest::Approx(12));  // 8 · 1.25 + 2
  CHECK(slower(work_of(8, 2, 1), 1.25) == doctest::Approx(13));  // 1 is the host's, not a floor
  CHECK(slower(work_of(8, 2, 0), 0.5) == doctest::Approx(6));
  CHECK(slower(work_of(8, 2, 3), 1) == 13);
}

TEST_CASE("where launches may bind, slower and faster kernels move what waits for them") {
  const auto floor = [](double gpu) { return std::pow(std::pow(gpu, 4) + std::pow(10, 4), 0.25); };
  Work work = work_of(8, 2, floor(10) - 10);  // 10 s of launches
  work.floor = {.launch = Seconds{10}, .sharpness = 4};
  for (const double factor : {0.1, 0.5, 0.9, 1.1, 2.0, 10.0})
    CHECK(slower(work, factor) == doctest::Approx(floor(8 * factor + 2)).epsilon(1e-12));
  // As an operation of its own, during which the kernels run.
  Work wait = work_of(0, 0, floor(10) - 10);
  wait.floor = {.launch = Seconds{10},
                .elsewhere = Seconds{10},
                .kernels_elsewhere = Seconds{8},
                .sharpness = 4};
  CHECK(slower(wait, 2) == doctest::Approx(floor(18) - 18).epsilon(1e-9));
}

/// Two stages on one node, whose passes take about as long as their launches; no collective overlaps with kernels.
const char* const bound_by_launches = R"({
  "model": {"layers": 4, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 32000},
  "platform": "selene-a100", "nodes": 1, "software": "megatron-lm-2020",
  "training": {"global_batch": 8, "micro_batch": 1, "precision": "bf16"},
  "parallel": {"tensor": 2, "pipeline": 2, "data": 2}})";

Seconds end_of(const Scenario& scenario, double kernels, Detail detail) {
  const BuiltPrograms built = build_programs({&scenario.model,
                                              &scenario.platform,
                                              &scenario.nodes,
                                              &scenario.software,
                                              &scenario.plan,
                                              Replicas::each,
                                              detail,
                                              {}});
  UniformDisturbance disturbance(1, kernels);
  return simulate_programs(built.programs, *make_native_engine(built.network), disturbance).end;
}

TEST_CASE("a factor on kernels is what a device with all their times scaled gives") {
  const Scenario usual = testing::read_text(bound_by_launches);
  for (const double factor : {0.25, 0.8, 0.95, 1.05, 1.5, 8.0}) {
    Scenario scaled = usual;
    for (NodeType& node : scaled.nodes) {
      Device& device = node.device;
      for (auto& [precision, rate] : device.peak) rate = rate / factor;
      device.memory_bandwidth = device.memory_bandwidth / factor;
      device.kernel_overhead *= factor;
    }
    for (const Detail detail : {Detail::pass, Detail::layer}) {
      CAPTURE(factor);
      CHECK(end_of(usual, factor, detail).value() ==
            doctest::Approx(end_of(scaled, 1, detail).value()).epsilon(1e-9));
    }
  }
}

/// 2 nodes of 8 GPUs: 2 replicas of 2 stages of 4 GPUs.
Scenario two_nodes() {
  return read_scenario(
      source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
      {.overrides = {{"/model", "gpt-1.7b"},
                     {"/nodes", "2"},
                     {"/training/global_batch", "32"},
                     {"/training/micro_batch", "1"},
                     {"/parallel", R"({"tensor": 4, "pipeline": 2, "data": 2})"}}});
}

StepNoise noise_of(const NoiseBlock& block, const Scenario& scenario) {
  return {block, 5, scenario.plan, scenario.nodes, Seconds{4}};
}

TEST_CASE("a device is as slow as the slowest of its GPUs") {
  const Scenario scenario = two_nodes();
  NoiseBlock block;
  block.slow_parts = {{11, std::nullopt, 1.25}};
  const StepFactors factors = noise_of(block, scenario).next_step();
  for (std::size_t i = 0; i < scenario.plan.devices.size(); ++i) {
    const PlanDevice& device = scenario.plan.devices[i];
    // GPU 11 is the fourth of the second node.
    const bool has_it =
        device.node == NodeId{1} && std::count(device.gpus.begin(), device.gpus.end(), 3) > 0;
    CHECK(factors.of_device[i] == (has_it ? 1.25 : 1.0));
  }
  block.slow_parts = {{std::nullopt, 0, 2}, {0, std::nullopt, 3}};
  const StepFactors both = noise_of(block, scenario).next_step();
  for (std::size_t i = 0; i < scenario.plan.devices.size(); ++i) {
    const PlanDevice& device = scenario.plan.devices[i];
    const bool has_first = std::count(device.gpus.begin(), device.gpus.end(), 0) > 0;
    CHECK(both.of_device[i] == (device.node == NodeId{1} ? 1 : has_first ? 6 : 2));
  }
}

TEST_CASE("steps correlate as they are told to") {
  const Scenario scenario = two_nodes();
  NoiseBlock block;
  block.step_jitter.all = 0.01;
  for (const double correlation : {0.0, 0.6}) {
    block.step_jitter.correlation = correlation;
    StepNoise noise = noise_of(block, scenario);
    std::vector<Seconds> logarithms;
    constexpr int steps = 20'000;
    double squares = 0;
    for (int i = 0; i < steps; ++i) {
      const double drawn = std::log(noise.next_step().all) / block.step_jitter.all;
      squares += drawn * drawn;
      logarithms.push_back(Seconds{10 + drawn});
    }
    // Standard errors: below 0.01 of the correlation, 0.015 of the variance with correlation 0.6.
    CHECK(std::abs(statistics_of(logarithms).lag1_correlation - correlation) < 0.04);
    CHECK(squares / steps == doctest::Approx(1).epsilon(0.06));
  }
}

TEST_CASE("what lasts shorter than a step averages out") {
  NoiseBlock::StepJitter jitter;
  jitter.all = 0.02;
  CHECK(jitter.all_in(Seconds{4}) == 0.02);
  jitter.all_lasts = Seconds{1};
  CHECK(jitter.all_in(Seconds{4}) == doctest::Approx(0.01));  // of four in a row: 0.02 / 2
  CHECK(jitter.all_in(Seconds{0.5}) == 0.02);
}

TEST_CASE("stalls come as often as their rate says, and are as long") {
  const Scenario scenario = two_nodes();
  NoiseBlock block;
  block.stalls = {36, Seconds{0.02}, 0};  // 4 GPUs: 0.04 stalls a second of 20 ms
  StepNoise noise = noise_of(block, scenario);
  const StepFactors factors = noise.next_step();
  const Work work = work_of(1, 0, 0);
  double longer = 0;
  constexpr int steps = 20, ops = 1000;
  for (int step = 0; step < steps; ++step) {
    StepDisturbance disturbance(noise, factors, static_cast<std::uint32_t>(step));
    Seconds now{};
    for (int i = 0; i < ops; ++i) {
      const Seconds time = disturbance.duration(DeviceId{0}, Stream::compute, work, now);
      longer += (time - work.duration) / Seconds{1};
      now += time;
    }
  }
  // 800 stalls are expected, with a standard error of 28.
  CHECK(longer == doctest::Approx(steps * ops * 0.04 * 0.02).epsilon(0.15));
}

TEST_CASE("steps end however often and long hosts stand still") {
  const Scenario scenario = two_nodes();
  NoiseBlock block;
  block.stalls = {1e6, Seconds{3600}, 2};
  StepNoise noise = noise_of(block, scenario);
  const StepFactors factors = noise.next_step();
  StepDisturbance disturbance(noise, factors, 0);
  const Seconds time =
      disturbance.duration(DeviceId{0}, Stream::compute, work_of(1, 0, 0), Seconds{0});
  CHECK(time > Seconds{3600});
  CHECK(time < Seconds{1e9});
}

TEST_CASE("a stall that comes while a device waits delays it by what is left of it") {
  const Scenario scenario = two_nodes();
  NoiseBlock block;
  block.stalls = {3600, Seconds{1e-3}, 0};
  StepNoise noise = noise_of(block, scenario);
  const StepFactors factors = noise.next_step();
  StepDisturbance disturbance(noise, factors, 0);
  const Work work = work_of(1e-9, 0, 0);
  // After an hour of waiting thousands of stalls have come, of which at most the last still lasts.
  const Seconds time = disturbance.duration(DeviceId{0}, Stream::compute, work, Seconds{3600});
  CHECK(time - work.duration <= Seconds{5e-3});
}

// Known answers of Random123 1.09, tests/kat_vectors: philox4x32 10.
static_assert(philox({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

TEST_CASE("normal draws have mean 0, variance 1 and the tails of the normal distribution") {
  const NoiseDraws draws(3);
  constexpr int count = 100'000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < count; ++i) {
    const double drawn = draws.normal(NoiseKind::pass, {7, 1, static_cast<std::uint32_t>(i)});
    sum += drawn;
    squares += drawn * drawn;
    beyond_two += std::abs(drawn) > 2 ? 1 : 0;
  }
  // Standard errors: 0.003 of the mean, 0.0045 of the variance, 0.0007 of the share, which is 0.0455. Four of them are allowed.
  CHECK(std::abs(sum / count) < 0.013);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.018));
  CHECK(static_cast<double>(beyond_two) / count == doctest::Approx(0.0455).epsilon(0.06));
}

TEST_CASE("a draw depends on seed, kind and place, and on nothing else") {
  const NoiseDraws draws(3);
  const double drawn = draws.uniform(NoiseKind::pass, {1, 2, 3});
  CHECK(NoiseDraws(3).uniform(NoiseKind::pass, {1, 2, 3}) == drawn);
  CHECK(NoiseDraws(4).uniform(NoiseKind::pass, {1, 2, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::latency, {1, 2, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::pass, {2, 2, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::pass, {1, 3, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::pass, {1, 2, 4}) != drawn);
}

}  // namespace
}  // namespace windtunnel
