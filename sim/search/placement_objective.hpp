#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedule/pipeline_program.hpp"
#include "search/placement_flows.hpp"
#include "search/placement_tables.hpp"

namespace windtunnel {

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
/// Where GPUs differ in memory, each unit on GPUs that its stage does not fit in adds T once more, and
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

  Seconds value() const { return value_; }
  int num_units() const { return tables_->num_units(); }
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
  /// What a term takes where it takes longest: one message, one pass forward and backward of a microbatch, one ring.
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
  int node_of(int slot) const { return static_cast<int>(tables_->slot(slot).node.index()); }
  int microbatches() const { return tables_->plan().microbatches; }

 private:
  /// The rings of all replicas that a stage enters after its passes, in this order.
  enum class AfterPasses { gradients, second_gradients, parameters };
  static constexpr std::size_t num_after_passes = 3;
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
  void set_works(int replica, int stage);
  void add_messages();
  void add_rings();
  PlacedRings rings_of_stage(int stage, std::uint32_t number, RingWork work) const;
  PlacedRings embedding_rings() const;
  void set_messages(int stage, int channel);
  void set_operation_collectives(int replica, int stage);
  /// Whether a member of these rings has moved.
  bool follow(std::size_t ring);
  void set_buckets(int stage);
  void refresh(const std::vector<char>& stages, const std::vector<std::pair<int, int>>& units);
  void refresh_ends();
  std::size_t ring_of(AfterPasses which, int stage) const;
  std::size_t bucket_ring(int stage, int chunk, ChunkCollective which) const;
  RingWork ring_work(int stage) const;
  void serve(AfterPasses which, std::vector<Seconds>& ends);
  void add_slowest(std::uint16_t row, std::vector<Seconds>& ends) const;
  Seconds total();
  int num_misfits() const;
  std::vector<std::pair<int, int>> flows_of(const PlacementTerm& term) const;
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
  /// By AfterPasses, by stage; then of buckets, by stage, chunk and half; then of embeddings.
  std::vector<PlacedRings> rings_;
  Seconds embedding_{}, value_{};
  Undo undo_;
  PlacementScratch scratch_;
};

}  // namespace windtunnel
