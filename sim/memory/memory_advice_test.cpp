#include "memory/memory_advice.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>

#include "core/testing.hpp"
#include "memory/memory_fixtures.hpp"
#include "plan/schedule.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

/// 48 layers of h 4096 without recomputation, t 4, p 2, D 2, b 4. On the first stage, in GiB:
///   N = 24 * 50.36e6 + 52.4e6 + 8.4e6 = 1.269e9, so 16 N = 18.92 and 20 N = 23.65
///   sbh = 2^25 and a s^2 b/t = 2^27: a layer keeps 16 * 32 + 5 * 128 = 1152 MiB; 2 * (24 * 1152 +
///   3 * 32 MiB) = 54.19 live = 8h^2/t 32 + passing 192 - 64 + 46 MiB = 0.20 needs 1.065 * 73.31
///   + 2.3 = 80.4; selective 1.065 * (18.92 + 24.19 + 0.20 + 0.63) + 2.3 = 49.1; full 1.065 * 20 N
///   + 2.3 = 27.5 (the step decides). The allocator reserves its pool alone, and nothing is at risk while it fits.
World large_world() {
  World world(gpt(48, 4096, 32, 2048, 51200), 4, 2, 2, 4, 8);
  world.plan.training.recompute = Recompute::none;
  world.software.allocator_slack = 1;
  world.software.reserved_scatter = 0;
  return world;
}

/// "29.1 GiB": what `run` shows of the plan.
std::string in_use(const World& world) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", world.account().max_total / 1_GiB);
  return text;
}

World recomputed(World world, Recompute recompute) {
  world.plan.training.recompute = recompute;
  return world;
}

}  // namespace

TEST_CASE("advice names the stage, what is missing, and the first changes that fit") {
  CHECK(large_world().account().advice ==
        "stage 0 needs 80.4 GiB, the GPU has 79.2 GiB: 1.2 GiB too much; fits with recompute "
        "\"selective\" (" +
            in_use(recomputed(large_world(), Recompute::selective)) + ") or recompute \"full\" (" +
            in_use(recomputed(large_world(), Recompute::full)) + ")");
}

TEST_CASE("a plan that fits gets no advice") {
  const World world = recomputed(large_world(), Recompute::full);
  const MemoryAccount account = world.account();
  CHECK(account.fits);
  CHECK(account.advice.empty());
  CHECK(std::abs(account.stages.front().required / one_GiB - 27.5) < 0.05);
}

TEST_CASE("flash attention has no scores to compute again") {
  // Kept of a layer: 512 MiB; 1.065 * (18.92 + 24.19 + 0.20) + 2.3 = 48.4 GiB; recomputed, about 1.065 * 20 N + 2.3 = 27.5.
  World world = large_world();
  world.plan.training.attention = Attention::flash;
  world.device.usable_memory = 40_GiB;
  const std::string advice = world.account().advice;
  CHECK(contains(advice, "needs 48.4 GiB"));
  CHECK_FALSE(contains(advice, "selective"));
  CHECK(contains(
      advice, "fits with recompute \"full\" (" + in_use(recomputed(world, Recompute::full)) + ")"));
}

TEST_CASE("a fully recomputed plan gets a smaller microbatch, more stages or sharding") {
  World world = large_world();
  world.plan.training.recompute = Recompute::full;
  SUBCASE("microbatch") {
    // b 16, sbh 128 MiB: 2 * 51 * 128 MiB + live 5.1 GiB = 17.8; b 8 half of it.
    world.plan.training.micro_batch = 16;
    world.device.usable_memory = 35_GiB;
    CHECK(contains(world.account().advice, "fits with micro_batch 8 ("));
  }
  // Half the layers a stage: N = 665e6 needs 1.065 * 20 N + 2.3 = 15.5 GiB.
  SUBCASE("stages, paid for with replicas") {
    world.plan.training.micro_batch = 1;
    world.device.usable_memory = 20_GiB;
    CHECK(contains(world.account().advice, "fits with pipeline 4 and data 1 ("));
  }
  SUBCASE("stages, on more GPUs when there is one replica") {
    world.plan.training.micro_batch = 1;
    world.plan.parallel.data = 1;
    world.device.usable_memory = 20_GiB;
    CHECK(contains(world.account().advice, "fits with pipeline 4 on twice the GPUs ("));
  }
  SUBCASE("sharding, when stages cannot be cut") {
    // 46 layers do not divide by 4. N = 1.219e9; step: (4 + 12/2 + 4/2) N; 1.065 * 12 N + 2.3
    // = 16.8 GiB.
    world.plan.training.micro_batch = 1;
    world.model.layers = 46;
    world.plan.stage_layers = {23, 23};
    world.device.usable_memory = 20_GiB;
    CHECK(contains(world.account().advice, "fits with zero_stage 1 ("));
  }
}

TEST_CASE("a schedule that the user wrote keeps its stages and microbatches") {
  // All but the change of the schedule's shape: no pipeline 4, no smaller microbatch, and no tensor 8 with half the replicas.
  World world = large_world();
  world.plan.parallel.schedule =
      written_schedule(schedule_orders(*schedule_named("1f1b"), {2, 8, 1}));
  const std::string as_shipped = large_world().account().advice;
  CHECK(world.account().advice == as_shipped);  // recomputation fits
  world.device.usable_memory = 10_GiB;
  CHECK(contains(world.account().advice, "no single change fits"));
  CHECK_FALSE(contains(world.account().advice, "pipeline"));
  CHECK_FALSE(contains(world.account().advice, "micro_batch"));
  CHECK_FALSE(contains(world.account().advice, "tensor"));
}

TEST_CASE("whole gradients are scattered before anything is computed again") {
  World world = large_world();
  world.plan = World(gpt(48, 4096, 32, 2048, 51200), 4, 1, 4, 1, 8).plan;
  world.plan.parallel.zero_stage = 3;
  world.plan.parallel.no_sync = world.plan.parallel.overlap_gradient_reduce = true;
  world.software.sharded_parameters = ShardedParameters::each;
  world.device.usable_memory = world.account().stages.front().required - 1_MiB;
  CHECK(contains(world.account().advice, "fits with no_sync false ("));
}

TEST_CASE("what is at risk comes behind what surely fits") {
  World world = recomputed(large_world(), Recompute::full);
  world.plan.training.micro_batch = 1;
  world.software.reserved_scatter = 0.02;
  // Pipeline 4 has 15.5 GiB in use, of which 13.2 are reserved: 2 % of them are more than is left of 15.6. Tensor 8 has 15.0 GiB.
  world.device.usable_memory = 15.6 * 1_GiB;
  CHECK(contains(
      world.account().advice,
      "fits with tensor 8 and data 1 (15.0 GiB) or pipeline 4 and data 1 (15.5 GiB, at risk)"));
}

TEST_CASE("a bound of memory is called one, and comes behind what surely fits") {
  World world = large_world();
  world.plan = World(gpt(48, 4096, 32, 2048, 51200), 4, 1, 4, 4, 8).plan;
  world.plan.training.recompute = Recompute::none;
  world.plan.parallel.zero_stage = 3;
  world.software.sharded_parameters = ShardedParameters::uncounted;
  world.device.usable_memory = world.account().stages.front().required - 1_MiB;
  CHECK(contains(world.account().advice, "(at least "));
}

TEST_CASE("a bound with nothing to spare is said to be at risk too") {
  World world = large_world();
  world.plan = World(gpt(48, 4096, 32, 2048, 51200), 4, 1, 4, 4, 8).plan;
  world.plan.training.recompute = Recompute::none;
  world.plan.parallel.zero_stage = 3;
  world.software.sharded_parameters = ShardedParameters::uncounted;
  world.plan.gpus_per_node = 4;                                // no larger tensor groups
  world.plan.parallel.stage_layers = world.plan.stage_layers;  // nor more stages
  // Full recomputation fits, and not with a fifth more of what is reserved.
  world.software.reserved_scatter = 0.2;
  World full = recomputed(world, Recompute::full);
  full.device.usable_memory = full.account().stages.front().required + 1_MiB;
  world.device.usable_memory = full.device.usable_memory;
  const std::string advice = world.account().advice;
  CAPTURE(advice);
  CHECK(contains(advice, "recompute \"full\" (at least " + in_use(full) + ", at risk)"));
}

TEST_CASE("the loss that holds least is offered first, where the stack is known to have it") {
  World world = recomputed(large_world(), Recompute::full);
  world.plan = World(gpt(4, 1024, 16, 2048, 256000), 1, 1, 8, 4, 32).plan;
  world.model = gpt(4, 1024, 16, 2048, 256000);
  world.plan.training.recompute = Recompute::full;
  const auto offered = [&](CrossEntropy own, CrossEntropy used) {
    World other = world;
    other.software.cross_entropy = own;
    other.plan.training.cross_entropy = used;
    other.device.usable_memory = other.account().stages.front().required - 1_MiB;
    return other.account().advice;
  };
  // Of 2048 * 4 * 256000 logits plain holds 12 bytes, chunked 0.5.
  CHECK(contains(offered(CrossEntropy::plain, CrossEntropy::plain),
                 "fits with cross_entropy \"chunked\" ("));
  CHECK(contains(offered(CrossEntropy::plain_returned, CrossEntropy::plain_returned),
                 "fits with cross_entropy \"chunked\" ("));
  CHECK(contains(offered(CrossEntropy::vocab_parallel, CrossEntropy::vocab_parallel_compiled),
                 "fits with cross_entropy \"in_place\" ("));
  CHECK_FALSE(contains(offered(CrossEntropy::plain, CrossEntropy::chunked), "cross_entropy"));
  CHECK_FALSE(contains(offered(CrossEntropy::vocab_parallel, CrossEntropy::vocab_parallel),
                       "cross_entropy"));
}

TEST_CASE("a degree is raised as far as it takes, and no further") {
  World world = large_world();
  world.plan.parallel.tensor = 1;
  world.plan.parallel.data = 8;
  world.plan.gpus_per_node = 8;
  const auto needed = [&](int tensor) {
    World other = world;
    other.plan.parallel.tensor = tensor;
    other.plan.parallel.data = 8 / tensor;
    return other.account().stages.front().required;
  };
  REQUIRE(needed(4) < needed(2));
  world.plan.training.recompute = Recompute::full;
  world.plan.training.micro_batch = 1;
  world.plan.parallel.zero_stage = 1;
  world.plan.parallel.stage_layers = world.plan.stage_layers;  // no other number of stages
  world.device.usable_memory = needed(4) + 1_GiB;
  REQUIRE(world.device.usable_memory < needed(2));
  const std::string advice = world.account().advice;
  CHECK(contains(advice, "fits with tensor 4 and data 2 ("));
  CHECK_FALSE(contains(advice, "tensor 8"));
}

TEST_CASE("when no single change fits the nearest is named") {
  World world = large_world();
  world.device.usable_memory = 10_GiB;
  CHECK(contains(world.account().advice,
                 "no single change fits; nearest is recompute \"full\" (27.5 GiB)"));
}
