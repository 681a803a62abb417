#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.hpp"

namespace windtunnel {

/// Where the durations of one pipeline stand in a list: zero first, then stage by stage its work rows, the messages of each
/// outgoing channel, and its collectives.
struct DurationLayout {
  int chunks = 1;                 ///< model chunks of a device
  std::uint32_t rows = 0;         ///< of a device's work table
  std::uint32_t messages = 0;     ///< rows of the message size table
  std::uint32_t collectives = 0;  ///< slots of a device
  std::uint32_t channels = 2;     ///< most outgoing channels of a stage

  std::uint32_t of_stage() const { return rows + channels * messages + collectives; }
  std::uint32_t base(std::size_t stage) const {
    return 1 + static_cast<std::uint32_t>(stage) * of_stage();
  }
  std::uint32_t work(std::size_t stage, std::uint32_t row) const { return base(stage) + row; }
  std::uint32_t message(std::size_t stage, std::uint32_t channel, std::uint32_t row) const {
    return base(stage) + rows + channel * messages + row;
  }
  std::uint32_t collective(std::size_t stage, std::uint32_t slot) const {
    return base(stage) + rows + channels * messages + slot;
  }
  std::size_t size(std::size_t stages) const { return base(stages); }
};

/// When each stage of one pipeline is done with its passes, as a function of how long its works and messages take: the
/// longest path through its programs. What the engine would play if no other pipeline were in the way, as a straight line
/// of maxima and sums:  t_i = max(t_a, t_b) + duration_i. On equal stages and hops of 1F1B these are the closed forms
///   eager sends:     (m+p-1)(F+B) + c (2 (p-1) m/p + 2 (p-2))   p divides m
///   blocking pairs:  (m+p-1)(F+B) + c (2 m + 2 p - 5)           p > 2;  p = 2: c (m+1)
/// F, B: a microbatch forward, backward; c: a message; m microbatches on p stages. Derived here and tested against both.
/// Limit: messages of a channel go in one order, whatever the durations. In a V activations and gradients share channels; where only one
/// of the two is encoded beside the passes, the engine sends first what is ready first, and this is an estimate.
class PipelinePath {
 public:
  /// `programs`: by stage. They must be able to finish.
  PipelinePath(const std::vector<StageProgram>& programs, const DurationLayout& layout);

  /// By stage: when it would enter its gradient reduction, or what follows where there is none. `durations` as in the
  /// layout.
  std::vector<Seconds> ends(const std::vector<Seconds>& durations) const;
  /// The same of several pipelines. Those that are worked out together hide each other's waiting for memory.
  std::vector<std::vector<Seconds>> ends(
      const std::vector<const std::vector<Seconds>*>& pipelines) const;

 private:
  struct Step {
    std::uint32_t a = 0, b = 0;  ///< steps it comes after
    std::uint32_t duration = 0;
  };
  template <std::size_t lanes>
  void add_ends(const std::vector<Seconds>* const* pipelines,
                std::vector<std::vector<Seconds>>& ends) const;
  std::vector<Step> steps_;               ///< each after those it names; the first is the start
  std::vector<std::uint32_t> stage_end_;  ///< step by stage
  mutable std::vector<Seconds> times_;    ///< scratch
};

}  // namespace windtunnel
