#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "lower/collective_builder.hpp"
#include "search/placement_tables.hpp"

namespace windtunnel {

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
    RingWork work = RingWork::all_reduce;
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
    bool in_switch = false;  ///< all nodes reduce in the switch
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

}  // namespace windtunnel
