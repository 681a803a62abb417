#include "memory/memory_account.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "core/contracts.hpp"
#include "cost/codec_table.hpp"
#include "memory/memory_fixtures.hpp"
#include "plan/plan.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

StageMemory first_stage(const World& world) { return world.account().stages.front(); }

void check_lines_add_up(const StageMemory& stage) {
  CHECK(stage.weights + stage.gradients + stage.optimizer + stage.activations + stage.buffers ==
        stage.allocated);
  CHECK(sum_at(stage.tensors, stage.peak) == stage.allocated);
}

/// Bytes per parameter while training, and the step's own.
void check(const StateBytes& bytes, double sum, double step_temporary) {
  CHECK(bytes.weights + bytes.gradients + bytes.stale_gradients + bytes.optimizer ==
        doctest::Approx(sum));
  CHECK(bytes.step_temporary == doctest::Approx(step_temporary));
}

Bytes bytes_of(const std::vector<HeldTensor>& tensors, HeldKind kind) {
  Bytes sum{};
  for (const HeldTensor& tensor : tensors)
    if (tensor.kind == kind) sum += tensor.bytes;
  return sum;
}

/// 8.3B as Optimus-CC trains it, in fp32: 8 tensor ranks, 4 stages, 4 replicas, 16 microbatches of 8 samples.
World optimus() {
  World world(gpt(72, 3072, 24, 1024, 50257), 8, 4, 4, 8, 16);
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

Bytes kept(const World& world, int stage) {
  return account_stage(world.inputs(), StageId{stage}).at_peak(HeldKind::codec);
}

}  // namespace

TEST_CASE("a first stage that recomputes keeps l + 1 stage inputs and a mask of each microbatch") {
  // 2 in flight, each 4 * 2 + 2 + 1 = 11 MiB.
  const StageMemory stage = first_stage(small_world());
  CHECK(stage.activation_per_microbatch == 11_MiB);
  CHECK(stage.microbatches_in_flight == 2);
}

TEST_CASE("lines add up to what is allocated, in the phase that sets it") {
  World world = small_world();
  SUBCASE("backward: the step frees more than it needs") {
    world.software = megatron_lm_2021();
    const StageMemory stage = first_stage(world);
    CHECK(stage.peak == Moment::backward);
    CHECK(stage.activations == 22_MiB);
    // work = 8h^2 + 34 + 80 + 12 - 2 MiB + 46 MiB = 178 MiB; 5as^2b = 80 MiB.
    CHECK(stage.buffers == 178_MiB);
    check_lines_add_up(stage);
  }
  SUBCASE("step: 4 N of fp32 gradients are more than a small microbatch") {
    // N = 4 * 12.6e6 + 52.4e6 + 1.0e6 = 104e6; 4 N = 397 MiB against 22 + 132 MiB.
    const StageMemory stage = first_stage(world);
    CHECK(stage.peak == Moment::step);
    CHECK(stage.activations == Bytes{});
    CHECK(stage.at_peak(HeldKind::step_temporary) == Bytes{4 * stage.parameters});
    check_lines_add_up(stage);
    // pool = 16 N + act + step: both phases' temporaries share one pool.
    CHECK(stage.pool == Bytes{20 * stage.parameters} + 22_MiB);
  }
  SUBCASE("first backward: a pipeline full of activations before gradients exist") {
    world.plan.parallel.schedule = schedule_named("gpipe");
    world.plan.training.recompute = Recompute::none;
    world.software = megatron_lm_2021();
    const StageMemory stage = first_stage(world);
    // One microbatch of 4 * (34 + 80) + 2 + 1 = 459 MiB is more than 2 N = 198 MiB.
    CHECK(stage.activations == 4 * 459_MiB);
    CHECK(stage.at_peak(HeldKind::gradients) == Bytes{});
    check_lines_add_up(stage);
    CHECK(stage.reserved >= stage.allocated);
  }
}

TEST_CASE("each operation's tensors are on the list: their name, their number and their bytes") {
  World world = small_world();
  const auto stage_at = [&world](int stage) {
    MemoryInputs inputs = world.inputs();
    inputs.in_flight = {3, 3};
    inputs.in_flight_with_gradients = {2, 2};
    return account_stage(inputs, StageId{stage});
  };
  const auto check = [](const StageMemory& stage, const std::string& name, double count,
                        Bytes each) {
    CAPTURE(name);
    Bytes bytes{};
    double found = 0;
    for (const HeldTensor& tensor : stage.tensors_at_peak())
      if (name_of(tensor) == name) {
        bytes += tensor.bytes;
        found += tensor.count;
      }
    CHECK(found == count);
    CHECK(bytes == each * count);
  };
  SUBCASE("nothing recomputed: the first backward pass, with three microbatches and no gradients") {
    world.plan.training.recompute = Recompute::none;
    const StageMemory stage = stage_at(0);
    CHECK(stage.peak == Moment::first_backward);
    check(stage, "weights", stage.parameters, 2_B);
    check(stage, "gradients", 0, 0_B);
    check(stage, "master weights", stage.parameters, 4_B);
    check(stage, "optimizer states", stage.parameters, 8_B);
    // 4 layers of 3 microbatches. Input and norm 2 + 2, mask 1, queries, keys, values and output 8; scores 5 a s^2 b.
    check(stage, "saved by attention", 12, 13_MiB);
    check(stage, "scores of attention", 12, 80_MiB);
    check(stage, "saved by feed-forward", 12, 21_MiB);  // 2 + 2 + 1 and 2 * 4 * 2
    check(stage, "saved by embedding", 3, 1_MiB);
    check(stage, "outputs sent to another stage", 3, 2_MiB);
    check(stage, "weight gradient of feed-forward", 1, 8_MiB);  // 2 * 4 h^2
    check(stage, "gradients through feed-forward", 1, 10_MiB);  // 2 and 2 * 4
    check(stage, "gradients through attention", 0, 0_B);        // nothing is sent back
    CHECK(stage.allocated == Bytes{14 * stage.parameters} + (3 * 459 + 18) * 1.0 * one_MiB);
    CHECK(stage.tensors_at_peak().size() == 10);
  }
  SUBCASE("all recomputed: a later backward pass holds one layer's tensors, and stale gradients") {
    world.software = megatron_lm_2021();
    const StageMemory stage = stage_at(0);
    CHECK(stage.peak == Moment::backward);
    check(stage, "gradients", stage.parameters, 2_B);
    check(stage, "gradients of the last step", stage.parameters, 6_B);
    check(stage, "saved by attention", 8, 2_MiB);
    check(stage, "saved by recomputed attention", 1, 13_MiB);
    check(stage, "scores of recomputed attention", 1, 80_MiB);
    check(stage, "saved by recomputed feed-forward", 1, 21_MiB);
    check(stage, "work space of the stack", 1, 46_MiB);
  }
  SUBCASE("the head holds its logits while no layer's backward pass runs: 6 s b V'") {
    world.software = megatron_lm_2021();
    const StageMemory stage = stage_at(1);
    CHECK(stage.peak == Moment::head);
    check(stage, "logits of head", 1, 300_MiB);
    check(stage, "saved by recomputed attention", 0, 0_B);
    check(stage, "gradients through attention", 0, 0_B);
    check(stage, "outputs sent to another stage", 0, 0_B);
  }
  SUBCASE("the step has gradients in fp32 and no activations") {
    const StageMemory stage = stage_at(0);
    check(stage, "fp32 gradients of the step", stage.parameters, 4_B);
    check(stage, "saved by attention", 0, 0_B);
    CHECK(stage.tensors_at_peak().size() == 5);
  }
  SUBCASE("the first step ever still has the messages of a stage") {
    world.software = megatron_lm_2021();
    world.reading = MemoryReading::first_step;
    check(stage_at(0), "input and output of the stage", 0, 0_B);
    check(stage_at(1), "input and output of the stage", 2, 2_MiB);
  }
  SUBCASE("quantised products read casts of 4 layers' matrices, by rows and by columns") {
    world.plan.training.precision = Precision::fp8;
    check(stage_at(0), "weights cast for products", 4 * 12.0 * 1024 * 1024, 2_B);
  }
  SUBCASE(
      "Blackwell takes fp8 operands in any layout, and needs one cast unless scales differ by "
      "direction") {
    world.device.peak[Precision::nvfp4] = FlopsPerSecond{1e16};
    world.plan.training.precision = Precision::fp8;
    check(stage_at(0), "weights cast for products", 4 * 12.0 * 1024 * 1024, 1_B);
    world.plan.training.precision = Precision::mxfp8;
    check(stage_at(0), "weights cast for products", 4 * 12.0 * 1024 * 1024, 2.0625 * 1_B);
  }
  SUBCASE("weights that are kept as operands are those alone") {
    world.plan.training.precision = Precision::fp8;
    world.software.fp8_parameters = true;
    const StageMemory stage = stage_at(0);
    check(stage, "weights cast for products", 0, 0_B);
    // Embeddings and norms stay bf16; on Hopper two bytes of casts take the place of two of bf16.
    check(stage, "weights", stage.parameters, 2_B);
  }
}

TEST_CASE("selective recomputation keeps all but the scores, and makes those of one layer again") {
  World world = small_world();
  world.software = megatron_lm_2021();
  world.plan.training.recompute = Recompute::selective;
  const StageMemory stage = first_stage(world);
  CHECK(stage.activation_per_microbatch == 139_MiB);  // 4 * 34 + 2 + 1
  CHECK(stage.at_peak(HeldKind::scores) == 80_MiB);
  CHECK(stage.at_peak(HeldKind::recomputed) == Bytes{});
}

TEST_CASE("logits set the working set of a last stage when they are more than a layer's") {
  // b 8: 6 s b V' = 6 * 1024 * 8 * 51200 = 2400 MiB, and the last norm's input and output, 2 * 16 MiB; a layer with flash attention
  // 8 * 46 + 8 MiB.
  World world(gpt(8, 1024, 16, 1024, 51200), 1, 2, 1, 8, 4);
  world.plan.training.attention = Attention::flash;
  const StageMemory last = world.account().stages.back();
  CHECK(last.at_peak(HeldKind::logits) == 2400_MiB);
  CHECK(last.at_peak(HeldKind::head_input) == 32_MiB);
  CHECK(last.buffers == 2432_MiB + world.software.fixed_work);
  CHECK(last.at_peak(HeldKind::recomputed) == Bytes{});
  check_lines_add_up(last);
}

TEST_CASE("a stage without layers holds embedding and microbatches only") {
  World world = small_world();
  world.plan.stage_layers = {0, 8};
  const StageMemory stage = first_stage(world);
  CHECK(stage.parameters == doctest::Approx(51200.0 * 1024 + 1024 * 1024));
  CHECK(stage.activation_per_microbatch == 3_MiB);
  CHECK(stage.at_peak(HeldKind::weight_gradient) == Bytes{});
}

TEST_CASE("interleaved chunks cost their fraction of a microbatch, each with its own output") {
  // p 2, v 2, m 4: pairs on stage 0: 2 * 1 + 2 + 1 = 5, so 2.5 microbatches of 4*2 + 2*2 + 1 MiB.
  World world = small_world();
  world.plan.parallel.schedule = schedule_named("interleaved_1f1b");
  world.plan.parallel.virtual_pipeline = 2;
  const MemoryAccount account = world.account();
  CHECK(account.stages.front().microbatches_in_flight == 2.5);
  CHECK(account.stages.front().activation_per_microbatch == 13_MiB);
  CHECK(account.stages.back().activation_per_microbatch ==
        10_MiB);  // 4*2 + 2: one output is the model's
}

TEST_CASE("a stack that frees what it sent keeps no outputs, and the llama family no masks") {
  World world = small_world();
  world.plan.parallel.schedule = schedule_named("interleaved_1f1b");
  world.plan.parallel.virtual_pipeline = 2;
  world.software.frees_outputs = true;
  CHECK(first_stage(world).activation_per_microbatch == 9_MiB);  // 13 without the two outputs of 2
  world.plan.training.recompute = Recompute::none;
  const Bytes masked = first_stage(world).activation_per_microbatch;
  world.model.family = "llama";
  // Two masks of each of 4 layers and the embedding's; and one of s^2 b bytes for each of 16 heads' scores.
  const Bytes scores = 4.0 * 16 * 1_MiB;
  CHECK(masked - first_stage(world).activation_per_microbatch == 9_MiB + scores);
}

TEST_CASE("the first stage of a V holds both ends of the model, and tied words once") {
  World world = small_world();
  world.plan.parallel.schedule = schedule_named("zero_bubble_v");
  world.plan.parallel.virtual_pipeline = 2;
  const MemoryAccount account = world.account();
  const StageMemory& first = account.stages.front();
  const StageMemory& last = account.stages.back();
  CHECK(last.parameters == doctest::Approx(4 * (12.0 * 1024 * 1024 + 13 * 1024)));
  // Words, positions, and the final norm's 2 h.
  CHECK(first.parameters - last.parameters ==
        doctest::Approx(51200.0 * 1024 + 1024 * 1024 + 2 * 1024));
  // 2 p = 4 pairs on either stage. One output each: the model's last chunk and the turn hand none to another stage.
  CHECK(first.microbatches_in_flight == 2);
  CHECK(last.microbatches_in_flight == 2);
  CHECK(first.activation_per_microbatch == 11_MiB);  // 4*2 + 2 + 1
  CHECK(last.activation_per_microbatch == 10_MiB);   // 4*2 + 2
}

TEST_CASE("counts come from the inputs, whatever the schedule is") {
  const World world = small_world();
  MemoryInputs inputs = world.inputs();
  inputs.in_flight = inputs.in_flight_with_gradients = {7, 7};
  const StageMemory stage = account_memory(inputs).stages.front();
  CHECK(stage.pool - Bytes{20 * stage.parameters} == 77_MiB);
}

TEST_CASE("fully sharded states, gathered layers and bounded activations add up as documented") {
  // docs/memory.md, section 7: 16N/D + 6 layer + 4V'h + 2sbh L + 32 sbh + 6 s b V', D 8, one stage.
  World world(gpt(8, 1024, 16, 1024, 51200), 1, 1, 8, 1, 1);
  world.plan.parallel.zero_stage = 3;
  world.plan.training.attention = Attention::flash;
  world.software = contiguous_half_gradients();
  world.software.fixed_work = Bytes{};
  world.software.states_fp16 = {.weights = 4, .gradients = 4, .optimizer = 8};
  const StageMemory stage = first_stage(world);
  const double layer = 12.0 * 1024 * 1024 + 13 * 1024, words = 51200.0 * 1024;
  const double n = 8 * layer + words + 1024 * 1024 + 2 * 1024;
  const Bytes expected = Bytes{16 * n / 8 + 6 * layer + 4 * words} + 48_MiB + Bytes{6 * words};
  CHECK(stage.allocated / expected == doctest::Approx(1).epsilon(1e-12));
  check_lines_add_up(stage);
  const auto buffer = [&stage](HeldKind kind, Label of) {
    Bytes bytes{};
    for (const HeldTensor& tensor : stage.tensors_at_peak())
      if (tensor.kind == kind && tensor.of == of) bytes += tensor.bytes;
    return bytes;
  };
  CHECK(buffer(HeldKind::gathered, Label::gather_layer) == Bytes{2 * 2 * layer});
  CHECK(buffer(HeldKind::gathered, Label::gather_edges) == Bytes{2 * words});
  CHECK(buffer(HeldKind::scattered, Label::scatter_layer) == Bytes{2 * layer});
  CHECK(buffer(HeldKind::scattered, Label::scatter_edges) == Bytes{2 * words});
  CHECK(buffer(HeldKind::logits, Label::head) == Bytes{6 * words});
  // Each layer gathered ahead costs its half-precision parameters; there are no more than 8 to gather.
  world.plan.parallel.zero_prefetch = 3;
  CHECK((first_stage(world).allocated - stage.allocated) / Bytes{2 * 2 * layer} ==
        doctest::Approx(1).epsilon(1e-12));
  world.plan.parallel.zero_prefetch = 100;
  CHECK((first_stage(world).allocated - stage.allocated) / Bytes{6 * 2 * layer} ==
        doctest::Approx(1).epsilon(1e-12));
  // DeepSpeed keeps as many parameters as it may, words among them, and what a layer needs in any case.
  CHECK(world.account().verdict == MemoryVerdict::lower_bound);
  world.plan.parallel.zero_prefetch = 1;
  world.software.live_parameters = words + 5 * layer;
  CHECK((first_stage(world).allocated - stage.allocated) / Bytes{(5 - 2) * 2 * layer} ==
        doctest::Approx(1).epsilon(1e-12));
  CHECK(world.account().verdict == MemoryVerdict::fits);
  world.software.live_parameters = layer;
  CHECK(first_stage(world).allocated == stage.allocated);
  world.software.live_parameters = 1e12;
  CHECK((first_stage(world).allocated - stage.allocated) / Bytes{6 * 2 * layer} ==
        doctest::Approx(1).epsilon(1e-12));
}

/// llama, 8 layers of 12h^2 + 2h parameters, words and head apart, FSDP over 8 GPUs, bf16 reduced in fp32.
World sharded_world(ShardedParameters held, int microbatches) {
  World world(gpt(8, 1024, 16, 1024, 51200), 1, 1, 8, 1, microbatches);
  world.model.family = "llama";
  world.model.rotary = true;
  world.model.tied_embeddings = false;
  world.plan.parallel.zero_stage = 3;
  world.plan.training.attention = Attention::flash;
  world.plan.training.precision = Precision::bf16;
  world.plan.training.gradient_type = GradientType::fp32;
  world.plan.training.cross_entropy = CrossEntropy::fused;
  world.software.gradient_type = GradientType::fp32;
  world.software.fixed_work = Bytes{};
  world.software.allocator_slack = 1;
  world.software.sharded_parameters = held;
  world.software.states_bf16 = {
      .weights = 4, .gradients = 4, .optimizer = 8, .gradients_freed_each_step = false};
  return world;
}

TEST_CASE("a fully sharded stack holds the unit that computes, the next, and gradients to reduce") {
  World world = sharded_world(ShardedParameters::flat, 2);
  const double layer = 12.0 * 1024 * 1024 + 2 * 1024, words = 51200.0 * 1024,
               edges = 2 * words + 1024, n = 8 * layer + edges, sbh = 1024.0 * 1024;
  // 16N/8; layers' inputs; the last norm's input and output; logits and gradients; embedding and head, and the last layer, whole.
  const double states = 2 * n, inputs = 8 * 2 * sbh,
               head = states + inputs + 4 * sbh + 4 * words + 2 * edges + 2 * layer;
  // A layer recomputed (4 + 4 e (2 + 2 + 8) = 32 sbh) and passing gradients ((4 + 8 - 2) sbh); two layers gathered, one's gradients in
  // bf16 and the last one's in fp32; embedding and head whole and the head's gradient.
  const double backward =
      states + inputs + 32 * sbh + 10 * sbh + (4 + 2 + 4) * layer + 2 * edges + 2 * words;
  // Gradients of embedding and head in bf16, and in fp32 to be reduced.
  const double end = states + 2 * edges + 6 * edges;
  const StageMemory stage = first_stage(world);
  const auto at = [&stage](Moment moment) { return sum_at(stage.tensors, moment).value(); };
  CHECK(at(Moment::head) == doctest::Approx(head).epsilon(1e-12));
  CHECK(at(Moment::backward) == doctest::Approx(backward).epsilon(1e-12));
  CHECK(at(Moment::edges) == doctest::Approx(end).epsilon(1e-12));
  CHECK(stage.peak == Moment::edges);
  CHECK(stage.allocated.value() == doctest::Approx(end).epsilon(1e-12));
  check_lines_add_up(stage);
  CHECK(world.account().verdict == MemoryVerdict::fits);

  SUBCASE("one microbatch has no gradients while its head and layers run") {
    const World one = sharded_world(ShardedParameters::flat, 1);
    const StageMemory of_one = first_stage(one);
    CHECK(sum_at(of_one.tensors, Moment::head).value() ==
          doctest::Approx(head - n / 2).epsilon(1e-12));
    CHECK(sum_at(of_one.tensors, Moment::edges).value() == doctest::Approx(end).epsilon(1e-12));
    CHECK(of_one.allocated == stage.allocated);
  }
  SUBCASE("under no_sync() gradients are whole between the first microbatch and the step") {
    for (const auto& [held, bytes] :
         {std::pair{ShardedParameters::flat, 2}, std::pair{ShardedParameters::each, 4}}) {
      World kept = sharded_world(held, 2);
      const StageMemory scattered = first_stage(kept);
      kept.plan.parallel.no_sync = true;
      const StageMemory whole = first_stage(kept);
      const auto more = [&](Moment moment) {
        return (sum_at(whole.tensors, moment) - sum_at(scattered.tensors, moment)).value();
      };
      for (const Moment moment : {Moment::head, Moment::backward, Moment::edges})
        CHECK(more(moment) == doctest::Approx(bytes * n - n / 2).epsilon(1e-9));
      for (const Moment moment : {Moment::first_head, Moment::first_backward})
        CHECK(more(moment) == doctest::Approx(-n / 2).epsilon(1e-9));
      CHECK(more(Moment::step) == 0);
      check_lines_add_up(whole);
    }
  }
  SUBCASE("a stack that copies parameters out of what it gathered has blocks for both") {
    const StageMemory copied = first_stage(sharded_world(ShardedParameters::each, 2));
    CHECK(copied.allocated == stage.allocated);
    // In the stream of the gathers: embedding and head, and besides them one layer.
    CHECK(copied.reserved.value() == doctest::Approx(end + 2 * edges + 2 * layer).epsilon(1e-12));
  }
  SUBCASE("reentrant checkpoints keep the gradients of frozen layers' inputs until the pass ends") {
    world.plan.training.lora.rank = 8;
    const StageMemory freed = first_stage(world);
    world.software.reentrant_checkpoints = true;
    const auto more = [&](Moment moment) {
      return (sum_at(first_stage(world).tensors, moment) - sum_at(freed.tensors, moment)).value();
    };
    // Of eight layers, two gradients pass through the layer anyway.
    CHECK(more(Moment::first_backward) == doctest::Approx(6 * 2 * sbh));
    CHECK(more(Moment::backward) == doctest::Approx(6 * 2 * sbh));
    CHECK(more(Moment::head) == 0);
    world.plan.training.lora.rank = 0;  // the hook is of frozen parameters alone
    CHECK(sum_at(first_stage(world).tensors, Moment::backward).value() ==
          doctest::Approx(backward).epsilon(1e-12));
    world.plan.training.lora.rank = 8;
    world.plan.training.recompute = Recompute::none;
    const Bytes kept = first_stage(world).allocated;
    world.software.reentrant_checkpoints = false;
    CHECK(first_stage(world).allocated == kept);
  }
  SUBCASE("one flat parameter of adapters and frozen weights has gradients of both") {
    world.plan.training.lora.rank = 8;
    world.plan.parallel.no_sync = true;
    const StageMemory apart = first_stage(world);
    world.software.flattens_adapters = true;
    const StageMemory flat = first_stage(world);
    const auto more = [&](Moment moment) {
      return (sum_at(flat.tensors, moment) - sum_at(apart.tensors, moment)).value();
    };
    CHECK(more(Moment::head) == doctest::Approx(8 * 2 * layer));  // not those of embedding and head
    // The layer's own, and those of the layer before in fp32.
    CHECK(more(Moment::backward) == doctest::Approx(8 * 2 * layer + (2 + 4) * layer));
    CHECK(more(Moment::step) == doctest::Approx(4 * 8 * layer / 8));  // the rank's shard, in fp32
    // One GPU alone has no FSDP.
    world.plan.parallel.data = 1;
    CHECK(!reduces_frozen(world.plan, world.software));
  }
  SUBCASE("no layer is gathered ahead where none is asked for, or none is left") {
    world.plan.parallel.zero_prefetch = 0;
    CHECK(sum_at(first_stage(world).tensors, Moment::backward).value() ==
          doctest::Approx(backward - 2 * layer).epsilon(1e-12));
    world.plan.parallel.zero_prefetch = 100;
    CHECK(sum_at(first_stage(world).tensors, Moment::backward).value() ==
          doctest::Approx(backward + 6 * 2 * layer).epsilon(1e-12));
  }
}

TEST_CASE("the verdict is phi * allocated + context against what is usable") {
  World world(gpt(8, 1024, 16, 1024, 51200), 1, 1, 1, 1, 4);
  world.software = megatron_lm_2021();
  world.device.context = 1_GiB;
  const StageMemory stage = first_stage(world);
  const Bytes required = 1.065 * stage.allocated + 1_GiB;
  const Bytes wanted = 1.206 * stage.allocated + 1_GiB;
  CHECK(stage.required == required);

  SUBCASE("fits when more may be reserved than predicted, by the stack's scatter") {
    world.software.reserved_scatter = 0.2;
    world.device.usable_memory = 1.2 * stage.reserved + 1_GiB + 1_MiB;
    CHECK(world.account().verdict == MemoryVerdict::fits);
    CHECK(first_stage(world).total / wanted == doctest::Approx(1));
  }
  SUBCASE("at risk when it may not") {
    world.software.reserved_scatter = 0.2;
    world.device.usable_memory = 1.2 * stage.reserved + 1_GiB - 1_MiB;
    CHECK(world.account().verdict == MemoryVerdict::at_risk);
    CHECK(world.account().fits);
  }
  SUBCASE("with ZeRO 3 over replicas what is counted is a lower bound, whatever is left") {
    world.plan.parallel.zero_stage = 3;
    world.plan.parallel.data = 4;
    world.device.memory_capacity = world.device.usable_memory = 2 * wanted;
    CHECK(world.account().verdict == MemoryVerdict::lower_bound);
    CHECK(world.account().fits);
    world.device.usable_memory = 1_GiB;
    CHECK(world.account().verdict == MemoryVerdict::does_not_fit);
  }
  SUBCASE("at risk when only the cache does not, and the total is cut at what is usable") {
    world.device.usable_memory = required + 1_MiB;
    const MemoryAccount account = world.account();
    CHECK(account.verdict == MemoryVerdict::at_risk);
    CHECK(account.fits);
    CHECK(account.advice.empty());
    CHECK(account.max_total == world.device.usable_memory);
  }
  SUBCASE("does not fit above; the total is then what is required") {
    world.device.usable_memory = stage.allocated;
    const MemoryAccount account = world.account();
    CHECK(account.verdict == MemoryVerdict::does_not_fit);
    CHECK_FALSE(account.fits);
    CHECK(account.max_total == stage.required);
    CHECK(account.worst_stage == StageId{0});
  }
}

TEST_CASE("gradients of a backward pass take the place of the activations that it frees") {
  World world = small_world();
  world.software.states_fp16.pass_gradients = 2;
  const auto held = [&world] {
    const StageMemory stage = first_stage(world);
    for (const HeldTensor& tensor : stage.tensors)
      if (tensor.kind == HeldKind::pass_gradients)
        return std::pair{tensor.bytes, stage.activation_per_microbatch};
    return std::pair{Bytes{}, stage.activation_per_microbatch};
  };
  CHECK(held().first == Bytes{2 * first_stage(world).parameters} - held().second);
  // The activations of 512 samples' tokens are more than the gradients.
  world.plan.training.micro_batch = 512;
  world.plan.training.global_batch = 512 * 4;
  CHECK(held().first == Bytes{});
}

TEST_CASE(
    "what exchanges copy is held: buckets or gathered weights, whole sequences, and blocks that "
    "wait") {
  World world = small_world();
  world.plan.parallel.data = 4;
  world.software.states_fp16.buckets = 2;
  world.software.states_fp16.gathered_copies = 2;
  const auto held = [&world](HeldKind kind, Moment moment) {
    Bytes sum{};
    for (const HeldTensor& tensor : first_stage(world).tensors)
      if (tensor.kind == kind && tensor.held.has(moment)) sum += tensor.bytes;
    return sum;
  };
  const Bytes parameters{first_stage(world).parameters};
  SUBCASE("replicas that share nothing have buckets, all the time") {
    CHECK(held(HeldKind::buckets, Moment::step) == parameters * 2);
    CHECK(held(HeldKind::buckets, Moment::backward) == parameters * 2);
    CHECK(held(HeldKind::gathered_weights, Moment::step) == Bytes{});
  }
  SUBCASE(
      "those that share optimizer states gather weights in the step: two copies and the shard's") {
    world.plan.parallel.zero_stage = 1;
    CHECK(held(HeldKind::buckets, Moment::step) == Bytes{});
    CHECK(held(HeldKind::gathered_weights, Moment::step) / parameters ==
          doctest::Approx(4.5));  // 2 * (2 + 1 / 4)
    CHECK(held(HeldKind::gathered_weights, Moment::backward) == Bytes{});
  }
  SUBCASE(
      "a tensor group has buffers for whole sequences of 2 sbh, and libraries have workspaces") {
    world.plan.parallel.tensor = 2;
    world.software.workspaces = 64_MiB;
    world.software.gather_buffers = 2;
    CHECK(held(HeldKind::sequences, Moment::step) == 4_MiB);
    CHECK(held(HeldKind::workspaces, Moment::step) == 64_MiB);
  }
}

TEST_CASE("the worst stage is the one with the least room on its own device") {
  const World world = small_world();
  Device small = world.device;
  small.usable_memory = small.memory_capacity = 2_GiB;
  MemoryInputs inputs = world.inputs();
  inputs.device_of_stage[1] = &small;
  const MemoryAccount account = account_memory(inputs);
  CHECK(account.worst_stage == StageId{1});
  CHECK(account.capacity == 2_GiB);
}

TEST_CASE("a list that does not match the stages is our bug") {
  const World world = small_world();
  MemoryInputs inputs = world.inputs();
  inputs.in_flight.pop_back();
  CHECK_THROWS_AS(account_memory(inputs), ContractViolation);
}

TEST_CASE("verdicts have names") {
  CHECK(std::string(name_of(MemoryVerdict::fits)) == "fits");
  CHECK(std::string(name_of(MemoryVerdict::at_risk)) == "at_risk");
  CHECK(std::string(name_of(MemoryVerdict::lower_bound)) == "lower_bound");
  CHECK(std::string(name_of(MemoryVerdict::does_not_fit)) == "does_not_fit");
}

TEST_CASE("stacks cost the bytes per parameter of docs/memory.md") {
  Training training{.gradient_type = GradientType::fp16};
  check(state_bytes(training, megatron_lm_2021()), 22, 0);           // A: 2 + 2 + 6 + 12
  check(state_bytes(training, contiguous_half_gradients()), 16, 4);  // C: 2 + 2 + 12, step 4
  check(state_bytes(training, megatron_deepspeed_2022()), 16, 4);    // E before sharding: 4 + 12
  training.precision = Precision::bf16;
  check(state_bytes(training, megatron_deepspeed_2022()), 20, 0);  // F before sharding: 8 + 12
}

TEST_CASE(
    "gradients of a pass in addition to their sums are there in a layer's backward pass alone") {
  SoftwareProfile software = contiguous_half_gradients();
  software.states_fp16.pass_gradients = 2;
  software.states_fp16.gradients_freed_each_step = false;
  const ParameterCounts one{.all = 1, .weights = 1, .gradients = 1, .optimizer = 1};
  const auto tensors = state_tensors({.gradient_type = GradientType::fp16}, software, one,
                                     MemoryReading::steady_state);
  CHECK(sum_at(tensors, Moment::backward) == 18_B);  // 2 + 2 + 12 and 2
  CHECK(sum_at(tensors, Moment::head) == 16_B);
  CHECK(sum_at(tensors, Moment::step) == 20_B);  // 4 of its own
}

TEST_CASE("fp32 gradients turn stacks with half gradients into stack D") {
  const Training training{.gradient_type = GradientType::fp32};
  for (const SoftwareProfile& software : {contiguous_half_gradients(), megatron_lm_2021()}) {
    check(state_bytes(training, software), 18, 0);  // 2 + 4 + 12
    CHECK_FALSE(state_bytes(training, software).gradients_freed_each_step);
  }
}

TEST_CASE(
    "a stack whose own gradients are fp32 keeps its bytes, and turns into C when asked for half") {
  SoftwareProfile software = contiguous_half_gradients();
  software.gradient_type = GradientType::fp32;
  software.states_fp16 = {.gradients = 4};
  check(state_bytes({.gradient_type = GradientType::fp32}, software), 18, 0);
  check(state_bytes({.gradient_type = GradientType::fp16}, software), 16, 4);
}

TEST_CASE(
    "a stack with less than Adam's moments in fp32 has no negative states for smaller moments") {
  SoftwareProfile software;
  software.states_fp16.optimizer = 4;
  Training training;
  training.precision = Precision::fp16;
  training.optimizer = Optimizer::sgd;
  training.first_moment = MomentType::fp16;
  CHECK(state_bytes(training, software).optimizer == 0);
  training.optimizer = Optimizer::adam;
  training.first_moment = MomentType::fp32;
  CHECK(state_bytes(training, software).optimizer == 4);
}

TEST_CASE("fp16 and bf16 gradients are the same to a stack with half gradients") {
  check(state_bytes({.gradient_type = GradientType::bf16}, megatron_lm_2021()), 22, 0);
}

TEST_CASE("fp32 training has no master weights: 4 + 4 + 8") {
  for (Precision precision : {Precision::fp32, Precision::tf32})
    check(state_bytes({.precision = precision}, megatron_lm_2021()), 16, 0);
}

TEST_CASE("a foreach step holds the roots of all second moments, as wide as these") {
  Training training;
  training.precision = Precision::bf16;
  SoftwareProfile software;
  software.foreach_step = true;
  software.states_bf16 = {.weights = 4, .gradients = 4, .optimizer = 8};
  CHECK(state_bytes(training, software).step_temporary == 4);
  training.second_moment = MomentType::bf16;
  CHECK(state_bytes(training, software).step_temporary == 2);
  training.second_moment = MomentType::int8;
  CHECK(state_bytes(training, software).step_temporary == 0);
  training.second_moment = MomentType::bf16;
  training.main_parameters = MainParameters::none;  // no copy of gradients, the roots all the same
  CHECK(state_bytes(training, software).step_temporary == 2);
  training.optimizer = Optimizer::sgd;
  CHECK(state_bytes(training, software).step_temporary == 0);
}

TEST_CASE("SGD has one moment where Adam has two") {
  const Training half{.gradient_type = GradientType::fp16, .optimizer = Optimizer::sgd};
  check(state_bytes(half, contiguous_half_gradients()), 12, 4);  // 2 + 2 + master 4 + momentum 4
  const Training single{.precision = Precision::fp32, .optimizer = Optimizer::sgd};
  check(state_bytes(single, contiguous_half_gradients()), 12, 0);  // 4 + 4 + 4
}

TEST_CASE("each state costs its bytes for the parameters that the rank keeps it of") {
  const Training training{.gradient_type = GradientType::fp16};
  // Stack C: 2 + 2 + 12 bytes and 4 in the step.
  const std::vector<HeldTensor> states =
      state_tensors(training, contiguous_half_gradients(),
                    {.all = 1000, .weights = 500, .gradients = 250, .optimizer = 125},
                    MemoryReading::steady_state);
  CHECK(bytes_of(states, HeldKind::weights) == 1000_B);
  CHECK(bytes_of(states, HeldKind::gradients) == 500_B);
  CHECK(bytes_of(states, HeldKind::master) == 500_B);
  CHECK(bytes_of(states, HeldKind::moments) == 1000_B);
  CHECK(bytes_of(states, HeldKind::step_temporary) == 500_B);
  // The first backward pass makes the gradients, and the step frees its own before the next pass.
  CHECK(sum_at(states, Moment::first_backward) == 2500_B);
  CHECK(sum_at(states, Moment::backward) == 3000_B);
  CHECK(sum_at(states, Moment::step) == 3500_B);
}

TEST_CASE("the first step of stack A makes 8 bytes of moments and 4 of fp32 gradients") {
  const Training training{.gradient_type = GradientType::fp16};
  const std::vector<HeldTensor> states = state_tensors(
      training, megatron_lm_2021(), {1000, 1000, 1000, 1000}, MemoryReading::first_step);
  CHECK(bytes_of(states, HeldKind::moments) == 8000_B);
  CHECK(bytes_of(states, HeldKind::step_temporary) ==
        4000_B);                                      // stale 6 = last step's live 2 + fp32 main 4
  CHECK(sum_at(states, Moment::backward) == 8000_B);  // 2 + 2 + master 4, nothing stale
  CHECK(sum_at(states, Moment::step) == 20000_B);
}

TEST_CASE("compressed stage messages keep factors at both ends and a residual at the sender") {
  World world = optimus();
  world.plan.compression.pipeline_backward = powersgd(16);
  // 1024 x 3072 values: P and Q of 4096 x 16 x 4 bytes, a residual of 12,582,912 bytes. The first stage sends no gradients.
  CHECK(kept(world, 0) == 262144_B);
  CHECK(kept(world, 1) == 2 * 262144_B + 12582912_B);
  CHECK(kept(world, 3) == 262144_B + 12582912_B);
}

TEST_CASE("compressed gradients keep a residual of every matrix") {
  World world = optimus();
  world.plan.compression.data_gradients = powersgd(128);
  world.plan.compression.data_gradients->error_feedback = true;
  world.plan.compression.gradient_stages = {CompressedStages::Kind::listed, {1}};
  // 18 layers of 12 x 3072^2 / 8 values: 1,019,215,872 bytes; factors 155,713,536 bytes.
  CHECK(kept(world, 1) == Bytes{1019215872 + 155713536});
  CHECK(kept(world, 2) == 0_B);
}

TEST_CASE("what compression keeps is part of a stage's buffers, and of what it allocates") {
  World world = optimus();
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
  World world = optimus();
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
