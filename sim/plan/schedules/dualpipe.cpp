#include <algorithm>
#include <array>
#include <deque>

#include "core/contracts.hpp"
#include "plan/schedules/variants.hpp"

namespace windtunnel::schedules {
namespace {

/// Writes passes by phase, each the next of its kind. What is written as one block runs together.
class DualPipeWriter {
 public:
  explicit DualPipeWriter(const DualPipeRank& rank) : rank_(rank) {}

  void forward(int phase) { add(next(Phase::forward, phase)); }
  /// Input gradients alone; their weight gradients come later.
  void input_gradient(int phase) {
    const Step step = next(Phase::backward, phase);
    add(step);
    left_.push_back({Phase::weight_gradient, step.chunk, step.microbatch});
  }
  void weight_gradient() {
    add(left_.front());
    left_.pop_front();
  }
  void backward(int phase) {
    const Step step = next(Phase::backward, phase);
    add(step);
    join({Phase::weight_gradient, step.chunk, step.microbatch});
  }
  void backward(int phase, bool split) { split ? input_gradient(phase) : backward(phase); }
  /// One microbatch forward and another backward at once.
  void pair(int forward_phase, int backward_phase) {
    forward(forward_phase);
    Step step = next(Phase::backward, backward_phase);
    join(step);
    step.phase = Phase::weight_gradient;
    join(step);
  }

  std::vector<Step> take() {
    WT_ENSURE(left_.empty());
    return std::move(steps_);
  }

 private:
  Step next(Phase phase, int of_phase) {
    const int chunk = of_phase == 0 ? rank_.chunk_of_first_phase : 1 - rank_.chunk_of_first_phase;
    const int number = passed_[phase == Phase::forward ? 0 : 1][static_cast<std::size_t>(chunk)]++;
    return {phase, static_cast<std::uint16_t>(chunk),
            static_cast<std::uint32_t>(number * rank_.stride + chunk * (rank_.stride - 1))};
  }
  void add(const Step& step) { steps_.push_back(step); }
  void join(Step step) {
    step.joined = true;
    add(step);
  }

  DualPipeRank rank_;
  std::array<std::array<int, 2>, 2> passed_{};  ///< forward and backward, by chunk
  std::deque<Step> left_;                       ///< weight gradients that are still to come
  std::vector<Step> steps_;
};

/// Half of the ranks take part in either way through the model; a rank runs what DualPipeV's of the same distance from the middle does.
std::vector<Step> order(const OrderShape& shape, StageId stage) {
  const int p = shape.stages, s = static_cast<int>(stage.index());
  const bool second_half = s >= p / 2;
  return dualpipe_order({.ranks = p / 2,
                         .rank = std::min(s, p - 1 - s),
                         .microbatches = shape.microbatches / 2,
                         .chunk_of_first_phase = second_half ? 1 : 0,
                         .stride = 2});
}

ScheduleReach reach(const OrderShape& shape) {
  return dualpipe_reach({.ranks = shape.stages / 2, .stride = 2});
}

}  // namespace

ScheduleReach dualpipe_reach(const DualPipeRank& rank) {
  return {.step = rank.stride, .lag = rank.stride * 4 * rank.ranks};
}

std::vector<Step> dualpipe_order(const DualPipeRank& shape) {
  const int p = shape.ranks, r = shape.rank, before = p - r - 1;
  WT_EXPECT(shape.microbatches >= 2 * p);
  const auto repeat = [](int times, const auto& passes) {
    for (int time = 0; time < times; ++time) passes(time);
  };
  DualPipeWriter writer(shape);
  repeat(2 * before, [&](int) { writer.forward(0); });
  repeat(r + 1, [&](int) {
    writer.forward(0);
    writer.forward(1);
  });
  repeat(before, [&](int) {
    writer.input_gradient(1);
    writer.weight_gradient();
    writer.forward(1);
  });
  repeat(shape.microbatches - 2 * p + r + 1, [&](int time) {
    if (time == 0 && before == 0) {  // apart, so that the last rank hands the gradient on sooner
      writer.forward(0);
      writer.backward(1);
    } else {
      writer.pair(0, 1);
    }
    writer.pair(1, 0);
  });
  repeat(before, [&](int) {
    writer.backward(1);
    writer.pair(1, 0);
  });
  const int half =
      (r + 1) / 2;  // from here on weight gradients wait, of an odd rank one pass sooner
  repeat(r + 1, [&](int time) {
    writer.backward(1, time > half || (time == half && r % 2 == 1));
    writer.backward(0, time >= half);
  });
  repeat(before, [&](int) {
    writer.weight_gradient();
    writer.input_gradient(0);
  });
  repeat(r + 1, [&](int) { writer.weight_gradient(); });
  return writer.take();
}

/// DualPipe: two copies of the model's parameters, stage s with parts s and p - 1 - s of it, and microbatches from both ends; in the
/// middle each forward pass runs together with a backward pass, whose exchanges of tokens hide behind the other's kernels. p + 1 chunks
/// in flight on every stage; idle (p/2 - 1) (F&B + B - 3 W) (DeepSeek-V3, arXiv:2412.19437, section 3.2.1, table 2). The order is that of
/// DualPipe.step in dualpipe/dualpipe.py, github.com/deepseek-ai/DualPipe at 3da1bbe; its messages wait for one another where ours leave
/// by themselves.
Schedule dualpipe() {
  return {.name = "dualpipe",
          .order = order,
          .splits_backward = true,
          .chunks = ChunksPerDevice::two,
          .chunk_path = ChunkPath::bidirectional,
          .reach = reach,
          .sends = ScheduleSends::only_eager,
          .fewest_microbatches_of_stage = 2,
          .overlaps_passes = true};
}

}  // namespace windtunnel::schedules
