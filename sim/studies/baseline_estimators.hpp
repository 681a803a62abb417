#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "core/enum_names.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Earlier methods of picking a parallel plan without simulating the network, for comparison, flaws included.
enum class Baseline {
  amp,     ///< Li et al., NeurIPS 2022, arXiv:2210.07297: formula; blind to memory
  varuna,  ///< Athlur et al., EuroSys 2022, arXiv:2111.04007: replayed pipeline; no tensor parallelism
  pipette,   ///< Yim et al., DATE 2024, arXiv:2405.18093: formula of the released code
  megatron,  ///< the rules of Narayanan et al., SC 2021, arXiv:2104.04473, section 3
};
/// "amp", "varuna", "pipette", "megatron"

/// One pipeline stage as the formulas see it.
struct BaselineStage {
  Seconds forward{}, backward{};  ///< one microbatch, recomputation and tensor collectives included
  Seconds
      mean_forward{};  ///< the same forward pass, averaged over all GPUs of the job, whichever hold the stage
  Bytes gradients{};  ///< of one rank
  /// Rates between neighbours of the gradient ring that are on different nodes, in ring order. Empty: one node holds them all.
  std::vector<BytesPerSecond> ring;
  int data_in_node = 1;            ///< replicas in a node
  BytesPerSecond in_node_rate{1};  ///< between them; unused when there is one
};

/// Inputs of the formulas.
struct BaselineInputs {
  int microbatches = 1;  ///< m, of one pipeline
  int data = 1;          ///< D
  Bytes message{};       ///< one activation, not divided by the tensor degree
  std::vector<BaselineStage> stages;
  std::vector<std::vector<BytesPerSecond>> hops;  ///< [pipeline][hop between neighbouring stages]
};

/// Whole rounds of p microbatches. The released code divides integers, and so drops up to p - 1 of the microbatches.
enum class Rounds { exact, truncated };
/// The edge of the gradient ring that sets its pace. AMP's cost_het_cluster.py compares after its loop, and so takes the last.
enum class RingPace { slowest_edge, last_edge };
/// Directions in which AMP pays for a hop: one in its own code, both in Pipette's restatement of it.
enum class AmpHops { once, forward_and_backward };
/// Pipette's gradient ring: through all replicas, or inside nodes first and then between them, as its formula has it.
enum class RingLevels { one, two };
/// Gradients of a stage: as our own account has them, or 16 h^2 a layer and an embedding on every stage as Pipette's code has.
enum class GradientCount { account, released };

/// Rate between two nodes in a formula: all cards of a node, or one of them, which is what a transfer between two GPUs
/// gets. Pipette measures the latter (sendrecv_perf between two nodes; 25 GB/s nominal, one card of 200 Gb/s), and takes it for the ring
/// of each rank and for whole messages between stages.
enum class LinkRate { node, card };

/// Habits of the published code to follow. The defaults are those of the released code wherever they affect its choice.
struct BaselineOptions {
  Rounds rounds = Rounds::truncated;
  RingPace ring_pace = RingPace::slowest_edge;
  AmpHops amp_hops = AmpHops::once;
  RingLevels pipette_ring = RingLevels::two;
  GradientCount pipette_gradients = GradientCount::released;
  LinkRate pipette_links = LinkRate::card;
};

/// AMP:  T = (m-1) max_s 3F_s + sum_s 3F_s + n sum_hops S/BW + max_s 2 (D-1)/D G_s / slowest,   n = 1 (or 2, AmpHops)
/// S message, G gradients, F forward pass averaged over the kinds of GPUs. A backward pass is taken for two forward passes; of
/// the messages only those of the first microbatch count, on the mean of the pipelines. Source: DachengLi1/AMP @ 72eeea4,
/// cost_homogeneous.py, cost_het_cluster.py and pipe.py.
Seconds amp_estimate(const BaselineInputs& inputs, const BaselineOptions& options = {});

/// Pipette's released formula:  T = k [p(F+B) + max_pipelines sum_hops 2S/BW] + (p-1)(F+B) + rings,   k = m // p
/// of the slowest stage; with m < p one traversal and (m-1)(F+B) more. Rings, of the first stage alone:  2 (i-1)/i G/in-node rate +
/// 2 (o-1)/o G/slowest link,  i replicas in a node, o nodes. Source: yimjinkyu1/date2024_pipette @ a2b0683, the columns
/// cost_..._iterl_split_opt of llm_train_strategy_assignment_total_v3.py, by which it ranks, and objective() of
/// mh_simulated_annealing_opt.py. (Its column without measured links, cost_..._split, counts the ring in the node twice.)
Seconds pipette_estimate(const BaselineInputs& inputs, const BaselineOptions& options = {});

/// Varuna: the pipeline replayed event by event in 1F1B order, each message S/BW on a link of its own, at most four on their way
/// from one stage; then the gradient ring. Source: microsoft/varuna @ a2145cc, tools/simulator. Its own order may run a forward
/// pass early when a gradient is late; this one waits.
Seconds varuna_estimate(const BaselineInputs& inputs, const BaselineOptions& options = {});

/// Megatron's analysis:  T = (m + p - 1)(F + B)  of the slowest stage, no communication (Narayanan et al. 2021, equation 1).
Seconds megatron_estimate(const BaselineInputs& inputs);

Seconds baseline_estimate(Baseline baseline, const BaselineInputs& inputs,
                          const BaselineOptions& options = {});

/// The gradients of one rank by Pipette's code:  (V h + w h^2 l) / t elements, w = 16 for GPT (the true count is 12), with the
/// words on every stage and nothing padded.
Bytes released_gradients(const Transformer& model, int stage_layers, int tensor_parallel,
                         Bytes element);

/// Inputs of the formulas, from the tables that the scenario's simulation would use: times of passes, nominal or measured rates
/// of links. If replicas or kinds of GPUs differ, a stage is as slow as its slowest device.
BaselineInputs baseline_inputs(const Scenario& scenario,
                               GradientCount gradients = GradientCount::account,
                               LinkRate links = LinkRate::node);

/// The time that `baseline` gives the scenario's plan.
Seconds baseline_estimate(Baseline baseline, const Scenario& scenario,
                          const BaselineOptions& options = {});

/// Sort key of a plan for a baseline: the smallest comes first.
struct BaselinePreference {
  int model_parallel = 0;  ///< Megatron only: tensor times pipeline degree, as small as fits
  int fewer_tensor = 0;  ///< Megatron only: minus the tensor degree, since the largest is preferred
  Seconds estimate{};
  auto operator<=>(const BaselinePreference&) const = default;
};

/// The place of the scenario's plan in the order of `baseline`; nothing where the method leaves the plan out.
///  - amp: every plan, whether it fits in memory or not.
///  - varuna: no tensor parallelism; what fits with the activations of a single microbatch in flight, as its profile counts.
///  - pipette: what its loops try (1, 2, 4 or 8 as tensor degree and as microbatch, stages of whole nodes), and of these what fits by the
///    memory account (its own estimator is a network trained on runs that were never published), tensor groups inside a node.
///  - megatron: what fits, tensor groups inside a node (takeaway 1); the smallest model-parallel size, and within it tensor before
///    pipeline (takeaways 1 and 2); then equation 1, which chooses the microbatch (takeaway 3).
std::optional<BaselinePreference> baseline_preference(Baseline baseline, const Scenario& scenario,
                                                      const BaselineOptions& options = {});

}  // namespace windtunnel
