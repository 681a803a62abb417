#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lower/collective_builder.hpp"
#include "lower/program_builder.hpp"
#include "memory/memory_account.hpp"
#include "scenario/scenario.hpp"
#include "schedule/pipeline_program.hpp"
#include "search/placement_path.hpp"

namespace windtunnel {

/// Constants of a search while units (a tensor group's GPUs in one node) change places: the places there are, what each stage's
/// passes take on each kind of them, the programs, the messages, and the routes between places.
class PlacementTables {
 public:
  explicit PlacementTables(const Scenario& scenario);

  /// Links that flows between two places share, and what is paid beside them.
  struct Route {
    bool in_node = true;
    BytesPerSecond bandwidth{};  ///< in the node; nothing else shares it
    Seconds latency{};
    std::uint32_t first_link = 0, num_links = 0;  ///< in link_list_
  };
  struct RouteLink {
    LinkId id;
    BytesPerSecond bandwidth{};
  };
  Route route(int from_slot, int to_slot);
  std::span<const RouteLink> links(const Route& route) const {
    return {link_list_.data() + route.first_link, route.num_links};
  }
  const Link& link(LinkId id) const { return network_.links()[id.index()]; }
  std::size_t num_links() const { return network_.links().size(); }

  const Scenario& scenario() const { return *scenario_; }
  const Plan& plan() const { return scenario_->plan; }
  const ProgramSet& programs() const { return built_.programs; }
  const DurationLayout& layout() const { return layout_; }
  int num_units() const { return static_cast<int>(slots_.size()); }
  const Network::Endpoint& slot(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  const NodeType& node_type(int slot) const;
  /// Works of a stage's device in a slot.
  const std::vector<Work>& works(std::size_t stage, int slot) const;
  /// Whether GPUs differ in memory so that a stage fits on some and not on others.
  bool memory_matters() const { return !fits_.empty(); }
  /// Whether a stage fits in the memory of a slot's GPUs; where all GPUs have as much, nobody asks.
  bool fits(std::size_t stage, int slot) const;
  /// The collective that the device of this stage enters at `slot_number` in the plan's own placement, or null.
  const Collective* collective(int unit, std::uint32_t slot_number) const;
  /// What it takes there while nobody else is on the network, each of its flows on its own.
  Seconds time_alone(const Collective& collective) const;

  /// Of each pipeline, by stage: when its passes end, all microbatches played. Long schedules of equal rounds are played for a
  /// few rounds, and what the last round added is added for each of the others.
  std::vector<std::vector<Seconds>> ends(
      const std::vector<const std::vector<Seconds>*>& pipelines) const;

 private:
  struct Kind {
    const NodeType* node;
    std::vector<int> gpus;  ///< where GPUs of a node differ
    bool operator==(const Kind&) const = default;
  };
  Kind kind_of(int slot) const;
  void fill_works();
  void fill_fits();
  std::vector<StageMemory> memory_on(const Device& device) const;

  const Scenario* scenario_;
  Plan played_plan_;        ///< the plan, with as many microbatches as are played
  double left_rounds_ = 0;  ///< rounds of p microbatches that are not played
  BuiltPrograms built_;
  DurationLayout layout_;
  std::vector<Network::Endpoint> slots_;          ///< where the plan's own devices are
  std::vector<Network::Attachment> attachments_;  ///< of the slots
  std::vector<int> kind_of_slot_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<std::vector<Work>>> works_;  ///< by stage, by kind
  std::vector<std::vector<char>> fits_;  ///< by stage, by kind; empty where it does not matter
  std::optional<PipelinePath> path_, shorter_path_;  ///< the second: a round fewer
  Network network_;
  Route find_route(int from_slot, int to_slot);

  /// By slots from and to; a row is empty until somebody asks for one of it.
  std::vector<std::vector<std::optional<Route>>> routes_;
  std::vector<RouteLink> link_list_;
};

/// Buffers for sums over links and nodes; all zero between uses.
struct PlacementScratch {
  std::vector<Seconds> link_time;
  std::vector<int> link_flows;
  std::vector<int> node_members;
};

/// Rings that are entered together: what they keep busy, and what does not depend on links.
struct RingCost {
  Seconds fixed{}, latency{};
  std::vector<std::pair<LinkId, Seconds>> busy;  ///< each link once

  /// How long they take while nothing else is on their links.
  Seconds alone() const;
};

/// Rings that are entered together, through units that change places. A move works out again which links the flows of the
/// members that moved cross; steps of a ring only where members share a node, or did.
class PlacedRings {
 public:
  struct Kind {
    RingKind work = RingKind::all_reduce;
    std::function<CollectiveSteps(const CollectiveTask&)> steps;
  };
  /// One more: through the units `members`, moving as much as `like`, which stands in the plan's own placement and must
  /// outlive this.
  void add(std::vector<int> members, const Collective& like, Kind kind);

  /// Says where the units are now, as CollectiveBuilder would make rings there. Returns whether a member has moved.
  bool follow(PlacementTables& tables, const std::vector<int>& slot_of, PlacementScratch& scratch);
  /// Takes back the last follow() that found a move.
  void undo();
  const RingCost& cost() const { return cost_; }

 private:
  struct Members {
    std::vector<int> units;
    const Collective* like = nullptr;
    Kind kind;
  };
  /// A ring as it lies on the slots.
  struct Ring {
    std::vector<int> slots;  ///< by member
    bool is_spread = false;  ///< each member has a node of its own
    Seconds fixed{}, latency{};
    std::vector<MemberFlow> flows;
    std::vector<PlacementTables::Route> routes;  ///< of the flows
  };
  void place(Ring& ring, const Members& members, PlacementTables& tables,
             const std::vector<int>& slot_of, PlacementScratch& scratch) const;
  void add_up(const PlacementTables& tables, PlacementScratch& scratch);

  std::vector<Members> members_;
  std::vector<Ring> rings_, rings_before_;
  RingCost cost_, cost_before_;
};

/// The messages of one channel of a stage in all pipelines: each link is shared by those that cross it.
class PlacedMessages {
 public:
  struct Flow {
    int from = 0, to = 0;  ///< units
    int from_slot = -1, to_slot = -1;
    PlacementTables::Route route;
    BytesPerSecond share{};    ///< of its slowest link
    bool has_changed = false;  ///< by the last follow()
  };
  void add(int from, int to);

  /// Says where the units are now. Returns whether one has moved.
  bool follow(PlacementTables& tables, const std::vector<int>& slot_of, PlacementScratch& scratch);
  /// Takes back the last follow() that found a move.
  void undo() { flows_.swap(flows_before_); }
  const std::vector<Flow>& flows() const {
    return flows_;
  }  ///< in the order in which they were added

 private:
  void share_links(const PlacementTables& tables, PlacementScratch& scratch);

  std::vector<Flow> flows_, flows_before_;
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
  PlacedRings rings_of_stage(int stage, std::uint32_t number, RingKind work) const;
  PlacedRings embedding_rings() const;
  void set_messages(int stage, int channel);
  void set_operation_collectives(int replica, int stage);
  /// Whether a member of these rings has moved.
  bool follow(std::size_t ring);
  void refresh(const std::vector<char>& stages, const std::vector<std::pair<int, int>>& units);
  void refresh_ends();
  /// In rings_: those that a stage enters as its collective of this number.
  std::size_t ring_of(int stage, std::uint32_t number) const;
  RingKind ring_work(int stage) const;
  void serve(std::uint32_t number, std::vector<Seconds>& ends);
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
  std::vector<PlacedRings> rings_;               ///< by ring_of()
  std::vector<std::uint32_t> ring_numbers_;      ///< of the collectives that are rings of replicas
  Seconds embedding_{}, value_{};
  Undo undo_;
  PlacementScratch scratch_;
};

}  // namespace windtunnel
