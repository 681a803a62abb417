#include "cost/end_of_iteration.hpp"

#include <doctest/doctest.h>

#include <string>

namespace windtunnel {
namespace {

/// Tied words of 1,024 x 64; three stages, four replicas; a stage of 1,000 parameters, 250 of which a rank steps.
struct LastWork {
  Transformer model;
  Plan plan;
  SoftwareProfile software;
  Device device;
  Host host;
  ParameterCounts parameters{1000, 1000, 1000, 250};

  LastWork() {
    model.hidden = 64;
    model.vocab = 1024;
    plan.parallel.pipeline = 3;
    plan.parallel.data = 4;
    plan.training.gradient_type = GradientType::fp32;
    software.optimizer_bytes = 20;
    software.iteration_overhead = 5_ms;
    device.memory_bandwidth = BytesPerSecond{1e6};
    device.memory_efficiency = 1;
  }
  std::vector<Operation> end(int stage) const {
    NodeType node;
    node.device = device;
    node.host = host;
    return end_of_iteration({&model, &plan, &software, &node, StageId{stage}, parameters});
  }
  std::string text(int stage) const {
    std::string text;
    for (const Operation& operation : end(stage))
      text += (text.empty() ? "" : ", ") + std::string(row_of(operation.label).text);
    return text;
  }
};

TEST_CASE("replicas reduce their gradients, the first and the last stage add up tied words") {
  const LastWork world;
  CHECK(world.text(0) ==
        "all-reduce of gradients, all-reduce of the word embedding, optimizer step, overhead");
  CHECK(world.text(1) == "all-reduce of gradients, optimizer step, overhead");
  CHECK(world.text(2) == world.text(0));
  const std::vector<Operation> end = world.end(0);
  CHECK(end[0].payload == Bytes{4000});
  CHECK(end[1].payload == Bytes{4.0 * 1024 * 64});
  CHECK(end[2].time / 1_s == doctest::Approx(20 * 250 / 1e6));
  CHECK(end[3].time == 5_ms);
}

TEST_CASE("narrower states are stepped in less time, Muon's matrices in more") {
  LastWork world;
  world.plan.training.precision = Precision::bf16;
  const auto step = [&world] { return find(world.end(1), Label::optimizer_step)->time / 1_s; };
  CHECK(step() == doctest::Approx(20 * 250 / 1e6));
  world.plan.training.first_moment = MomentType::bf16;  // 2 bytes less, read and written
  CHECK(step() == doctest::Approx(16 * 250 / 1e6));
  world.plan.training.first_moment = MomentType::fp32;
  world.plan.training.optimizer = Optimizer::muon;
  world.plan.stage_layers = {0, 0, 0};
  world.model.heads = world.model.kv_heads = 4;
  world.parameters.matrices = 100;  // each with a moment less: 8 bytes of traffic
  CHECK(step() == doctest::Approx((20 * 250 - 8 * 100) / 1e6));
}

TEST_CASE("a host steps its parameters alongside the GPU, between two copies") {
  LastWork world;
  world.plan.training.precision = Precision::bf16;
  world.plan.training.optimizer_offload = 0.8;  // 200 of 250
  // Gradients 4 · 200 and weights 2 · 200 at 100 B/s; 4 + 2 · 12 bytes of each at 1000 B/s.
  world.host = {.link = BytesPerSecond{200},
                .link_efficiency = 0.5,
                .memory_bandwidth = BytesPerSecond{2000},
                .memory_efficiency = 0.5};
  const auto step = [&world] { return find(world.end(1), Label::optimizer_step)->time / 1_s; };
  CHECK(step() == doctest::Approx(8 + 5.6 + 4));
  world.plan.training.overlap_optimizer_offload = true;
  CHECK(step() == doctest::Approx(8));
  world.host.link = BytesPerSecond{1e9};
  CHECK(step() == doctest::Approx(5.6));
  world.host.memory_bandwidth = BytesPerSecond{1e9};
  CHECK(step() == doctest::Approx(20 * 50 / 1e6));  // what is left on the GPU
}

TEST_CASE("of adapters alone gradients are reduced") {
  LastWork world;
  world.parameters.frozen = 900;
  CHECK(world.end(1)[0].payload == Bytes{400});
}

TEST_CASE("gradients are zeroed and scaled whole, and not where they are sharded") {
  LastWork world;
  world.software.zeroes_gradients = true;
  const auto step = [&world] { return find(world.end(1), Label::optimizer_step)->time / 1_s; };
  const double optimizer = 20 * 250 / 1e6;
  CHECK(step() == doctest::Approx(optimizer + 4000 / 1e6));  // 1000 gradients of 4 bytes
  world.software.scales_gradients = true;
  CHECK(step() == doctest::Approx(optimizer + 3 * 4000 / 1e6));
  world.software.copies_gradients = true;  // to a bucket and back: two reads, two writes
  CHECK(step() == doctest::Approx(optimizer + 7 * 4000 / 1e6));
  world.plan.parallel.zero_stage = 2;
  CHECK(step() == doctest::Approx(optimizer));
  world.plan.parallel.zero_stage = 1;
  world.plan.parallel.data = 1;
  CHECK(step() == doctest::Approx(optimizer + 4000 / 1e6));  // one replica has nothing to average
}

TEST_CASE("a V of three chunks synchronises tied words where it begins and ends") {
  LastWork world;
  world.plan.parallel.virtual_pipeline = 3;
  world.plan.parallel.schedule = schedule_named("zero_bubble_v");
  for (const int stage : {0, 1, 2})
    CHECK((find(world.end(stage), Label::synchronise_embedding) != nullptr) == (stage != 1));
}

TEST_CASE("a replica that steps a shard scatters gradients and gathers parameters") {
  LastWork world;
  world.plan.parallel.zero_stage = 1;
  world.plan.parallel.overlap_gradient_reduce = true;
  CHECK(world.text(1) ==
        "reduce-scatter of gradients, optimizer step, all-gather of parameters, overhead");
  CHECK(world.end(1)[0].overlap == Overlap::trailing);
  CHECK(world.end(1)[2].payload == Bytes{2000});
  // Gradients are reduced in the passes.
  world.plan.parallel.zero_stage = 2;
  CHECK(world.text(1) == "optimizer step, all-gather of parameters, overhead");
  world.plan.parallel.zero_stage = 3;
  world.plan.parallel.pipeline = 1;
  CHECK(world.text(1) == "optimizer step, overhead");
}

TEST_CASE(
    "a pass reduces what its chunk has made where gradients are sharded or reductions overlap") {
  LastWork world;
  world.plan.parallel.expert = 2;
  world.parameters.experts = world.parameters.trained_experts = 400;
  const auto reductions = [&world] {
    return chunk_reductions(
        {&world.model, &world.plan, &world.software, nullptr, StageId{1}, world.parameters}, 0);
  };
  CHECK(reductions().empty());  // all at the end
  // 600 parameters of 4 bytes among four replicas, 400 of experts among two.
  world.plan.parallel.zero_stage = 2;
  REQUIRE(reductions().size() == 2);
  CHECK(reductions()[0].label == Label::scatter_gradients);
  CHECK(reductions()[0].payload == Bytes{2400});
  CHECK(reductions()[1].label == Label::scatter_expert_gradients);
  CHECK(reductions()[1].payload == Bytes{1600});
  // During the last pass that makes them; experts reduce theirs at the end.
  world.plan.parallel.zero_stage = 0;
  world.plan.parallel.overlap_gradient_reduce = true;
  REQUIRE(reductions().size() == 1);
  CHECK(reductions()[0].label == Label::reduce_gradients);
  CHECK(reductions()[0].overlap == Overlap::trailing);
}

TEST_CASE("sharding groups scatter, then add up their shards with those of the other groups") {
  LastWork world;
  world.plan.parallel.zero_stage = 1;
  world.plan.parallel.zero_group = 2;
  CHECK(world.text(1) ==
        "reduce-scatter of gradients, all-reduce of shards, optimizer step, all-gather of "
        "parameters, overhead");
  CHECK(world.end(1)[0].payload == Bytes{4000});
  CHECK(world.end(1)[1].payload == Bytes{2000});  // one of two shards
  world.plan.parallel.zero_group = 4;             // one group
  CHECK(find(world.end(1), Label::reduce_shards) == nullptr);
  // On every microbatch where gradients are shards.
  world.plan.parallel.zero_group = 2;
  world.plan.parallel.zero_stage = 2;
  CHECK(find(world.end(1), Label::reduce_shards) == nullptr);
  const std::vector<Operation> reductions = chunk_reductions(
      {&world.model, &world.plan, &world.software, nullptr, StageId{1}, world.parameters}, 0);
  REQUIRE(reductions.size() == 2);
  CHECK(reductions[1].label == Label::reduce_shards);
}

TEST_CASE("owners of whole tensors have all gradients reduced, and broadcast what they stepped") {
  LastWork world;
  world.plan.parallel.zero_stage = 1;
  world.plan.parallel.zero_group = 2;
  world.plan.broadcast_tensors = 9;
  CHECK(world.text(1) ==
        "all-reduce of gradients, optimizer step, broadcasts of parameters, overhead");
  // An even shard of 250 in the middle; where the words are, their owner steps 1,024 x 64.
  CHECK(world.end(1)[1].time / 1_s == doctest::Approx(20 * 250 / 1e6));
  CHECK(find(world.end(0), Label::optimizer_step)->time / 1_s ==
        doctest::Approx(20 * 1024 * 64 / 1e6));
  world.plan.parallel.zero_stage = 0;
  CHECK(world.text(1) == "all-reduce of gradients, optimizer step, overhead");
}

TEST_CASE("one replica has nobody to reduce gradients with") {
  LastWork world;
  world.plan.parallel.data = 1;
  world.plan.parallel.zero_stage = 1;
  CHECK(world.text(1) == "optimizer step, overhead");
}

TEST_CASE("stages with ZeRO 3 scatter gradients once an iteration, and gather parameters once") {
  LastWork world;
  world.plan.parallel.zero_stage = 3;
  world.plan.parallel.reshard_after_forward = false;
  CHECK(world.text(1) ==
        "reduce-scatter of gradients, optimizer step, all-gather of parameters, overhead");
  // Scattered and gathered in the passes where there are no stages.
  world.plan.parallel.pipeline = 1;
  CHECK(world.text(0).find("gather") == std::string::npos);
  CHECK(world.text(0).find("scatter") == std::string::npos);
}

}  // namespace
}  // namespace windtunnel
