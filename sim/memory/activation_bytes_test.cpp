#include "memory/activation_bytes.hpp"

#include <doctest/doctest.h>

#include "memory/memory_fixtures.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

// h 256, a 8, s 128, b 2, t 4: sbh = 128*2*256 = 65536; a s^2 b / t = 8*16384*2/4 = 65536 as well.
constexpr double sbh = 65536, scores = 65536;
World small_world() { return {gpt(4, 256, 8, 128, 1000), 4, 1, 1, 2, 1}; }
ActivationBytes bytes_of(const World& world) { return activation_bytes(world.model, world.plan); }

}  // namespace

TEST_CASE("a plain GPT layer keeps sbh (10 + 24/t) and 5 a s^2 b/t") {
  const ActivationBytes bytes = bytes_of(small_world());
  CHECK(bytes.boundary == Bytes{2 * sbh});
  CHECK(bytes.layer == Bytes{16 * sbh});  // 10 + 24/4
  CHECK(bytes.attention_scores == Bytes{5 * scores});
  CHECK(bytes.passing == Bytes{6 * sbh});  // 4 + 8/4
  CHECK(bytes.embedding_mask == Bytes{sbh});
  CHECK(bytes.weight_gradient == Bytes{8.0 * 256 * 256 / 4});
  CHECK(bytes.logits == Bytes{10.0 * 128 * 2 * 1024 / 4});  // 1000 padded to 1024 = 2 * 128 * 4
}

TEST_CASE("flash attention writes no scores") {
  World world = small_world();
  world.plan.training.attention = Attention::flash;
  CHECK(bytes_of(world).attention_scores == Bytes{});
}

TEST_CASE("sequence parallelism divides everything by the tensor ways") {
  World world = small_world();
  world.plan.parallel.sequence_parallel = true;
  const ActivationBytes bytes = bytes_of(world);
  CHECK(bytes.boundary == Bytes{0.5 * sbh});
  CHECK(bytes.layer == Bytes{8.5 * sbh});  // 34/4
  CHECK(bytes.attention_scores == Bytes{5 * scores});
  CHECK(bytes.passing == Bytes{3 * sbh});  // 12/4
  CHECK(bytes.embedding_mask == Bytes{0.25 * sbh});
}

TEST_CASE("grouped queries store fewer keys and values, a gated MLP a third inner tensor") {
  World world = small_world();
  world.model.kv_heads = 2;      // g = 1/4: Q 2, K and V 1/2 each, projection 2 = 5 in place of 8
  world.model.ffn_hidden = 512;  // f = 2
  CHECK(bytes_of(world).layer == Bytes{(10 + (5 + 4 * 2) / 4.0) * sbh});
  world.model.gated_mlp = true;
  const ActivationBytes bytes = bytes_of(world);
  CHECK(bytes.layer == Bytes{(10 + (5 + 6 * 2) / 4.0) * sbh});
  CHECK(bytes.passing == Bytes{(4 + 4 * 2 / 4.0) * sbh});
  CHECK(bytes.weight_gradient == Bytes{8.0 * 256 * 256 / 4});  // both halves: 2 * 2 h^2
}

TEST_CASE("fp32 values take twice the room, dropout masks do not") {
  World world = small_world();
  world.plan.training.precision = Precision::fp32;
  const ActivationBytes bytes = bytes_of(world);
  CHECK(bytes.layer == Bytes{30 * sbh});               // 4*4 + 2 masks + 48/4
  CHECK(bytes.attention_scores == Bytes{9 * scores});  // 4 + 4 + 1
  CHECK(bytes.logits == Bytes{8.0 * 128 * 2 * 1024 / 4});
}

TEST_CASE("a fully sharded layer keeps 32 sbh: no dropout masks") {
  World world(gpt(4, 256, 8, 128, 1000), 1, 1, 8, 2, 1);
  world.plan.parallel.zero_stage = 3;
  CHECK(bytes_of(world).layer == Bytes{32 * sbh});
  CHECK(bytes_of(world).logits == Bytes{4.0 * 128 * 2 * 1024});  // 1000 padded to 1024 = 8 * 128
}
