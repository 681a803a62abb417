#include <doctest/doctest.h>

#include "cost/codec_table.hpp"
#include "memory/memory_fixtures.hpp"

namespace windtunnel {
namespace {

/// 8.3B as Optimus-CC trains it, in fp32: 8 tensor ranks, 4 stages, 4 replicas, 16 microbatches of 8 samples.
fixtures::World optimus() {
  fixtures::World world(fixtures::gpt(72, 3072, 24, 1024, 50257), 8, 4, 4, 8, 16);
  world.plan.training.precision = Precision::tf32;
  world.plan.training.gradient_type = GradientType::fp32;
  return world;
}

Compressor powersgd(int rank) {
  Compressor c;
  c.codec = &codec_named("powersgd");
  c.settings["rank"] = rank;
  c.error_feedback = true;
  return c;
}

Bytes kept(const fixtures::World& world, int stage) {
  return account_stage(world.inputs(), StageId{stage}).at_peak(HeldKind::codec);
}

TEST_CASE("compressed stage messages keep factors at both ends and a residual at the sender") {
  fixtures::World world = optimus();
  world.plan.compression.pipeline_backward = powersgd(16);
  // 1024 x 3072 values: P and Q of 4096 x 16 x 4 bytes, a residual of 12,582,912 bytes. The first stage sends no gradients.
  CHECK(kept(world, 0) == 262144_B);
  CHECK(kept(world, 1) == 2 * 262144_B + 12582912_B);
  CHECK(kept(world, 3) == 262144_B + 12582912_B);
}

TEST_CASE("compressed gradients keep a residual of every matrix") {
  fixtures::World world = optimus();
  world.plan.compression.data_gradients = powersgd(128);
  world.plan.compression.data_gradients->error_feedback = true;
  world.plan.compression.gradient_stages = {CompressedStages::Kind::listed, {1}};
  // 18 layers of 12 x 3072^2 / 8 values: 1,019,215,872 bytes; factors 155,713,536 bytes.
  CHECK(kept(world, 1) == Bytes{1019215872 + 155713536});
  CHECK(kept(world, 2) == 0_B);
}

TEST_CASE("what compression keeps is part of a stage's buffers, and of what it allocates") {
  fixtures::World world = optimus();
  const StageMemory before = account_stage(world.inputs(), StageId{1});
  world.plan.compression.pipeline_backward = powersgd(16);
  const StageMemory after = account_stage(world.inputs(), StageId{1});
  const Bytes codec = after.at_peak(HeldKind::codec);
  CHECK(codec == Bytes{2 * 262144 + 12582912});
  CHECK(after.buffers / (before.buffers + codec) == doctest::Approx(1).epsilon(1e-12));
  CHECK(after.allocated / (before.allocated + codec) == doctest::Approx(1).epsilon(1e-12));
  CHECK(after.total > before.total);
}

TEST_CASE("a library's buffer bounds what is kept encoded, and fixed keeps nothing") {
  fixtures::World world = optimus();
  Compressor zfp;
  zfp.codec = &codec_named("zfp");
  zfp.settings["rate"] = 8;
  world.plan.compression.data_gradients = zfp;
  // A block: a quarter of 1,019,215,872 bytes, 4 times smaller; one sent and one received.
  CHECK(kept(world, 1) == Bytes{2 * 1019215872.0 / 4 / 4});
  world.plan.compression.data_gradients->buffer = 32_MB;
  CHECK(kept(world, 1) == 16_MB);
  world.plan.compression.data_gradients->codec = &codec_named("fixed");
  CHECK(kept(world, 1) == 0_B);
}

}  // namespace
}  // namespace windtunnel
