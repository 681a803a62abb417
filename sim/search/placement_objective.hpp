#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cost/collective_algorithm.hpp"
#include "scenario/scenario.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Layout of the durations of one pipeline in a list: zero first, then stage by stage its work rows, the messages of each
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
/// longest path through its programs. The time the engine would find if no other pipeline were in the way, as a straight line
/// of maxima and sums:  t_i = max(t_a, t_b) + duration_i. On equal stages and hops of 1F1B these are the closed forms
///   eager sends:     (m+p-1)(F+B) + c (2 (p-1) m/p + 2 (p-2))   p divides m
///   blocking pairs:  (m+p-1)(F+B) + c (2 m + 2 p - 5)           p > 2;  p = 2: c (m+1)
/// F, B: a microbatch forward, backward; c: a message; m microbatches on p stages. Derived here and tested against both.
/// Limit: messages of a channel go in one order, whatever the durations. In a V activations and gradients share channels; where only one
/// of the two is encoded during the passes, the engine sends first what is ready first, and this is an estimate.
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

/// Buffers for sums over links and nodes; all zero between uses.
struct PlacementScratch {
  std::vector<Seconds> link_time;
  std::vector<int> link_flows;
  std::vector<int> node_members;
};

/// A part of the estimate: what can be slow in a placement.
struct PlacementTerm {
  enum class Kind {
    passes,    ///< of a stage
    messages,  ///< of a stage to another
    ring,      ///< the gradients of a stage
    embedding,
  };
  Kind kind = Kind::passes;
  int stage = 0;
  int channel = 0;  ///< messages: which of the stage's
};

class PlacementTables;
class PlacedRings;
class PlacedMessages;

/// An estimate of the iteration time as a function of who is where, and how it changes with a move.
///
///   T = max over stages s of  end_s + optimizer + parameter gather + overhead
///   end_s:  the gradient rings of stage s (PowerSGD has two), entered when its last replica's passes end; first and last
///           stage then synchronise their embeddings. What encoding and decoding take stands around the rings.
///
/// - Passes: the longest path through each pipeline's programs (PipelinePath), with what each stage takes on the GPUs it is
///   on and what each message takes over the links between; the slowest of all pipelines counts.
/// - A message moves at the rate of the slowest link on its way, each shared by the messages of the same stage in the same
///   direction that cross it: replicas run in step, stages do not.
/// - Rings: every link serves the rings that cross it in the order in which they are entered; a ring ends with its slowest
///   link, or its part inside a node.
///
/// If GPUs differ in memory, each unit on GPUs that its stage does not fit in adds T once more, and
/// so do two parts of one tensor group on one node, which no plan has.
/// Leaves out: messages of different stages that meet, and messages that meet rings. The simulation has both.
/// A unit is a device of the plan: a tensor group's GPUs in one node. Units only change places with each other.
class PlacementObjective {
 public:
  /// The scenario must outlive the objective.
  explicit PlacementObjective(const Scenario& scenario);
  explicit PlacementObjective(Scenario&&) = delete;
  /// With the units in these slots from the start: nothing is kept of another placement.
  PlacementObjective(const Scenario& scenario, std::vector<int> slots);
  PlacementObjective(const PlacementObjective&);
  ~PlacementObjective();

  Seconds value() const { return value_; }
  int num_units() const { return static_cast<int>(slot_of_.size()); }
  /// By unit (device of the plan): the place, as the device that is there in the plan's own placement.
  const std::vector<int>& slots() const { return slot_of_; }

  /// Puts units elsewhere: (unit, slot), which must leave one unit in each slot. What no moved unit touches is kept.
  void move(const std::vector<std::pair<int, int>>& changes);
  /// Takes the last move back.
  void undo();
  /// All units at once.
  void place(const std::vector<int>& slots);

  /// All that the estimate is made of and that a placement changes.
  std::vector<PlacementTerm> terms() const;
  /// Time of a term on its slowest replica: one message, one pass forward and backward of a microbatch, or one ring.
  Seconds time_of(const PlacementTerm& term) const;
  /// The slowest link that a term's flows cross.
  struct Slowest {
    std::string link;            ///< empty: everything stays in nodes
    BytesPerSecond bandwidth{};  ///< of that link, infinite where there is none
  };
  Slowest slowest_link(const PlacementTerm& term) const;
  /// The estimate with one term as it is in another placement of the same scenario.
  Seconds value_with(const PlacementTerm& term, const PlacementObjective& other) const;
  int num_channels(int stage) const;
  int target(int stage, int channel) const;
  /// The node of a slot.
  int node_of(int slot) const;

 private:
  struct Undo {
    std::vector<std::pair<int, int>> slots;
    std::vector<std::pair<std::size_t, std::vector<Seconds>>> ends;  ///< by replica
    struct Duration {
      std::size_t replica, index;
      Seconds time;
    };
    std::vector<Duration> durations;
    std::vector<std::size_t> rings, messages;  ///< in rings_ and messages_
    Seconds embedding{}, value{};
  };

  int unit(int replica, int stage, int part) const {
    return (replica * pipeline_ + stage) * parts_ + part;
  }
  int slot_of(int unit) const { return slot_of_[static_cast<std::size_t>(unit)]; }

  void set_duration(int replica, std::uint32_t index, Seconds time);
  void add_messages();
  void add_rings();
  void set_messages(int stage, int channel);
  void set_operation_collectives(int replica, int stage);
  /// True if a member of these rings has moved.
  bool follow(std::size_t ring);
  void refresh_ends();
  /// In rings_: those that a stage enters as its collective of this number.
  std::size_t ring_of(int stage, std::uint32_t number) const;
  void serve(std::uint32_t number, std::vector<Seconds>& ends);
  void add_slowest(std::uint16_t row, std::vector<Seconds>& ends) const;
  Seconds total();
  std::vector<std::uint32_t> durations_of(const PlacementTerm& term) const;

  std::shared_ptr<PlacementTables> tables_;  ///< copies of the objective share them
  int pipeline_ = 1, data_ = 1, parts_ = 1;
  bool has_rings_ = false, has_buckets_ = false, has_gather_ = false, ties_embeddings_ = false;
  int embedding_stage_ = 0, head_stage_ = 0;
  std::vector<int> slot_of_;
  std::vector<std::vector<Seconds>> durations_;  ///< by replica
  std::vector<std::vector<Seconds>> ends_;       ///< by replica, by stage
  std::vector<char> dirty_;                      ///< by replica
  std::vector<PlacedMessages> messages_;         ///< by stage, by channel
  std::vector<std::size_t> first_messages_;      ///< of a stage, in messages_
  std::vector<PlacedRings> rings_;               ///< by ring_of()
  std::vector<std::uint32_t> ring_numbers_;      ///< of the collectives that are rings of replicas
  Seconds embedding_{}, value_{};
  Undo undo_;
  PlacementScratch scratch_;
};

}  // namespace windtunnel
