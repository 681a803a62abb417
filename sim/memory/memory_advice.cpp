#include "memory/memory_advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

namespace windtunnel {
namespace {

constexpr std::size_t most_suggestions = 2;

/// A change of the plan, as the scenario's author would write it.
struct Change {
  std::string text;
  PlanChoice choice;
  /// The change before it in larger: tried only where that one does not fit.
  bool is_further = false;
};

/// A change and what the fullest GPU would have in use, or would need where that is more than it has: the figures of `run`.
struct TriedChange {
  std::string text;
  Bytes needed{};
  MemoryVerdict verdict = MemoryVerdict::fits;
  bool is_tight = false;
};

std::string gib_text(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / 1_GiB);
  return text;
}

std::string tenths_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", share);
  return text;
}

Change change_of(const Plan& plan, std::string text) {
  return {std::move(text), {plan.training, plan.parallel}};
}

Change recompute_change(const Plan& plan, Recompute recompute, const char* name) {
  Change change = change_of(plan, std::string("recompute \"") + name + "\"");
  Training& training = change.choice.training;
  if (!training.recompute_layers.are_all()) change.text += " without recompute_layers";
  if (training.recompute_modules != RecomputedModules::of_selective())
    change.text += " without recompute_modules";
  training.recompute = recompute;
  training.recompute_layers = {};
  training.recompute_modules = RecomputedModules::of_selective();
  return change;
}

/// Scatters the gradients of every microbatch, which no_sync() keeps whole.
void add_scatters(const Plan& plan, std::vector<Change>& changes) {
  if (!plan.parallel.no_sync) return;
  changes.push_back(change_of(plan, "no_sync false"));
  Parallel& parallel = changes.back().choice.parallel;
  parallel.no_sync = parallel.overlap_gradient_reduce = false;
}

/// The loss that holds least of the logits, of those that the stack is known to have: torchtitan's of 2026, to which Liger's is nearest, on stacks of
/// PyTorch alone, and that of Transformer Engine in place of Megatron-Core's compiled one.
void add_loss(const MemoryInputs& inputs, std::vector<Change>& changes) {
  const CrossEntropy used = inputs.plan->training.cross_entropy;
  const CrossEntropy own = inputs.software->cross_entropy;
  const bool is_pytorch = own == CrossEntropy::plain || own == CrossEntropy::plain_returned ||
                          own == CrossEntropy::plain_half || own == CrossEntropy::fused;
  const CrossEntropy least = is_pytorch ? CrossEntropy::chunked : CrossEntropy::in_place;
  if (used == least || (!is_pytorch && used != CrossEntropy::vocab_parallel_compiled)) return;
  changes.push_back(
      change_of(*inputs.plan, std::string("cross_entropy \"") + name_of(least) + "\""));
  changes.back().choice.training.cross_entropy = least;
}

void add_recompute(const Plan& plan, std::vector<Change>& changes) {
  const Training& training = plan.training;
  // With flash attention there are no scores to compute again.
  if (training.recompute == Recompute::none && training.attention == Attention::standard)
    changes.push_back(recompute_change(plan, Recompute::selective, "selective"));
  if (training.recompute != Recompute::full || !training.recompute_layers.are_all())
    changes.push_back(recompute_change(plan, Recompute::full, "full"));
}

void add_micro_batch(const Plan& plan, std::vector<Change>& changes) {
  for (int samples = plan.training.micro_batch; samples % 2 == 0;) {
    samples /= 2;
    changes.push_back(change_of(plan, "micro_batch " + std::to_string(samples)));
    changes.back().choice.training.micro_batch = samples;
  }
}

/// Adds a degree `factor` times as large for each power of two from 2 on. `factor` times as many GPUs a replica are paid for with as
/// many fewer replicas, where their number allows it; twice as many also with more GPUs.
template <class MayBe>
void add_degrees(const Plan& plan, const char* name, int Parallel::*degree, const MayBe& may_be,
                 std::vector<Change>& changes) {
  const int data = plan.parallel.data;
  for (int factor = 2; may_be(factor * plan.parallel.*degree); factor *= 2) {
    if (factor > 2 && data % factor != 0) return;
    Change change =
        change_of(plan, std::string(name) + " " + std::to_string(factor * plan.parallel.*degree));
    change.choice.parallel.*degree *= factor;
    if (data % factor == 0) change.choice.parallel.data /= factor;
    change.text += data % factor == 0 ? " and data " + std::to_string(data / factor)
                                      : std::string(" on twice the GPUs");
    change.is_further = factor > 2;
    changes.push_back(change);
  }
}

/// Adds changes of the number of stages, if the file does not say which layers its stages have.
void add_pipeline(const Transformer& model, const Plan& plan, std::vector<Change>& changes) {
  const Parallel& parallel = plan.parallel;
  if (parallel.schedule->is_bidirectional() || !parallel.stage_layers.empty() ||
      !parallel.position_layers.empty())
    return;
  add_degrees(
      plan, "pipeline", &Parallel::pipeline,
      [&](int stages) { return stages == 2 * parallel.pipeline || stages <= model.layers; },
      changes);
}

void add_zero(const Plan& plan, std::vector<Change>& changes) {
  if (plan.parallel.zero_stage != 0 || plan.parallel.replicas() == 1) return;
  changes.push_back(change_of(plan, "zero_stage 1"));
  changes.back().choice.parallel.zero_stage = 1;
}

void add_tensor(const Transformer& model, const Plan& plan, std::vector<Change>& changes) {
  add_degrees(
      plan, "tensor", &Parallel::tensor,
      [&](int tensor) {
        return tensor <= plan.gpus_per_node && model.kv_heads % tensor == 0 &&
               model.ffn_hidden % tensor == 0;
      },
      changes);
}

void add_moments(const Plan& plan, std::vector<Change>& changes) {
  const Training& training = plan.training;
  if (training.optimizer != Optimizer::adam || training.first_moment != MomentType::fp32 ||
      training.second_moment != MomentType::fp32)
    return;
  changes.push_back(change_of(plan, "exp_avg_dtype and exp_avg_sq_dtype \"bf16\""));
  Training& changed = changes.back().choice.training;
  changed.first_moment = changed.second_moment = MomentType::bf16;
}

/// The share of `held` that has to go to make room for what is missing, in whole tenths, in addition to the share that is gone already.
double share_to_go(const StageMemory& worst, const SoftwareProfile& software, Bytes held,
                   double gone) {
  constexpr double tenths = 10;
  const Bytes missing = (worst.required - worst.usable) / software.fragmentation;
  if (held == Bytes{}) return 1;
  const double share = gone + (1 - gone) * (missing / held);
  return std::min(1.0, std::ceil(share * tenths) / tenths);
}

/// The host takes the least that makes room.
void add_offload(const MemoryInputs& inputs, const StageMemory& worst,
                 std::vector<Change>& changes) {
  if (!inputs.has_host) return;
  const auto add = [&](const char* name, double Training::*share, Bytes held) {
    Change change = change_of(*inputs.plan, name);
    double& offloaded = change.choice.training.*share;
    if (offloaded == 1) return;
    offloaded = share_to_go(worst, *inputs.software, held, offloaded);
    change.text += " " + tenths_text(offloaded);
    changes.push_back(change);
  };
  add("optimizer_offload_fraction", &Training::optimizer_offload, worst.optimizer);
  add("activation_offload_fraction", &Training::activation_offload, worst.activations);
}

/// The changes worth trying, those that cost the least time first.
std::vector<Change> changes_of(const MemoryInputs& inputs, const StageMemory& worst) {
  std::vector<Change> changes;
  add_scatters(*inputs.plan, changes);
  add_loss(inputs, changes);
  add_recompute(*inputs.plan, changes);
  add_micro_batch(*inputs.plan, changes);
  add_pipeline(*inputs.model, *inputs.plan, changes);
  add_zero(*inputs.plan, changes);
  add_tensor(*inputs.model, *inputs.plan, changes);
  add_moments(*inputs.plan, changes);
  add_offload(inputs, worst, changes);
  return changes;
}

TriedChange tried(const std::string& text, const MemoryAccount& account) {
  TriedChange result{.text = text, .verdict = account.verdict};
  const bool fits = account.verdict != MemoryVerdict::does_not_fit;
  for (const StageMemory& stage : account.stages) {
    result.needed = std::max(result.needed, fits ? stage.total : stage.required);
    result.is_tight = result.is_tight || (fits && stage.is_tight);
  }
  return result;
}

std::string with_figure(const TriedChange& change) {
  return change.text + (change.verdict == MemoryVerdict::lower_bound ? " (at least " : " (") +
         gib_text(change.needed) + (change.is_tight ? ", at risk)" : ")");
}

std::string suggestion_text(const std::vector<TriedChange>& changes) {
  std::string text;
  std::size_t count = 0;
  for (const TriedChange& change : changes) {
    if (change.verdict == MemoryVerdict::does_not_fit || count == most_suggestions) continue;
    text += (count++ == 0 ? "fits with " : " or ") + with_figure(change);
  }
  if (count > 0) return text;
  if (changes.empty()) return "nothing is left to try but more GPUs or a smaller model";
  const auto nearest = std::min_element(
      changes.begin(), changes.end(),
      [](const TriedChange& a, const TriedChange& b) { return a.needed < b.needed; });
  return "no single change fits; nearest is " + with_figure(*nearest);
}

}  // namespace

std::string memory_advice(const MemoryInputs& inputs, const MemoryAccount& account,
                          const AccountOfChoice& account_of) {
  const StageMemory& worst = account.stages[account.worst_stage.index()];
  std::vector<TriedChange> changes;
  bool less_fits = false;  // and nothing that needs less would be called surer
  for (const Change& change : changes_of(inputs, worst)) {
    less_fits = less_fits && change.is_further;
    if (less_fits) continue;
    if (const std::optional<MemoryAccount> after = account_of(change.choice)) {
      changes.push_back(tried(change.text, *after));
      less_fits = after->fits && !changes.back().is_tight;
    }
  }
  // The surest first.
  std::ranges::stable_sort(changes, {}, [](const TriedChange& each) {
    return std::pair(each.verdict != MemoryVerdict::fits, each.is_tight);
  });
  return "stage " + std::to_string(worst.stage.index()) + " needs " + gib_text(worst.required) +
         ", the GPU has " + gib_text(worst.usable) + ": " +
         gib_text(worst.required - worst.usable) + " too much; " + suggestion_text(changes);
}

}  // namespace windtunnel
