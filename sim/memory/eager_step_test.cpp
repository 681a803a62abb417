#include "memory/eager_step.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "cost/codec_table.hpp"
#include "memory/memory_correction.hpp"
#include "memory/memory_fixtures.hpp"

namespace windtunnel {
namespace {

/// Microbatches of one sequence of 8,192 tokens, 16 MiB of a layer's output; 20 MiB of word embeddings. 18 bytes a parameter, workspaces of
/// 64 MiB.
fixtures::World eager_world(int tensor, int pipeline, int data) {
  fixtures::World world(fixtures::gpt(4, 1024, 8, 8192, 10240), tensor, pipeline, data, 1, 8);
  world.model.family = "llama";
  world.model.gated_mlp = world.model.rotary = true;
  world.model.vocab_divisor = 1;
  world.plan.training.precision = Precision::bf16;
  world.plan.training.gradient_type = GradientType::fp32;
  world.plan.training.recompute = Recompute::none;
  world.plan.training.attention = Attention::flash;
  world.plan.parallel.sequence_parallel = tensor > 1;
  world.software.states_bf16 = {
      .gradients = 4, .pass_gradients = 2, .buckets = 2, .gathered_copies = 2};
  world.software.gradient_type = GradientType::fp32;
  world.software.workspaces = 64_MiB;
  world.plan.training.cross_entropy = CrossEntropy::vocab_parallel_copied;
  world.software.waiting_collectives = 45;
  return world;
}

double mebibytes(const fixtures::World& world, ChunkRole role, int in_flight) {
  return reserved_by_eager_step(
             {world.model, world.plan, world.software, role, in_flight, false, 80_GiB})
             .most /
         1_MiB;
}

TEST_CASE("a stage of the word embedding alone, worked by hand") {
  const ChunkRole embedding{.layers = 0, .first = true};
  SUBCASE("one replica") {
    // Weights 20, sums of gradients 40, copies 40, a workspace 32, as no product runs backward; a microbatch's output 16, which its
    // gradient uses again; the weights' gradient 20; two moments of 40 each, which no free block holds.
    CHECK(mebibytes(eager_world(1, 2, 1), embedding, 1) == 248);
  }
  SUBCASE("two replicas that share states") {
    fixtures::World world = eager_world(1, 2, 2);
    world.plan.parallel.zero_stage = 1;
    // Copies 20; of two moments of 20 one takes the gradient's block. The step gathers the shard of 10, which takes the output's block, into
    // two of 10 and one of 20, which the next gradient takes.
    CHECK(mebibytes(world, embedding, 1) == 208);
  }
  SUBCASE("two replicas with buckets") {
    // The second time a bucket is made before the first is gone: it takes the gradient's block, and the first's is the gradient's then.
    CHECK(mebibytes(eager_world(1, 2, 2), embedding, 1) == 268);
  }
}

TEST_CASE("blocks of collectives wait") {
  const auto waiting = [](int pipeline, int in_flight) {
    fixtures::World world = eager_world(2, pipeline, 1);
    const ChunkRole role{.layers = 4, .first = true, .last = pipeline == 1};
    const double with = mebibytes(world, role, in_flight);
    world.software.waiting_collectives = 1;
    return with - mebibytes(world, role, in_flight);
  };
  CHECK(waiting(1, 1) > 8 * 16);  // at least those of a forward pass
  CHECK(waiting(4, 3) > 8 * 16);
}

TEST_CASE("each microbatch in flight costs what it keeps") {
  fixtures::World world = eager_world(1, 4, 1);
  const auto cost = [&world](int in_flight) {
    const ChunkRole first{.layers = 4, .first = true};
    return mebibytes(world, first, in_flight + 1) - mebibytes(world, first, in_flight);
  };
  SUBCASE("nothing is recomputed") {
    // Four layers of: two inputs and two norms' outputs, copies of queries, keys and values, of keys and values, and attention's output,
    // 16 MiB each; gate and up, activated, product, 64 MiB each.
    constexpr double kept = 4 * (4 * 16 + 3 * 16 + 2 * 16 + 16 + 4 * 64);
    for (const int in_flight : {2, 3})
      CHECK(cost(in_flight) == doctest::Approx(kept).epsilon(0.05));
  }
  SUBCASE("all layers are recomputed from their inputs") {
    world.plan.training.recompute = Recompute::full;
    for (const int in_flight : {2, 3})
      CHECK(cost(in_flight) == doctest::Approx(4 * 16).epsilon(0.2));
  }
}

TEST_CASE("the account simulates the steps that are known") {
  fixtures::World world = eager_world(2, 1, 1);
  ChunkRole whole{.layers = 4, .first = true, .last = true};
  SUBCASE("with sequence parallelism") {}
  SUBCASE("without") { world.plan.parallel.sequence_parallel = false; }
  SUBCASE("recomputed in part") {
    world.plan.training.recompute = Recompute::full;
    world.plan.training.recompute_layers.first = 1;
    whole.not_recomputed = 3;
    whole.leaves_out_last = true;
  }
  CHECK(account_stage(world.inputs(), StageId{0}).reserved / 1_MiB ==
        doctest::Approx(mebibytes(world, whole, 1)));
}

TEST_CASE("of other steps the account has the slack") {
  fixtures::World world = eager_world(2, 1, 1);
  SUBCASE("of another stack") { world.software.waiting_collectives = 0; }
  SUBCASE("recomputed by operations") { world.plan.training.recompute = Recompute::selective; }
  SUBCASE("without a gate") { world.model.gated_mlp = false; }
  SUBCASE("with backward passes in two") {
    world.plan.parallel.schedule = schedule_named("zero_bubble_h1");
  }
  SUBCASE("with codecs") {
    Compressor& codec = world.plan.compression.data_gradients.emplace();
    codec.codec = &codec_named("int8");
  }
  const StageMemory stage = account_stage(world.inputs(), StageId{0});
  CHECK(stage.reserved == stage.pool * world.software.allocator_slack);
}

/// Multiplies every account by `factor`.
MemoryCorrection constant_correction(double factor) {
  MemoryCorrection correction;
  correction.mean.assign(memory_feature_names().size(), 0);
  correction.scale.assign(memory_feature_names().size(), 1);
  correction.most = std::abs(std::log(factor));
  correction.output = {1000 * std::log(factor)};  // saturates: exp(most)
  correction.held_out = {10, 5, 0.02, 0.01};
  return correction;
}

TEST_CASE("a correction is the same as a device that is smaller by its factor") {
  fixtures::World world = eager_world(2, 1, 1);
  for (const double factor : {0.93, 1.05}) {
    const MemoryCorrection correction = constant_correction(factor);
    // From where tensors alone do not fit to where nothing is ever returned to the device.
    for (int percent = 95; percent < 150; percent += 1) {
      world.device.usable_memory = 80_GiB;
      MemoryInputs inputs = world.inputs();
      const StageMemory alone = account_stage(inputs, StageId{0});
      const Bytes for_allocator = alone.allocated * (percent / 100.0);
      world.device.usable_memory = alone.context + for_allocator;
      const StageMemory smaller = account_stage(inputs, StageId{0});
      world.device.usable_memory = alone.context + for_allocator * factor;
      inputs.correction = &correction;
      const StageMemory corrected = account_stage(inputs, StageId{0});
      CAPTURE(percent);
      CHECK(corrected.verdict == smaller.verdict);
      CHECK(corrected.is_simulated == smaller.is_simulated);
      CHECK(corrected.reserved / smaller.reserved == doctest::Approx(factor));
    }
  }
}

TEST_CASE("sequences that are not divided cost each rank of a tensor group whole ones") {
  const ChunkRole layer{.layers = 1};
  const auto kept = [&layer](bool divided) {
    fixtures::World world = eager_world(2, 4, 1);
    world.plan.parallel.sequence_parallel = divided;
    world.software.waiting_collectives = 0;
    return mebibytes(world, layer, 3) - mebibytes(world, layer, 2);
  };
  // Two inputs and two norms' outputs of 16 MiB, of which a rank keeps all and not half.
  CHECK(kept(false) - kept(true) == doctest::Approx(4 * 8).epsilon(0.2));
}

TEST_CASE("blocks of collectives wait if the GPU has more to do than the host") {
  const auto waiting = [](int pipeline, int nodes = 1, Seconds per_rank = 1_ms) {
    fixtures::World world = eager_world(2, pipeline, 1);
    world.software.launch.per_rank_in = DelayedLaunches::jobs;
    world.software.launch.collective_per_rank = per_rank;
    world.plan.devices.assign(2, {});
    world.plan.devices[1].node = NodeId{nodes - 1};
    const ChunkRole role{.layers = 4, .first = true, .last = pipeline == 1};
    const auto reserved = [&](bool is_launch_bound) {
      return reserved_by_eager_step({world.model, world.plan, world.software, role,
                                     std::min(pipeline, 2), is_launch_bound, 80_GiB})
                 .most /
             1_MiB;
    };
    return reserved(false) - reserved(true);
  };
  SUBCASE("with two microbatches in flight") { CHECK(waiting(2) > 8 * 16); }
  SUBCASE("without a pipeline, on one node") { CHECK(waiting(1) == 0); }
  SUBCASE("on several, where launches are delayed") { CHECK(waiting(1, 2) > 8 * 16); }
  SUBCASE("on several without delay") { CHECK(waiting(1, 2, 0_s) == 0); }
}

}  // namespace
}  // namespace windtunnel
