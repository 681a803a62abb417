#include <doctest/doctest.h>

#include <set>
#include <string>

#include "passes/pass.hpp"

namespace windtunnel {
namespace {

/// Two layers on the only stage: attention 1 s and feed-forward 3 s forward, twice that backward, half of it products with weights.
struct World {
  Plan plan;
  SoftwareProfile software;
  PassContext context;
  ChunkOperations chunk;

  World() {
    software.overlap_backward_tensor_collectives = false;
    context.chunk = {2, true, true};
    context.bytes = {.activation = Bytes{100},
                     .layer_parameters = Bytes{200},
                     .layer_gradients = Bytes{400},
                     .key_values = Bytes{80},
                     .attended = Bytes{60}};
    context.attention_core = kernel(Label::attention_core, 0.5);
    context.core_backward = kernel(Label::context_attention, 1);
    context.attention_again = kernel(Label::recomputed_attention, 0.25);
    context.feed_forward_again = kernel(Label::recomputed_feed_forward, 2);
    context.encode = [](Label, Bytes payload) { return Encoded{payload, {}}; };
    for (PassOperations& pass : chunk.passes) pass.layers = 2;
    chunk.at(Direction::forward).layer = {kernel(Label::attention, 1),
                                          kernel(Label::feed_forward, 3)};
    chunk.at(Direction::backward).layer = {kernel(Label::feed_forward, 6),
                                           kernel(Label::attention, 2)};
    chunk.at(Direction::input_gradient).layer = {kernel(Label::feed_forward, 3),
                                                 kernel(Label::attention, 1)};
    chunk.at(Direction::weight_gradient).layer = {kernel(Label::weight_gradients, 4)};
  }

  static Operation kernel(Label label, double time) {
    Operation operation;
    operation.label = label;
    operation.time = Seconds{time};
    operation.products = operation.time / 2;
    return operation;
  }

  /// The labels of a layer's operations, after all passes.
  std::string layer(Direction direction) {
    context.plan = &plan;
    context.software = &software;
    ChunkOperations rewritten = chunk;
    for (const OperationPass& pass : operation_passes()) pass.rewrite(rewritten, context);
    last = rewritten.at(direction);
    std::string text;
    for (const Operation& operation : last.layer) {
      text += text.empty() ? "" : ", ";
      text += row_of(operation.label).text;
      if (operation.overlap != Overlap::none) text += " (overlapped)";
    }
    return text;
  }
  PassOperations last;
};

TEST_CASE("one way of everything leaves the model as it is") {
  World world;
  CHECK(world.layer(Direction::forward) == "attention, feed-forward");
  CHECK(world.layer(Direction::backward) == "feed-forward, attention");
  CHECK(world.last.before.empty());
  CHECK(world.last.after.empty());
}

TEST_CASE("every pass has a name of its own") {
  std::set<std::string> names;
  for (const OperationPass& pass : operation_passes()) names.insert(pass.name);
  CHECK(names.size() == operation_passes().size());
}

TEST_CASE("tensor parallelism adds an all-reduce behind each half of a layer") {
  World world;
  world.plan.parallel.tensor = 2;
  const char* const reduced = "all-reduce of an activation";
  CHECK(world.layer(Direction::forward) ==
        std::string("attention, ") + reduced + ", feed-forward, " + reduced);
  CHECK(world.last.before.size() == 1);  // the embedding's
  CHECK(world.last.layer[1].payload == Bytes{100});
  CHECK(world.layer(Direction::backward) ==
        std::string("feed-forward, ") + reduced + ", attention, " + reduced);
  CHECK(world.layer(Direction::weight_gradient) == "weight gradients");
}

TEST_CASE("halves that both read the layer's input take one all-reduce each way") {
  World world;
  world.context.halves_are_parallel = true;
  world.plan.parallel.tensor = 2;
  CHECK(world.layer(Direction::forward) == "attention, feed-forward, all-reduce of an activation");
  CHECK(world.layer(Direction::backward) == "feed-forward, attention, all-reduce of an activation");
  world.software.overlap_backward_tensor_collectives = true;
  CHECK(world.layer(Direction::backward) ==
        "feed-forward, attention, all-reduce of an activation (overlapped), weight gradients");
  // A quarter of the 4 s of products overlaps with it, taken out of both halves.
  CHECK(world.last.layer[3].time == Seconds{1});
  CHECK((world.last.layer[0].time + world.last.layer[1].time).value() == doctest::Approx(7));
}

TEST_CASE("what is sent in shares is gathered, and what the stage had sent once more") {
  World world;
  world.plan.parallel.tensor = 2;
  world.context.chunk = {2, false, false};
  const auto gathers = [&world](Direction direction) {
    world.layer(direction);
    return std::ranges::count(world.last.before, Label::gather_message, &Operation::label);
  };
  CHECK(gathers(Direction::forward) == 0);
  world.software.gather_scattered_messages = true;
  CHECK(gathers(Direction::forward) == 1);
  CHECK(gathers(Direction::backward) == 1);
  world.software.regathers_outputs = true;
  CHECK(gathers(Direction::forward) == 1);
  CHECK(gathers(Direction::backward) == 2);
  world.software.scatter_pipeline_messages = ScatteredMessages::activations;
  CHECK(gathers(Direction::forward) == 1);
  CHECK(gathers(Direction::backward) == 1);  // gradients come whole
  world.software.scatter_pipeline_messages = ScatteredMessages::none;
  CHECK(gathers(Direction::backward) == 0);
}

TEST_CASE(
    "stacks that overlap take a quarter of the products out of the kernels, during each "
    "all-reduce") {
  World world;
  world.plan.parallel.tensor = 2;
  world.software.overlap_backward_tensor_collectives = true;
  CHECK(world.layer(Direction::backward) ==
        "feed-forward, all-reduce of an activation (overlapped), weight gradients, attention, "
        "all-reduce of an activation (overlapped), weight gradients");
  // 4 of 8 s are products: 1 s overlaps with each, and 6 s left of feed-forward's 6 and attention's 2.
  CHECK(world.last.layer[0].time.value() == doctest::Approx(4.5));
  CHECK(world.last.layer[2].time.value() == doctest::Approx(1));
  CHECK(world.last.layer[3].time.value() == doctest::Approx(1.5));
  CHECK(world.last.layer_kernels().value() == doctest::Approx(8));
  // Input gradients alone have nothing to hide behind.
  CHECK(world.layer(Direction::input_gradient) ==
        "feed-forward, all-reduce of an activation, attention, all-reduce of an activation");
}

TEST_CASE(
    "sequence parallelism gathers twice backward: the gradient, and during a product the input") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  const std::string gather = "all-gather of an activation",
                    scatter = "reduce-scatter of an activation";
  CHECK(world.layer(Direction::forward) ==
        "attention, " + gather + ", " + scatter + ", feed-forward, " + gather + ", " + scatter);
  world.plan.parallel.tensor = 1;  // a group of one gathers nothing
  CHECK(world.layer(Direction::forward) == "attention, feed-forward");
  world.plan.parallel.tensor = 2;
  const std::string three = gather + ", " + gather + ", " + scatter;
  CHECK(world.layer(Direction::backward) == "feed-forward, " + three + ", attention, " + three);
  world.software.overlap_backward_tensor_collectives = true;
  const std::string twice = gather + ", " + gather + " (overlapped), input gradients, " + scatter;
  const std::string halves = twice + " (overlapped), weight gradients";
  CHECK(world.layer(Direction::backward) == "feed-forward, " + halves + ", attention, " + halves);
  // 4 of 8 s are products: 1 s overlaps with each of the scatters and second gathers, and 4 s left of 6 and 2.
  CHECK(world.last.layer[0].time.value() == doctest::Approx(3));
  CHECK(world.last.layer[3].time.value() == doctest::Approx(1));
  CHECK(world.last.layer[5].time.value() == doctest::Approx(1));
  CHECK(world.last.layer[6].time.value() == doctest::Approx(1));
  CHECK(world.last.layer_kernels().value() == doctest::Approx(8));
  // Input gradients alone have nothing to hide behind.
  CHECK(world.layer(Direction::input_gradient) ==
        "feed-forward, " + three + ", attention, " + three);
  // Frozen products need no input backward.
  world.plan.training.lora.rank = 2;
  const std::string two = gather + ", " + scatter;
  CHECK(world.layer(Direction::backward) == "feed-forward, " + two + ", attention, " + two);
  world.plan.training.lora.rank = 0;
  world.software.regathers_inputs = false;
  CHECK(world.layer(Direction::backward) == "feed-forward, " + gather + ", " + scatter +
                                                " (overlapped), weight gradients, attention, " +
                                                gather + ", " + scatter +
                                                " (overlapped), weight gradients");
}

TEST_CASE(
    "with sequence parallelism the embedding scatters, and the head gathers its input twice") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  const auto edges = [&world](Direction direction) {
    world.layer(direction);
    std::string labels;
    for (const auto* list : {&world.last.before, &world.last.after})
      for (const Operation& operation : *list)
        labels += operation.label == Label::gather_activation    ? "g"
                  : operation.label == Label::scatter_activation ? "s"
                                                                 : ".";
    return labels;
  };
  const auto count = [&](Direction direction, char what) {
    const std::string labels = edges(direction);
    return std::count(labels.begin(), labels.end(), what);
  };
  CHECK(count(Direction::forward, 's') == 1);
  CHECK(count(Direction::forward, 'g') == 1);
  CHECK(count(Direction::backward, 's') == 1);
  CHECK(count(Direction::backward, 'g') == 2);
  world.software.regathers_inputs = false;
  CHECK(count(Direction::backward, 'g') == 1);
}

TEST_CASE(
    "recomputed layers repeat their kernels and collectives, selective ones the attention core") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.training.recompute = Recompute::full;
  const char* const reduced = "all-reduce of an activation";
  CHECK(world.layer(Direction::backward) ==
        std::string("recomputed attention, ") + reduced + ", recomputed feed-forward, " + reduced +
            ", feed-forward, " + reduced + ", attention, " + reduced);
  world.plan.training.recompute = Recompute::selective;
  world.plan.parallel.tensor = 1;
  CHECK(world.layer(Direction::input_gradient) ==
        "recomputed attention core, feed-forward, attention");
  CHECK(world.layer(Direction::forward) == "attention, feed-forward");
}

TEST_CASE(
    "ZeRO 3 gathers before and scatters behind a layer, and leaves recomputation to its one "
    "gather") {
  World world;
  world.plan.parallel.data = 4;
  world.plan.parallel.zero_stage = 3;
  world.plan.training.recompute = Recompute::full;
  Operation head = World::kernel(Label::head, 1);
  head.held.parameters.whole = 10;  // 2 bytes each gathered, 4 scattered
  world.chunk.at(Direction::forward).after = {head};
  CHECK(world.layer(Direction::backward) ==
        "all-gather of a layer (overlapped), recomputed attention, recomputed feed-forward, "
        "feed-forward, attention, reduce-scatter of a layer (overlapped)");
  CHECK(world.last.layer.front().payload == Bytes{200});
  CHECK(world.last.layer.back().payload == Bytes{400});
  REQUIRE(world.last.after.size() == 1);
  CHECK(world.last.after[0].payload == Bytes{40});
  world.plan.parallel.zero_prefetch = 0;
  CHECK(world.layer(Direction::forward) == "all-gather of a layer, attention, feed-forward");
  CHECK(world.last.before.front().payload == Bytes{20});
}

TEST_CASE(
    "a codec runs before each collective of the tensor group, and once for those of the replicas") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.data = 2;
  world.plan.parallel.zero_stage = 3;
  world.context.encode = [](Label, Bytes payload) { return Encoded{payload / 4, Seconds{0.25}}; };
  CHECK(world.layer(Direction::forward) ==
        "all-gather of a layer (overlapped), attention, codec of an activation, all-reduce of an "
        "activation, feed-forward, codec of an activation, all-reduce of an activation");
  CHECK(world.last.layer[3].payload == Bytes{25});
  // Two layers and the edges.
  CHECK(world.last.before.back().label == Label::sharding_codec);
  CHECK(world.last.before.back().time.value() == doctest::Approx(0.75));
}

/// A rank's bytes of one layer, forward or backward.
double kept(const World& world, Kept kind) {
  double sum = 0;
  for (const Operation& operation : world.last.layer) sum += operation.held.at(kind).sum().value();
  return sum;
}

/// Attention with 10 parameters whole and 80 divided, and tensors of each kind.
World world_with_tensors() {
  World world;
  Held& held = world.chunk.at(Direction::forward).layer.front().held;
  held.parameters = {10, 80};
  held.at(Kept::input).whole = 8_B;
  held.at(Kept::tensors) = {16_B, 32_B};
  held.at(Kept::scores).divided = 64_B;
  return world;
}

TEST_CASE(
    "tensor parallelism divides matrices and inner tensors, sequence parallelism the others too") {
  World world = world_with_tensors();
  world.plan.parallel.tensor = 4;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 16 + 8);
  CHECK(kept(world, Kept::scores) == 16);
  CHECK(count_parameters(world.last).all == 2 * (10 + 20));  // two layers
  world.plan.parallel.sequence_parallel = true;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 4 + 8);
  CHECK(count_parameters(world.last).all == 2 * (10 + 20));
}

TEST_CASE("keys and values go round a context group during all steps of attention but the last") {
  World world;
  world.plan.parallel.context = 4;
  CHECK(world.layer(Direction::forward) ==
        "attention, all-gather of keys and values (overlapped), attention core, attention core, "
        "feed-forward");
  CHECK(world.last.layer[0].time == Seconds{0.5});
  CHECK(world.last.layer[1].payload == Bytes{80});
  CHECK(world.last.layer[2].time == Seconds{0.375});
  CHECK(world.last.layer[3].time == Seconds{0.125});
  CHECK(world.layer(Direction::backward) ==
        "feed-forward, attention, all-gather of keys and values (overlapped), reduce-scatter of "
        "their "
        "gradients (overlapped), attention core, attention core");
  CHECK(world.last.layer_kernels() == Seconds{8});
  // The part that has arrived and the next one, a quarter each.
  CHECK(world.last.layer[1].held.at(Kept::passing).sum() == Bytes{40});
}

TEST_CASE(
    "an all-to-all trades tokens for heads before attention's core, and hides behind nothing") {
  World world;
  world.plan.parallel.context = 4;
  world.plan.parallel.context_method = ContextMethod::all_to_all;
  CHECK(world.layer(Direction::forward) == "all-to-all of heads, attention, feed-forward");
  CHECK(world.last.layer[0].payload == Bytes{60});
  CHECK(world.last.layer_kernels() == Seconds{4});
}

TEST_CASE("attention that is computed again fetches the keys and values of the others again") {
  World world;
  world.plan.parallel.context = 2;
  world.plan.training.recompute = Recompute::selective;
  CHECK(world.layer(Direction::backward)
            .starts_with("all-gather of keys and values (overlapped), recomputed attention core, "
                         "feed-forward"));
  world.plan.training.recompute = Recompute::full;
  CHECK(world.layer(Direction::backward)
            .starts_with(
                "recomputed attention, all-gather of keys and values (overlapped), recomputed "
                "attention core, recomputed attention core, recomputed feed-forward"));
}

TEST_CASE("what is computed again is held while a layer's backward pass lasts") {
  World world = world_with_tensors();
  world.plan.training.recompute = Recompute::full;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 8);  // the layer's input
  CHECK(kept(world, Kept::scores) == 0);
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::tensors) == 48);
  CHECK(kept(world, Kept::scores) == 64);
  world.plan.training.recompute = Recompute::selective;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 48);
  CHECK(kept(world, Kept::scores) == 0);
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::tensors) == 0);
  CHECK(kept(world, Kept::scores) == 64);
}

TEST_CASE(
    "where operations are recomputed, a layer's last product is not, and saved ones neither") {
  World world;
  world.software.recomputed_unit = RecomputedUnit::operations;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  world.plan.training.recompute = Recompute::full;
  const std::string gather = "all-gather of an activation",
                    scatter = "reduce-scatter of an activation";
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, " + gather + ", " + scatter +
                         ", recomputed feed-forward, " + gather + ", feed-forward, "));
  CHECK(world.last.layer[0].time == Seconds{1});  // all of attention
  CHECK(world.last.layer[3].time == Seconds{2});
  world.plan.training.recompute = Recompute::selective;
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, " + gather + ", recomputed feed-forward, " +
                         gather + ", feed-forward, "));
  CHECK(world.last.layer[0].time == Seconds{0.25});
  CHECK(world.last.layer[2].time == Seconds{2});
  world.plan.parallel.sequence_parallel = false;
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, all-reduce of an activation, recomputed "
                         "feed-forward, feed-forward, "));
  // With ring attention the core's results are saved, and nothing is fetched again.
  world.plan.parallel.tensor = 1;
  world.plan.parallel.context = 2;
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, recomputed feed-forward, feed-forward, "));
}

TEST_CASE("where operations are recomputed, the forward pass keeps what is saved") {
  World world = world_with_tensors();
  world.chunk.at(Direction::forward).layer.front().held.at(Kept::saved) = {8_B, 12_B};
  world.software.recomputed_unit = RecomputedUnit::operations;
  world.plan.training.recompute = Recompute::selective;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 20);
  CHECK(count_parameters(world.last).all == 2 * 90);
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::tensors) == 48);
}

/// A layer with experts, in which each operation keeps 16 bytes.
World world_with_experts(std::initializer_list<RecomputedModule> modules) {
  World world;
  std::vector<Operation>& layer = world.chunk.at(Direction::forward).layer;
  layer = {World::kernel(Label::attention, 1), World::kernel(Label::routing, 2),
           World::kernel(Label::experts, 3), World::kernel(Label::merging, 4)};
  world.context.chunk.expert_layers = 2;
  for (Operation& operation : layer) {
    operation.held.at(Kept::tensors).whole = 16_B;
    operation.held.at(Kept::norm).whole = 1_B;
    operation.held.at(Kept::activated).whole = 2_B;
    operation.held.at(Kept::up_projected).whole = 4_B;
    if (operation.label != Label::merging) operation.held.at(Kept::module_input).whole = 8_B;
  }
  layer[2].share = 0.5;  // half of the layers; what it holds has been halved
  world.context.recomputed_parts = {
      {Label::attention, World::kernel(Label::recomputed_attention, 0.125), Kept::up_projected},
      {Label::routing, World::kernel(Label::recomputed_routing, 0.25), Kept::norm},
      {Label::experts, World::kernel(Label::recomputed_experts, 0.5), Kept::activated}};
  world.plan.training.recompute = Recompute::selective;
  world.plan.training.recompute_modules = RecomputedModules::none();
  for (const RecomputedModule module : modules) world.plan.training.recompute_modules.add(module);
  return world;
}

TEST_CASE("parts of operations run again, and what they give is kept for a layer alone") {
  World world = world_with_experts({RecomputedModule::up_projection, RecomputedModule::norms,
                                    RecomputedModule::expert_activation});
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 4 * 16 - 4 - 1 - 2);
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, recomputed routing, recomputed experts, "));
  CHECK(kept(world, Kept::tensors) == 4 + 1 + 2);
  CHECK(world.last.layer[0].time == Seconds{0.125});
  CHECK(world.last.layer[2].time == Seconds{0.25});  // half of the layers have it
}

TEST_CASE(
    "where operations are recomputed, experts run again but for the exchanges of their tokens") {
  World world = world_with_experts({});
  world.plan.parallel.expert = 2;
  world.context.bytes.dispatch = world.context.bytes.gradient_dispatch = 8_B;
  world.software.recomputed_unit = RecomputedUnit::operations;
  world.context.experts_again = World::kernel(Label::recomputed_experts, 2);
  std::vector<Operation>& layer = world.chunk.at(Direction::forward).layer;
  layer[2].held.at(Kept::saved).whole = 5_B;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 5 + 16);  // the exchanged tokens, and what merging keeps
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, recomputed routing, recomputed experts, "));
  CHECK(kept(world, Kept::tensors) == 3 * 16);
  CHECK(world.last.layer[1].time == Seconds{2});
  CHECK(world.last.layer[2].time == Seconds{1});  // half of the layers have it
}

TEST_CASE("a module that runs again whole keeps what it reads") {
  World world = world_with_experts({RecomputedModule::experts, RecomputedModule::norms});
  world.context.recomputed_parts.erase(world.context.recomputed_parts.begin());
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 16 + 7 + 8 + 0);
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed routing, recomputed routing, recomputed experts, recomputed "
                         "merging, "));
  CHECK(kept(world, Kept::tensors) == 1 + 8 + 8 + 16);
  CHECK(count_parameters(world.last).all == 0);
}

TEST_CASE("of some layers alone the mean layer runs again in part, and keeps a mean") {
  World world;
  world.plan.training.recompute = Recompute::full;
  world.plan.parallel.tensor = 2;
  std::vector<Operation>& forward = world.chunk.at(Direction::forward).layer;
  forward[0].held.at(Kept::tensors).whole = 16_B;
  forward[0].held.at(Kept::input).whole = 4_B;
  world.context.chunk.layers = 4;
  world.context.chunk.not_recomputed = 1;
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == (16 + 3 * 4) / 4);
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed attention, all-reduce of an activation, recomputed "
                         "feed-forward, all-reduce of an activation, feed-forward, "));
  CHECK(world.last.layer[0].time == Seconds{0.75});
  CHECK(world.last.layer[0].share == 0.75);
  CHECK(world.last.layer[1].payload == Bytes{75});
  CHECK(world.last.layer[2].products == Seconds{0.75 * 1.5});
  CHECK(kept(world, Kept::tensors) == 16);
  // Where the last layer does not run again, it has given back as much before the first one that does.
  world.context.chunk.leaves_out_last = true;
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::tensors) == 0);
  world.context.chunk.not_recomputed = 4;
  CHECK(world.layer(Direction::backward).starts_with("feed-forward, "));
  world.layer(Direction::forward);
  CHECK(kept(world, Kept::tensors) == 16);
}

TEST_CASE("logits are gathered where each rank computes the whole loss") {
  World world;
  world.plan.parallel.tensor = 2;
  world.context.bytes.logits = Bytes{1000};
  world.plan.training.loss_parallel = false;
  world.layer(Direction::forward);
  REQUIRE(world.last.after.size() == 1);
  CHECK(world.last.after[0].label == Label::gather_activation);
  CHECK(world.last.after[0].payload == Bytes{1000});
  world.context.chunk.last = false;
  world.layer(Direction::forward);
  CHECK(world.last.after.empty());
}

TEST_CASE("an MLP runs again with the collectives overlapped with it") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  world.plan.training.recompute = Recompute::selective;
  world.plan.training.recompute_modules = RecomputedModules::none();
  world.plan.training.recompute_modules.add(RecomputedModule::mlp);
  CHECK(world.layer(Direction::backward)
            .starts_with("recomputed feed-forward, all-gather of an activation, reduce-scatter of "
                         "an activation, feed-forward, "));
}

TEST_CASE("gathers of operands are smaller where the stack gathers them, in layers alone") {
  World world;
  world.plan.parallel.tensor = 2;
  world.plan.parallel.sequence_parallel = true;
  world.plan.training.precision = Precision::fp8;
  world.software.fp8_tensor_gathers = true;
  world.layer(Direction::forward);
  CHECK(world.last.layer[1].payload == Bytes{50});   // the gather, a byte an element
  CHECK(world.last.layer[2].payload == Bytes{100});  // the scatter
  CHECK(world.last.before[0].payload == Bytes{100});
  // A scale for each row: cast behind the gather.
  world.plan.training.fp8_recipe = Fp8Recipe::row;
  world.layer(Direction::forward);
  CHECK(world.last.layer[1].payload == Bytes{100});
  // Adapters of the products behind a gather read it in 16 bits.
  world.plan.training.fp8_recipe = Fp8Recipe::tensor;
  world.plan.training.lora = {.rank = 2, .targets = {LoraTarget::up_proj}};
  world.layer(Direction::forward);
  CHECK(world.last.layer[1].payload == Bytes{75});  // the mean of 50 and 100
  world.plan.training.lora.targets = {LoraTarget::up_proj, LoraTarget::v_proj};
  world.layer(Direction::forward);
  CHECK(world.last.layer[1].payload == Bytes{100});
  world.plan.training.lora.targets = {LoraTarget::o_proj, LoraTarget::down_proj};
  world.layer(Direction::forward);
  CHECK(world.last.layer[1].payload == Bytes{50});
}

TEST_CASE("each ZeRO stage shares out one more state among the replicas") {
  World world = world_with_tensors();
  world.plan.parallel.data = 6;
  const double all = 2 * 90;
  for (int zero = 0; zero <= 3; ++zero) {
    CAPTURE(zero);
    world.plan.parallel.zero_stage = zero;
    world.layer(Direction::forward);
    const ParameterCounts counts = count_parameters(world.last);
    CHECK(counts.all == all);
    CHECK(counts.optimizer == doctest::Approx(zero >= 1 ? all / 6 : all));
    CHECK(counts.gradients == doctest::Approx(zero >= 2 ? all / 6 : all));
    CHECK(counts.weights == doctest::Approx(zero >= 3 ? all / 6 : all));
  }
  world.plan.parallel.zero_group = 2;
  world.layer(Direction::forward);
  CHECK(count_parameters(world.last).weights == doctest::Approx(all / 2));
}

TEST_CASE("ZeRO 3 holds the layer that computes, those gathered ahead of it, and a gradient") {
  World world = world_with_tensors();
  world.plan.parallel.data = 6;
  world.plan.parallel.zero_stage = 3;
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::gathered) == 2 * 90 * 2);  // two layers, fp16
  CHECK(kept(world, Kept::weight_gradient) == 2 * 90);
  world.plan.parallel.zero_prefetch = 0;
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::gathered) == 2 * 90);
}

TEST_CASE("where shards are counted, what is ahead and what is reduced are held apart") {
  World world = world_with_tensors();
  world.plan.parallel.data = 6;
  world.plan.parallel.zero_stage = 3;
  world.software.sharded_parameters = ShardedParameters::each;
  world.context.bytes.weight = Bytes{1};  // eight bits
  world.layer(Direction::backward);
  CHECK(kept(world, Kept::gathered) == 90);
  CHECK(kept(world, Kept::prefetched) == 90);  // one of two layers
  CHECK(kept(world, Kept::weight_gradient) == 2 * 90);
  CHECK(kept(world, Kept::reduced) == 4 * 90);
}

TEST_CASE("layers that are not resharded are gathered forward alone, and held until they end") {
  World world = world_with_tensors();
  world.plan.parallel.data = 6;
  world.plan.parallel.zero_stage = 3;
  world.plan.parallel.reshard_after_forward = false;
  world.context.bytes.weight = Bytes{1};
  CHECK(world.layer(Direction::forward) ==
        "all-gather of a layer (overlapped), attention, feed-forward");
  CHECK(world.layer(Direction::backward) ==
        "feed-forward, attention, reduce-scatter of a layer (overlapped)");
  // Two layers of 90 parameters, a byte each.
  CHECK(kept(world, Kept::gathered) == 2 * 90);
}

TEST_CASE("stages with ZeRO 3 gather nothing in their passes, and add up whole gradients") {
  World world = world_with_tensors();
  world.plan.parallel.data = 6;
  world.plan.parallel.pipeline = 2;
  world.plan.parallel.zero_stage = 3;
  world.plan.parallel.reshard_after_forward = false;
  CHECK(world.layer(Direction::backward) == "feed-forward, attention");
  CHECK(world.layer(Direction::forward) == "attention, feed-forward");
  const ParameterCounts counts = count_parameters(world.last);
  const double all = 2 * 90;
  CHECK(counts.weights == doctest::Approx(all / 6));
  CHECK(counts.optimizer == doctest::Approx(all / 6));
  CHECK(counts.gradients == all);
}

}  // namespace
}  // namespace windtunnel
