#include "schedule/in_flight.hpp"

#include <algorithm>
#include <numeric>

namespace windtunnel {

InFlight count_in_flight(const std::vector<Step>& order, const std::vector<double>& weights) {
  const bool splits = std::any_of(order.begin(), order.end(), [](const Step& step) {
    return step.phase == Phase::weight_gradient;
  });
  const Phase last = splits ? Phase::weight_gradient : Phase::backward;
  InFlight most;
  double held = 0, of_first_backward = 0;
  bool gradients = false;
  for (const Step& step : order) {
    const double weight = weights.empty() ? 1 : weights[step.chunk];
    if (step.phase == Phase::forward) held += weight;
    most.all = std::max(most.all, held);
    if (gradients) most.with_gradients = std::max(most.with_gradients, held);
    if (step.phase != last) continue;
    held -= weight;
    // The first backward pass makes the gradients while it frees its own pair's activations: it never holds both in full, so the count
    // with gradients begins at its end. For 1F1B with m microbatches this gives, k = p - i: after the first backward pass k - 1 are held
    // if m > k, and the next forward pass makes them k again; if m <= k there is no further forward pass and m - 1 remain. Together
    // min(m - 1, k).
    if (!gradients) of_first_backward = weight;
    gradients = true;
  }
  // With a single microbatch the only backward pass is the first one: min(max(m - 1, 1), p - i).
  if (gradients) most.with_gradients = std::max(most.with_gradients, of_first_backward);
  return most;
}

InFlightOfStages count_in_flight(const Plan& plan) {
  InFlightOfStages stages;
  const int chunks = plan.parallel.virtual_pipeline;
  for (int s = 0; s < plan.parallel.pipeline; ++s) {
    std::vector<double> layers;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const ChunkPlace place{StageId{s}, chunk};
      layers.push_back(plan.chunk_layers(place) + plan.mtp_layers_of(place));
    }
    double all = std::accumulate(layers.begin(), layers.end(), 0.0);
    if (all == 0) {
      layers.clear();
      all = chunks;
    }
    const InFlight held = count_in_flight(schedule_order(plan, StageId{s}), layers);
    stages.all.push_back(held.all / all);
    stages.with_gradients.push_back(held.with_gradients / all);
  }
  return stages;
}

}  // namespace windtunnel
