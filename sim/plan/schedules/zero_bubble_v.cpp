#include <algorithm>
#include <array>

#include "plan/schedule.hpp"

namespace windtunnel::schedules {
namespace {

/// A kind of pass; the microbatch is the next that has had none of this kind.
struct Kind {
  Phase phase = Phase::forward;
  std::uint16_t chunk = 0;
};
constexpr Kind f0{Phase::forward, 0}, b0{Phase::backward, 0}, w0{Phase::weight_gradient, 0};
constexpr Kind f1{Phase::forward, 1}, b1{Phase::backward, 1}, w1{Phase::weight_gradient, 1};

/// Part of an order: the same passes again and again.
struct Repeated {
  int times;
  std::vector<Kind> passes;
};

/// The order for n >= 2 p - 1 microbatches. Of fewer, the passes of those that there are keep this order.
std::vector<Repeated> parts_of_order(int p, int s, int n) {
  return {{2 * (p - s) - 1, {f0}},
          {s, {f1, f0}},
          {p - s, {f1, b1, w1}},
          {n - p, {f0, b0, w0, f1, b1, w1}},  // the last 2 p - s - 1 times without F of chunk 0
          {s, {b0, b1}},
          {p - s, {b0, w0}},
          {s, {w1}},
          {s, {w0}}};
}

std::vector<Step> order(const OrderShape& shape, StageId stage) {
  const int p = shape.stages, s = static_cast<int>(stage.index());
  const auto m = static_cast<std::uint32_t>(shape.microbatches);
  std::array<std::array<std::uint32_t, 2>, 3> next{};  // microbatch, by phase and chunk
  std::vector<Step> steps;
  for (const Repeated& part : parts_of_order(p, s, std::max(2 * p - 1, shape.microbatches))) {
    for (int time = 0; time < part.times; ++time) {
      for (const Kind& pass : part.passes) {
        const std::uint32_t microbatch = next[static_cast<std::size_t>(pass.phase)][pass.chunk]++;
        if (microbatch < m) steps.push_back({pass.phase, pass.chunk, microbatch});
      }
    }
  }
  return steps;
}

/// Up to 2 p - 1 microbatches are between the forward and the backward pass of chunk 0.
ScheduleReach reach(const OrderShape& shape) { return {.step = 1, .lag = 4 * shape.stages}; }

}  // namespace

/// ZB-V: chunks up and down the stages in a V, and weight gradients apart. No stage idles between its first and its last pass if
/// F = B = W and m >= 2 p - 1; 2 p chunks in flight on every stage, as many activations as 1F1B's peak (Qi et al. 2024, arXiv:2401.10241,
/// section 6). The order is that of ScheduleZBVZeroBubble._calculate_single_rank_operations in
/// torch/distributed/pipelining/schedules.py, PyTorch at 1fd7abc, whose messages leave by themselves.
Schedule zero_bubble_v() {
  return {.name = "zero_bubble_v",
          .order = order,
          .splits_backward = true,
          .chunks = ChunksPerDevice::two,
          .chunk_path = ChunkPath::v,
          .reach = reach,
          .sends = ScheduleSends::only_eager};
}

}  // namespace windtunnel::schedules
