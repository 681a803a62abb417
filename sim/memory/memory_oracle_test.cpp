// The sums over operations against the closed forms of docs/memory.md, section 1 to 3 and 7, on drawn plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "memory/memory_fixtures.hpp"

using namespace windtunnel;
using namespace windtunnel::fixtures;

namespace {

/// Symbols as in docs/memory.md.
struct ClosedForm {
  const Transformer& model;
  const Plan& plan;
  int stage;

  double s = model.sequence, b = plan.training.micro_batch, h = model.hidden, a = model.heads;
  double g = model.kv_heads / a, f = model.ffn_hidden / h, t = plan.parallel.tensor;
  bool sharded = plan.parallel.zero_stage == 3, gated = model.gated_mlp;
  bool first = stage == 0, last = stage + 1 == plan.parallel.pipeline;
  double l = plan.stage_layers[static_cast<std::size_t>(stage)];
  double whole = plan.parallel.sequence_parallel ? t : 1;
  double d = sharded || model.family == "llama" ? 0 : 1, sbh = s * b * h;
  double e = element_size(plan.training.precision) / 1_B;
  double vocab = padded_vocab(model, plan.parallel.tensor);
  Recompute recompute = plan.training.recompute;
  RecomputedLayers some = plan.training.recompute_layers;
  /// Layers that are not recomputed, and whether the last one is among them.
  double left_out = recompute == Recompute::none ? 0
                    : some.first > 0             ? std::max(l - some.first, 0.0)
                    : some.every > 1             ? l - std::floor(l / some.every)
                                                 : 0;
  bool ends_with_one = left_out > 0 && (some.first > 0 || std::fmod(l, some.every) > 0);

  double layer_parameters() const {
    const double qkv = h + 2 * g * h, wide = (gated ? 2 : 1) * f * h;
    const double matrices = (h * qkv + h * h + h * wide + h * f * h) / t;
    return model.has_biases() ? matrices + (qkv + wide) / t + 6 * h : matrices + 2 * h;
  }
  double parameters() const {
    const double words = vocab * h / t;
    const bool own_words = !model.tied_embeddings || plan.parallel.pipeline > 1;
    double sum = l * layer_parameters();
    if (first) sum += words + (model.has_learned_positions() ? s * h : 0);
    if (last) sum += (model.has_biases() ? 2 : 1) * h + (own_words ? words : 0);
    return sum;
  }

  double boundary() const { return e * sbh / whole; }
  double layer() const {
    return sbh * ((4 * e + 2 * d) / whole + e * (2 + 2 * g + (gated ? 3 : 2) * f) / t);
  }
  double scores() const {
    return plan.training.attention == Attention::flash ? 0 : (2 * e + d) * a * s * s * b / t;
  }
  double kept() const {
    if (recompute == Recompute::full) return boundary();
    return layer() + (recompute == Recompute::none ? scores() : 0);
  }
  double microbatch() const {
    return (l - left_out) * kept() + left_out * (layer() + scores()) + (last ? 0 : boundary()) +
           (first ? d * sbh / whole : 0);
  }
  double logits() const {
    const double vocab_parallel = e < 4 ? e + 4 : 4;
    double each = 0;
    switch (plan.training.cross_entropy) {
      case CrossEntropy::in_place:
        each = e;
        break;
      case CrossEntropy::fused:
        each = 2 * e;
        break;
      case CrossEntropy::vocab_parallel:
        each = vocab_parallel;
        break;
      case CrossEntropy::vocab_parallel_compiled:
        each = vocab_parallel + 4;
        break;
      case CrossEntropy::vocab_parallel_copied:
        each = 8;
        break;
      case CrossEntropy::plain:
        each = t > 1 && plan.training.loss_parallel ? 16 : 12;
        break;
      case CrossEntropy::plain_returned:
        each = e + (t > 1 && plan.training.loss_parallel ? 16 : 12);
        break;
      case CrossEntropy::plain_half:
        each = (t > 1 && plan.training.loss_parallel ? 5 : 4) * e;
        break;
      case CrossEntropy::chunked:
        each = 2 * e / 8;
        break;
    }
    return last ? each * s * b * vocab / (plan.training.loss_parallel ? t : 1) : 0;
  }
  double head_input() const {
    const double gradients = plan.training.cross_entropy == CrossEntropy::chunked ? 4 * sbh : 0;
    return last ? 2 * boundary() + gradients : 0;
  }

  bool runs_again() const { return l > 0 && !ends_with_one; }
  double layer_recomputation() const {
    return runs_again() && recompute == Recompute::full ? layer() : 0;
  }
  double working_scores() const {
    return runs_again() && recompute != Recompute::none ? scores() : 0;
  }
  double weight_gradient() const {
    if (sharded) return e * (layer_parameters() + vocab * h / t);
    const double wide = (gated ? 2 : 1) * f * h;
    return l > 0 ? e * std::max(h + 2 * g * h, wide) * h / t : 0;
  }
  double fixed() const {
    if (sharded)
      return e *
             (layer_parameters() * std::min(l, 1.0 + plan.parallel.zero_prefetch) + vocab * h / t);
    return sbh * e * ((first ? 1 : 2) / whole + (gated ? 2 : 1) * f / t);
  }
  double live() const {
    const double work = layer_recomputation() + working_scores() + weight_gradient() + fixed();
    const double of_head = logits() + head_input();
    return sharded ? std::max(work + logits(), of_head) : std::max(work, of_head);
  }
};

/// Stack C: 2 + 2 + 12 bytes a parameter and 4 in the step; gradients do not exist before the first backward pass.
double allocated(const ClosedForm& in, double in_flight, double with_gradients) {
  const int zero = in.plan.parallel.zero_stage;
  const double data = in.plan.parallel.data, n = in.parameters();
  const bool single = in.e == 4;  // fp32: 4 + 4 + 8, all of it there from the start
  const double weights = (single ? 4 : 2) * n / (zero >= 3 ? data : 1);
  const double gradients = (single ? 4 : 2) * n / (zero >= 2 ? data : 1);
  const double optimizer = (single ? 8 : 12) * n / (zero >= 1 ? data : 1);
  const double step = single ? 0 : 4 * n / (zero >= 1 ? data : 1);
  const double states = weights + gradients + optimizer;
  const double early = states - (single ? 0 : gradients);
  return std::max({states + with_gradients * in.microbatch() + in.live(),
                   early + in_flight * in.microbatch() + in.live(), states + step});
}

World drawn_world(std::mt19937& random) {
  const auto one_of = [&random](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  const int zero = one_of(0, 1, 2, 3);
  const int pipeline = zero == 3 ? 1 : one_of(1, 2, 4), heads = 24, hidden = heads * one_of(64, 80);
  World world(gpt(8, hidden, heads, one_of(512, 2048), one_of(32000, 50257)), one_of(1, 2, 3, 8),
              pipeline, one_of(1, 2, 6), one_of(1, 4), one_of(4, 8));
  Transformer& model = world.model;
  model.family = one_of("gpt", "llama");
  model.gated_mlp = one_of(true, false);
  model.rotary = one_of(true, false);
  model.tied_embeddings = one_of(true, false);
  model.kv_heads = one_of(heads, heads / 4);
  model.ffn_hidden = hidden * one_of(2, 4);
  Plan& plan = world.plan;
  plan.parallel.zero_stage = zero;
  plan.parallel.zero_prefetch = one_of(0, 1, 3, 20);
  plan.parallel.sequence_parallel = plan.parallel.tensor > 1 && one_of(true, false);
  plan.training.recompute = one_of(Recompute::none, Recompute::selective, Recompute::full);
  plan.training.recompute_layers =
      one_of(RecomputedLayers{}, RecomputedLayers{.first = 2}, RecomputedLayers{.every = 2},
             RecomputedLayers{.every = 3});
  plan.training.attention = one_of(Attention::standard, Attention::flash);
  plan.training.precision = one_of(Precision::fp16, Precision::bf16, Precision::fp32);
  if (pipeline > 1 && one_of(true, false)) plan.stage_layers.front() = 0;
  plan.training.cross_entropy =
      one_of(CrossEntropy::in_place, CrossEntropy::fused, CrossEntropy::vocab_parallel,
             CrossEntropy::vocab_parallel_compiled, CrossEntropy::vocab_parallel_copied,
             CrossEntropy::plain, CrossEntropy::plain_returned, CrossEntropy::plain_half,
             CrossEntropy::chunked);
  plan.training.loss_parallel = one_of(true, false);
  world.software.fixed_work = Bytes{};
  return world;
}

void check_equal(Bytes account, double closed_form) {
  CHECK(account.value() == doctest::Approx(closed_form).epsilon(1e-12));
}

void check_stage(const World& world, const StageMemory& memory, int stage) {
  const ClosedForm in{world.model, world.plan, stage};
  CHECK(memory.parameters == doctest::Approx(in.parameters()).epsilon(1e-12));
  check_equal(memory.activation_per_microbatch, in.microbatch());
  const InFlight held = count_in_flight(schedule_order(world.plan, StageId{stage}));
  check_equal(memory.allocated, allocated(in, held.all, held.with_gradients));
  if (memory.peak == Moment::step) return;
  const bool in_head = memory.peak == Moment::head || memory.peak == Moment::first_head;
  const auto check_kind = [&](HeldKind kind, double closed_form) {
    check_equal(memory.at_peak(kind), in_head ? 0 : closed_form);
  };
  check_kind(HeldKind::recomputed, in.layer_recomputation());
  check_kind(HeldKind::scores, in.working_scores());
  check_kind(in.sharded ? HeldKind::scattered : HeldKind::weight_gradient, in.weight_gradient());
  check_equal(memory.at_peak(HeldKind::passing) + memory.at_peak(HeldKind::gathered),
              in_head ? 0 : in.fixed());
  if (in_head || in.sharded) check_equal(memory.at_peak(HeldKind::logits), in.logits());
}

}  // namespace

TEST_CASE("what operations hold adds up to the closed forms, for any plan") {
  std::mt19937 random(7);
  constexpr int plans = 2000;
  for (int i = 0; i < plans; ++i) {
    const World world = drawn_world(random);
    CAPTURE(i);
    const MemoryAccount account = world.account();
    for (int stage = 0; stage < world.plan.parallel.pipeline; ++stage)
      check_stage(world, account.stages[static_cast<std::size_t>(stage)], stage);
  }
}
