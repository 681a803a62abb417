#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lower/program_builder.hpp"
#include "memory/memory_account.hpp"
#include "scenario/scenario.hpp"
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

}  // namespace windtunnel
