#include "studies/baseline_estimators.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/contracts.hpp"
#include "plan/schedule.hpp"

namespace windtunnel {
namespace {

void expect_complete(const BaselineInputs& in) {
  WT_EXPECT(in.microbatches > 0 && in.data > 0 && !in.stages.empty());
  for (const auto& pipeline : in.hops) WT_EXPECT(pipeline.size() + 1 == in.stages.size());
}

/// F + B of the stage where it is largest.
Seconds slowest_pass(const BaselineInputs& in) {
  Seconds slowest{};
  for (const BaselineStage& stage : in.stages)
    slowest = std::max(slowest, stage.forward + stage.backward);
  return slowest;
}

/// One microbatch's messages from the first stage to the last, through the slowest pipeline.
Seconds traversal(const BaselineInputs& in) {
  Seconds slowest{};
  for (const auto& pipeline : in.hops) {
    Seconds sum{};
    for (const BytesPerSecond rate : pipeline) sum += in.message / rate;
    slowest = std::max(slowest, sum);
  }
  return slowest;
}

/// The same, averaged over the pipelines.
Seconds mean_traversal(const BaselineInputs& in) {
  Seconds sum{};
  for (const auto& pipeline : in.hops)
    for (const BytesPerSecond rate : pipeline) sum += in.message / rate;
  return in.hops.empty() ? sum : sum / static_cast<double>(in.hops.size());
}

/// 2 (n-1)/n * payload / rate
Seconds ring_time(Bytes payload, int members, BytesPerSecond rate) {
  return payload * (2.0 * (members - 1) / members) / rate;
}

BytesPerSecond pace_between_nodes(const BaselineStage& stage, RingPace pace) {
  WT_EXPECT(!stage.ring.empty());
  return pace == RingPace::last_edge ? stage.ring.back() : *std::ranges::min_element(stage.ring);
}

/// One ring through all replicas, at the pace of its slowest edge.
Seconds flat_ring(const BaselineInputs& in, const BaselineStage& stage, RingPace pace) {
  if (in.data == 1) return {};
  BytesPerSecond rate = stage.in_node_rate;
  if (!stage.ring.empty()) {
    const BytesPerSecond between = pace_between_nodes(stage, pace);
    rate = stage.data_in_node > 1 ? std::min(rate, between) : between;
  }
  return ring_time(stage.gradients, in.data, rate);
}

Seconds two_level_ring(const BaselineInputs& in, const BaselineStage& stage, RingPace pace) {
  if (in.data == 1) return {};
  Seconds time = ring_time(stage.gradients, stage.data_in_node, stage.in_node_rate);
  if (!stage.ring.empty())
    time += ring_time(stage.gradients, std::max(1, in.data / stage.data_in_node),
                      pace_between_nodes(stage, pace));
  return time;
}

template <typename Ring>
Seconds slowest_ring(const BaselineInputs& in, const Ring& ring) {
  Seconds slowest{};
  for (const BaselineStage& stage : in.stages) slowest = std::max(slowest, ring(stage));
  return slowest;
}

/// Replays one pipeline pass by pass.
class PipelineReplay {
 public:
  PipelineReplay(const BaselineInputs& in, const std::vector<BytesPerSecond>& hops)
      : in_(in), hops_(hops), stages_(in.stages.size()) {
    const auto m = static_cast<std::size_t>(in.microbatches);
    const int p = static_cast<int>(in.stages.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].order = schedule_named("1f1b")->order({p, in.microbatches, 1}, StageId{s});
      stages_[s].activation.assign(m, s == 0 ? Seconds{0} : never);
      stages_[s].gradient.assign(m, s + 1 == stages_.size() ? Seconds{0} : never);
    }
  }

  Seconds end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size(); ++s)
        while (step(s)) moved = true;
    }
    Seconds end{};
    for (const Stage& stage : stages_) {
      WT_ENSURE(stage.next == stage.order.size());
      end = std::max(end, stage.free);
    }
    return end;
  }

 private:
  static constexpr Seconds never{-1};
  static constexpr std::size_t sends_on_their_way = 4;  // Varuna's simulator, for each stage

  struct Stage {
    std::vector<Step> order;
    std::size_t next = 0;
    Seconds free{};
    std::vector<Seconds> activation, gradient;  ///< when each microbatch's input is there
    std::vector<Seconds> arrivals;              ///< of what this stage has sent, in order
  };

  /// When a message that is ready now is there: it waits until fewer than four are on their way.
  Seconds send(Stage& from, Seconds ready, BytesPerSecond rate) {
    if (from.arrivals.size() >= sends_on_their_way)
      ready = std::max(ready, from.arrivals[from.arrivals.size() - sends_on_their_way]);
    from.arrivals.push_back(ready + in_.message / rate);
    return from.arrivals.back();
  }

  /// Runs the stage's next pass, if its input has been computed.
  bool step(std::size_t s) {
    Stage& stage = stages_[s];
    if (stage.next == stage.order.size()) return false;
    const Step pass = stage.order[stage.next];
    const bool forward = pass.phase == Phase::forward;
    const Seconds input = (forward ? stage.activation : stage.gradient)[pass.microbatch];
    if (input == never) return false;
    ++stage.next;
    stage.free =
        std::max(stage.free, input) + (forward ? in_.stages[s].forward : in_.stages[s].backward);
    if (forward && s + 1 < stages_.size())
      stages_[s + 1].activation[pass.microbatch] = send(stage, stage.free, hops_[s]);
    if (!forward && s > 0)
      stages_[s - 1].gradient[pass.microbatch] = send(stage, stage.free, hops_[s - 1]);
    return true;
  }

  const BaselineInputs& in_;
  const std::vector<BytesPerSecond>& hops_;
  std::vector<Stage> stages_;
};

}  // namespace

Seconds amp_estimate(const BaselineInputs& in, const BaselineOptions& options) {
  expect_complete(in);
  constexpr double passes = 3;  // forward, and a backward pass taken for two
  Seconds slowest{}, sum{};
  for (const BaselineStage& stage : in.stages) {
    slowest = std::max(slowest, stage.mean_forward * passes);
    sum += stage.mean_forward * passes;
  }
  const double directions = options.amp_hops == AmpHops::once ? 1 : 2;
  return slowest * static_cast<double>(in.microbatches - 1) + sum +
         mean_traversal(in) * directions + slowest_ring(in, [&](const BaselineStage& stage) {
           return flat_ring(in, stage, options.ring_pace);
         });
}

Seconds pipette_estimate(const BaselineInputs& in, const BaselineOptions& options) {
  expect_complete(in);
  const auto p = static_cast<double>(in.stages.size());
  const double m = in.microbatches;
  const Seconds pass = slowest_pass(in), round = pass * p + traversal(in) * 2;
  const auto whole = static_cast<double>(in.microbatches / static_cast<int>(in.stages.size()));
  const double rounds = options.rounds == Rounds::truncated ? whole : m / p;
  const Seconds pipeline = whole >= 1 ? round * rounds + pass * (p - 1) : round + pass * (m - 1);
  const BaselineStage& first = in.stages.front();
  return pipeline + (options.pipette_ring == RingLevels::one
                         ? flat_ring(in, first, options.ring_pace)
                         : two_level_ring(in, first, options.ring_pace));
}

Seconds varuna_estimate(const BaselineInputs& in, const BaselineOptions& options) {
  expect_complete(in);
  Seconds slowest{};
  for (const auto& pipeline : in.hops)
    slowest = std::max(slowest, PipelineReplay(in, pipeline).end());
  return slowest + slowest_ring(in, [&](const BaselineStage& stage) {
           return flat_ring(in, stage, options.ring_pace);
         });
}

Seconds megatron_estimate(const BaselineInputs& in) {
  expect_complete(in);
  return slowest_pass(in) * (in.microbatches + static_cast<double>(in.stages.size()) - 1);
}

Seconds baseline_estimate(Baseline baseline, const BaselineInputs& inputs,
                          const BaselineOptions& options) {
  switch (baseline) {
    case Baseline::amp:
      return amp_estimate(inputs, options);
    case Baseline::varuna:
      return varuna_estimate(inputs, options);
    case Baseline::pipette:
      return pipette_estimate(inputs, options);
    case Baseline::megatron:
      break;
  }
  return megatron_estimate(inputs);
}

Bytes released_gradients(const Transformer& model, int stage_layers, int tensor_ways,
                         Bytes element) {
  constexpr double released_weight = 16;  // of h^2 a layer
  const double h = model.hidden;
  return element * ((model.vocab * h + released_weight * h * h * stage_layers) / tensor_ways);
}

}  // namespace windtunnel
