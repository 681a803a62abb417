#include "search/placement_objective.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"
#include "lower/collective_builder.hpp"
#include "lower/program_builder.hpp"
#include "memory/memory_account.hpp"
#include "schedule/in_flight.hpp"
#include "schedule/order_of_waiting.hpp"
#include "schedule/pipeline_program.hpp"
#include "simulate/memory_inputs.hpp"

namespace windtunnel {
namespace {

constexpr BytesPerSecond no_limit{std::numeric_limits<double>::infinity()};

BuiltPrograms built_for(const Scenario& scenario, const Plan& plan) {
  return build_programs(
      {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &plan});
}

/// Number of work rows of a stage's device.
std::uint32_t rows_of_stage(const BuiltPrograms& built, const Plan& plan, std::size_t unit) {
  if (!built.by_operation)
    return num_work_rows(plan.parallel.virtual_pipeline, has_codec_work(plan.compression));
  return OperationPlaces(operations_of(built.cost_of_device[unit]),
                         directions_of(plan.parallel.schedule->splits_backward))
      .num_rows();
}

/// Passes of one pipeline up to which a schedule is simulated in full.
constexpr int most_simulated_passes = 2048;
/// Rounds of p microbatches that are simulated of a longer schedule: fill, one in the middle, drain.
constexpr int simulated_rounds = 3;

/// Microbatches to simulate: all, or so few that the rest are whole rounds.
int simulated_microbatches(const Plan& plan, bool by_operation) {
  // 24 layers with about eight operations each, so that the effort is that of whole passes [own].
  constexpr int operations_of_pass = 200;
  const int p = plan.parallel.pipeline, m = plan.microbatches;
  const int most = most_simulated_passes / (by_operation ? operations_of_pass : 1);
  const bool is_short = m <= most / p / plan.parallel.virtual_pipeline;
  const Schedule& schedule = *plan.parallel.schedule;
  if (schedule.fewest_microbatches_of_stage > 0) return m;
  if (is_short || schedule.written || m < (simulated_rounds + 1) * p) return m;
  return simulated_rounds * p + m % p;
}

/// Pipelines worked out together.
constexpr std::size_t most_lanes = 4;

/// The programs up to the first op after the passes, with which the work of all replicas together begins; their last event is recorded there.
std::vector<StageProgram> passes_of(std::vector<StageProgram> programs, int chunks) {
  const auto is_tail = [chunks](const Op& op) {
    if (op.kind == OpKind::collective) return op.slot < num_device_collectives;
    return op.kind == OpKind::compute && is_after_passes(op.work, chunks);
  };
  for (StageProgram& program : programs) {
    for (std::vector<Op>& ops : program.streams)
      ops.erase(std::ranges::find_if(ops, is_tail), ops.end());
    Op end;
    end.kind = OpKind::record;
    end.slot = program.num_events++;
    program.streams[static_cast<std::size_t>(Stream::compute)].push_back(end);
  }
  return programs;
}

}  // namespace

/// Constants of a search while units (a tensor group's GPUs in one node) change places: the places there are, what each stage's
/// passes take on each kind of them, the programs, the messages, and the routes between places.
class PlacementTables {
 public:
  explicit PlacementTables(const Scenario& scenario)
      : scenario_(&scenario),
        simulated_plan_(scenario.plan),
        network_(scenario.platform, scenario.plan.num_nodes) {
    const int p = plan().parallel.pipeline;
    simulated_plan_.microbatches = simulated_microbatches(
        plan(), simulates_operations({&scenario.model, &scenario.platform, &scenario.nodes,
                                      &scenario.software, &scenario.plan}));
    left_rounds_ = static_cast<double>(plan().microbatches - simulated_plan_.microbatches) / p;
    built_ = built_for(scenario, simulated_plan_);
    for (const PlanDevice& device : plan().devices) {
      slots_.push_back({device.node, device.gpus});
      exits_.push_back(exit_of(scenario.platform, device.node, scenario.nodes[device.node.index()],
                               device.gpus));
      attachments_.push_back(network_.attach(device.node, device.gpus));
    }
    layout_.chunks = plan().parallel.virtual_pipeline;
    for (int s = 0; s < p; ++s)
      layout_.rows = std::max(
          layout_.rows, rows_of_stage(built_, plan(), plan().device(0, StageId{s}, 0).index()));
    layout_.messages = static_cast<std::uint32_t>(programs().message_bytes.size());
    for (const StageProgram& program : programs().programs)
      layout_.collectives = std::max(layout_.collectives, program.num_collectives);
    path_.emplace(programs().programs, layout_);
    if (left_rounds_ > 0) {
      Plan shorter = simulated_plan_;
      shorter.microbatches -= p;
      shorter_path_.emplace(built_for(scenario, shorter).programs.programs, layout_);
    }
    fill_works();
    fill_fits();
  }

  /// Links that flows between two places share, and what is paid in addition to them.
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
  Route route(int from_slot, int to_slot) {
    routes_.resize(slots_.size());
    std::vector<std::optional<Route>>& row = routes_[static_cast<std::size_t>(from_slot)];
    row.resize(slots_.size());
    std::optional<Route>& known = row[static_cast<std::size_t>(to_slot)];
    if (known) return *known;
    known = Route{};
    Route& route = *known;
    const Network::Endpoint &from = slot(from_slot), &to = slot(to_slot);
    if (from.node == to.node) {
      const Interconnect& wires = node_type(from_slot).interconnect;
      route.bandwidth = wires.point_to_point * static_cast<double>(from.gpus.size());
      route.latency = wires.point_to_point_latency;
      return route;
    }
    route.in_node = false;
    route.first_link = static_cast<std::uint32_t>(link_list_.size());
    const auto found = network_.route(attachments_[static_cast<std::size_t>(from_slot)],
                                      attachments_[static_cast<std::size_t>(to_slot)]);
    route.latency = found.latency;
    for (const PathId path : {found.up, found.down})
      for (const LinkId id : network_.path(path)) link_list_.push_back({id, link(id).bandwidth});
    route.num_links = static_cast<std::uint32_t>(link_list_.size()) - route.first_link;
    return route;
  }

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
  const NodeType& node_type(int slot) const {
    return scenario_->nodes[this->slot(slot).node.index()];
  }
  /// True if two slots are of one kind.
  bool are_alike(int a, int b) const {
    return kind_of_slot_[static_cast<std::size_t>(a)] == kind_of_slot_[static_cast<std::size_t>(b)];
  }
  /// The path from a slot's node to another's.
  NodeExit exit(int from, int to) const {
    return exit_to(scenario_->platform, slot(from).node, slot(to).node,
                   exits_[static_cast<std::size_t>(from)]);
  }

  /// Works of a stage's device in a slot.
  const std::vector<Work>& works(std::size_t stage, int slot) const {
    return works_[stage][static_cast<std::size_t>(kind_of_slot_[static_cast<std::size_t>(slot)])];
  }

  /// True if a stage fits in the memory of a slot's GPUs, or if all GPUs have the same memory.
  bool fits(std::size_t stage, int slot) const {
    const auto kind = static_cast<std::size_t>(kind_of_slot_[static_cast<std::size_t>(slot)]);
    return fits_.empty() || fits_[stage][kind] != 0;
  }

  /// The collective that the device of this stage enters at `slot_number` in the plan's own placement, or null.
  const Collective* collective(int unit, std::uint32_t slot_number) const {
    const std::vector<std::optional<CollectiveId>>& entered =
        programs().devices[static_cast<std::size_t>(unit)].collectives;
    const std::optional<CollectiveId> id =
        slot_number < entered.size() ? entered[slot_number] : std::nullopt;
    return id ? &programs().collectives[id->index()] : nullptr;
  }

  /// Time of the collective on an idle network, each of its flows on its own.
  Seconds time_alone(const Collective& collective) const {
    Seconds time = collective.fixed;
    for (const CollectiveFlow& flow : collective.flows)
      time = std::max(
          time, collective.latency + flow.bytes / built_.network.rate_alone({flow.up, flow.down}));
    return time;
  }

  /// Ends of each pipeline's passes, by stage, after all microbatches. Long schedules of equal rounds are simulated for a
  /// few rounds, and what the last round added is added for each of the others.
  std::vector<std::vector<Seconds>> ends(
      const std::vector<const std::vector<Seconds>*>& pipelines) const {
    std::vector<std::vector<Seconds>> ends = path_->ends(pipelines);
    if (!shorter_path_) return ends;
    const std::vector<std::vector<Seconds>> before = shorter_path_->ends(pipelines);
    for (std::size_t i = 0; i < ends.size(); ++i)
      for (std::size_t s = 0; s < ends[i].size(); ++s)
        ends[i][s] += (ends[i][s] - before[i][s]) * left_rounds_;
    return ends;
  }

 private:
  struct Kind {
    const NodeType* node;
    std::vector<int> gpus;  ///< where GPUs of a node differ
    bool operator==(const Kind&) const = default;
  };
  Kind kind_of(int slot) const {
    const Network::Endpoint& place = this->slot(slot);
    const NodeType& type = scenario_->platform.type_of(place.node);
    const bool position_matters = type.interconnect.kind == Interconnect::Kind::mesh;
    return {&type, position_matters ? place.gpus : std::vector<int>{}};
  }

  /// Every stage on every kind of place: as the plan has them; for other kinds, after two tensor groups change places.
  void fill_works() {
    for (int s = 0; s < num_units(); ++s) {
      const Kind kind = kind_of(s);
      const auto found = std::ranges::find(kinds_, kind);
      kind_of_slot_.push_back(static_cast<int>(found - kinds_.begin()));
      if (found == kinds_.end()) kinds_.push_back(kind);
    }
    const auto rows_of = [&](const BuiltPrograms& built, std::size_t unit) {
      const auto first = built.programs.work.begin() + built.programs.devices[unit].work_base;
      std::vector<Work> rows(first, first + rows_of_stage(built, plan(), unit));
      rows.resize(layout_.rows);
      return rows;
    };
    const auto stages = static_cast<std::size_t>(plan().parallel.pipeline);
    works_.assign(stages, std::vector<std::vector<Work>>(kinds_.size()));
    for (std::size_t unit = 0; unit < slots_.size(); ++unit) {
      auto& works =
          works_[plan().devices[unit].stage.index()][static_cast<std::size_t>(kind_of_slot_[unit])];
      if (works.empty()) works = rows_of(built_, unit);
    }
    Plan swapped = simulated_plan_;
    // Whole tensor groups change places: the parts of each stay on nodes of their own.
    const auto swap_groups = [&](std::size_t stage, const PlanDevice& with) {
      for (int part = 0; part < plan().nodes_per_tensor_group; ++part) {
        PlanDevice& here = swapped.devices[plan().device(0, StageId{stage}, part).index()];
        PlanDevice& there = swapped.devices[plan().device(with.replica, with.stage, part).index()];
        std::swap(here.node, there.node);
        std::swap(here.gpus, there.gpus);
      }
    };
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (!works_[stage][kind].empty()) continue;
        const auto first = static_cast<std::size_t>(
            std::ranges::find(kind_of_slot_, static_cast<int>(kind)) - kind_of_slot_.begin());
        const PlanDevice& place = plan().devices[first];
        const DeviceId moved = plan().device(0, StageId{stage}, place.group_node);
        swap_groups(stage, place);
        works_[stage][kind] = rows_of(built_for(*scenario_, swapped), moved.index());
        swap_groups(stage, place);
      }
    }
  }

  /// Every stage as if all its replicas were on one kind of device.
  void fill_fits() {
    const auto usable = [](const Kind& kind) { return kind.node->device.usable_memory; };
    const bool all_equal = std::ranges::all_of(
        kinds_, [&](const Kind& kind) { return usable(kind) == usable(kinds_.front()); });
    if (all_equal) return;
    fits_.assign(works_.size(), std::vector<char>(kinds_.size(), 0));
    MemoryInputs inputs = memory_inputs(*scenario_, plan(), count_in_flight(plan()));
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      inputs.device_of_stage.assign(inputs.device_of_stage.size(), &kinds_[kind].node->device);
      const std::vector<StageMemory> stages = account_memory(inputs).stages;
      for (std::size_t stage = 0; stage < stages.size(); ++stage)
        fits_[stage][kind] = stages[stage].verdict != MemoryVerdict::does_not_fit ? 1 : 0;
    }
  }

  const Scenario* scenario_;
  Plan simulated_plan_;     ///< the plan, with as many microbatches as are simulated
  double left_rounds_ = 0;  ///< rounds of p microbatches that are not simulated
  BuiltPrograms built_;
  DurationLayout layout_;
  std::vector<Network::Endpoint> slots_;          ///< where the plan's own devices are
  std::vector<Network::Attachment> attachments_;  ///< of the slots
  std::vector<NodeExit> exits_;                   ///< of the slots, whatever node comes next
  std::vector<int> kind_of_slot_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<std::vector<Work>>> works_;  ///< by stage, by kind
  std::vector<std::vector<char>> fits_;  ///< by stage, by kind; empty where it does not matter
  std::optional<PipelinePath> path_, shorter_path_;  ///< the second: a round fewer
  Network network_;
  /// By slots from and to; a row is empty until somebody asks for one of it.
  std::vector<std::vector<std::optional<Route>>> routes_;
  std::vector<RouteLink> link_list_;
};

/// Rings that are entered together: what they keep busy, and what does not depend on links.
struct RingCost {
  Seconds fixed{}, latency{};
  std::vector<std::pair<LinkId, Seconds>> busy;  ///< each link once

  /// Time of the rings with nothing else on their links.
  Seconds alone() const {
    Seconds slowest{};
    for (const auto& [link, time] : busy) slowest = std::max(slowest, time);
    return std::max(fixed, latency + slowest);
  }
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
  void add(std::vector<int> members, const Collective& like, Kind kind) {
    members_.push_back({std::move(members), &like, std::move(kind)});
    rings_.emplace_back().slots.assign(members_.back().units.size(), -1);
  }

  /// Says where the units are now, as CollectiveBuilder would make rings there. Returns whether a member has moved.
  bool follow(PlacementTables& tables, const std::vector<int>& slot_of, PlacementScratch& scratch) {
    bool has_moved = false;
    for (std::size_t i = 0; i < rings_.size(); ++i) {
      const std::vector<int>& units = members_[i].units;
      const bool is_same = std::equal(units.begin(), units.end(), rings_[i].slots.begin(),
                                      [&](const int unit, const int slot) {
                                        return slot_of[static_cast<std::size_t>(unit)] == slot;
                                      });
      if (is_same) continue;
      if (!has_moved) rings_before_ = rings_;
      has_moved = true;
      place(rings_[i], members_[i], tables, slot_of, scratch);
    }
    if (!has_moved) return false;
    cost_before_.busy.swap(cost_.busy);
    cost_before_.fixed = cost_.fixed;
    cost_before_.latency = cost_.latency;
    add_up(tables, scratch);
    return true;
  }

  /// Takes back the last follow() that found a move.
  void undo() {
    rings_.swap(rings_before_);
    std::swap(cost_, cost_before_);
  }

  const RingCost& cost() const { return cost_; }

 private:
  struct Members {
    std::vector<int> units;
    const Collective* like = nullptr;
    Kind kind;
  };
  /// A ring as it lies on the slots.
  struct Ring {
    std::vector<int> slots;       ///< by member
    bool is_spread = false;       ///< each member has a node of its own
    std::vector<NodeExit> exits;  ///< of such members, to the next
    NodeExit slowest_exit() const { return *std::ranges::min_element(exits, {}, &NodeExit::rate); }
    Seconds fixed{}, latency{};
    std::vector<MemberFlow> flows;
    std::vector<PlacementTables::Route> routes;  ///< of the flows
  };
  /// A collective whose members all have nodes of their own has the same steps wherever the slowest path out of a node is as fast.
  void place(Ring& ring, const Members& members, PlacementTables& tables,
             const std::vector<int>& slot_of, PlacementScratch& scratch) const {
    const std::vector<int> before = ring.slots;
    for (std::size_t i = 0; i < before.size(); ++i)
      ring.slots[i] = slot_of[static_cast<std::size_t>(members.units[i])];
    const std::optional<NodeExit> was =
        ring.is_spread ? std::optional(ring.slowest_exit()) : std::nullopt;
    const auto node = [&](int slot) { return tables.slot(slot).node.index(); };
    std::vector<int>& node_members = scratch.node_members;
    ring.is_spread = true;
    for (const int slot : ring.slots) {
      if (node(slot) >= node_members.size()) node_members.resize(node(slot) + std::size_t{1});
      ring.is_spread &= ++node_members[node(slot)] == 1;
    }
    for (const int slot : ring.slots) node_members[node(slot)] = 0;
    // The exits of nodes whose members moved, or whose next member did.
    const bool knows_others = !ring.exits.empty();
    ring.exits.resize(ring.is_spread ? before.size() : 0);
    for (std::size_t i = 0; i < ring.exits.size(); ++i) {
      const std::size_t next = (i + 1) % before.size();
      if (knows_others && ring.slots[i] == before[i] && ring.slots[next] == before[next]) continue;
      ring.exits[i] = tables.exit(ring.slots[i], ring.slots[next]);
    }
    const bool keeps_steps = was && ring.is_spread && ring.slowest_exit() == *was &&
                             tables.are_alike(before.front(), ring.slots.front());
    if (!keeps_steps) {
      std::vector<NodeId> nodes;
      for (const int slot : ring.slots) nodes.push_back(tables.slot(slot).node);
      const CollectiveMembers placed{
          std::move(nodes),
          [&](std::size_t i) -> const std::vector<int>& { return tables.slot(ring.slots[i]).gpus; },
          [&](std::size_t i) -> const NodeType& { return tables.node_type(ring.slots[i]); }};
      CollectiveSteps steps = members.kind.steps(
          collective_task(tables.scenario().platform, placed, members.like->payload,
                          members.kind.work, tables.scenario().software.gathers_by_pat));
      ring.fixed = steps.fixed;
      ring.latency = steps.latency;
      ring.flows = std::move(steps.flows);
      ring.routes.resize(ring.flows.size());
    }
    for (std::size_t i = 0; i < ring.flows.size(); ++i) {
      const auto [from, to, bytes] = ring.flows[i];
      if (keeps_steps && before[from] == ring.slots[from] && before[to] == ring.slots[to]) continue;
      ring.routes[i] = tables.route(ring.slots[from], ring.slots[to]);
    }
  }

  /// Each link once, with all the time it is kept busy.
  void add_up(const PlacementTables& tables, PlacementScratch& scratch) {
    std::vector<Seconds>& link_time = scratch.link_time;
    if (link_time.size() < tables.num_links()) link_time.resize(tables.num_links());
    cost_.fixed = cost_.latency = Seconds{0};
    cost_.busy.clear();
    for (const Ring& ring : rings_) {
      cost_.fixed = std::max(cost_.fixed, ring.fixed);
      cost_.latency = std::max(cost_.latency, ring.latency);
      for (std::size_t i = 0; i < ring.flows.size(); ++i) {
        for (const auto& link : tables.links(ring.routes[i])) {
          Seconds& sum = link_time[link.id.index()];
          if (sum == Seconds{0}) cost_.busy.emplace_back(link.id, Seconds{0});
          sum += ring.flows[i].bytes / link.bandwidth;
        }
      }
    }
    for (auto& [link, time] : cost_.busy) time = std::exchange(link_time[link.index()], Seconds{0});
  }

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
    PlacementTables::Route route{};
    BytesPerSecond share{};    ///< of its slowest link
    bool has_changed = false;  ///< by the last follow()
  };
  void add(int from, int to) { flows_.push_back({from, to}); }

  /// Says where the units are now. Returns whether one has moved.
  bool follow(PlacementTables& tables, const std::vector<int>& slot_of, PlacementScratch& scratch) {
    bool has_moved = false;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const int from = slot_of[static_cast<std::size_t>(flows_[i].from)];
      const int to = slot_of[static_cast<std::size_t>(flows_[i].to)];
      if (from == flows_[i].from_slot && to == flows_[i].to_slot) continue;
      if (!has_moved) {
        flows_before_ = flows_;
        for (Flow& flow : flows_) flow.has_changed = false;
      }
      has_moved = true;
      flows_[i].from_slot = from;
      flows_[i].to_slot = to;
      flows_[i].route = tables.route(from, to);
      flows_[i].has_changed = true;
    }
    if (has_moved) share_links(tables, scratch);
    return has_moved;
  }

  /// Takes back the last follow() that found a move.
  void undo() { flows_.swap(flows_before_); }
  const std::vector<Flow>& flows() const {
    return flows_;
  }  ///< in the order in which they were added

 private:
  void share_links(const PlacementTables& tables, PlacementScratch& scratch) {
    std::vector<int>& link_flows = scratch.link_flows;
    if (link_flows.size() < tables.num_links()) link_flows.resize(tables.num_links());
    for (const Flow& flow : flows_)
      for (const auto& link : tables.links(flow.route)) ++link_flows[link.id.index()];
    for (Flow& flow : flows_) {
      BytesPerSecond share = flow.route.in_node ? flow.route.bandwidth : no_limit;
      for (const auto& link : tables.links(flow.route))
        share = std::min(share, link.bandwidth / static_cast<double>(link_flows[link.id.index()]));
      if (share == flow.share) continue;
      flow.share = share;
      flow.has_changed = true;
    }
    for (const Flow& flow : flows_)
      for (const auto& link : tables.links(flow.route)) link_flows[link.id.index()] = 0;
  }

  std::vector<Flow> flows_, flows_before_;
};

PlacementObjective::PlacementObjective(const PlacementObjective&) = default;
PlacementObjective::~PlacementObjective() = default;

PlacementObjective::PlacementObjective(const Scenario& scenario)
    : PlacementObjective(scenario, [&] {
        std::vector<int> own(scenario.plan.devices.size());
        std::iota(own.begin(), own.end(), 0);
        return own;
      }()) {}

PlacementObjective::PlacementObjective(const Scenario& scenario, std::vector<int> slots)
    : tables_(std::make_shared<PlacementTables>(scenario)) {
  const Parallel& parallel = scenario.plan.parallel;
  pipeline_ = parallel.pipeline;
  data_ = parallel.replicas();
  parts_ = scenario.plan.nodes_per_tensor_group;
  const bool reduces = gradient_reduction(scenario.plan) != GradientReduction::none;
  has_buckets_ = reduces_by_chunk(scenario.plan);
  has_rings_ = reduces && !has_buckets_;
  has_gather_ = reduces && parallel.zero_stage > 0;
  if (reduces)
    for (const int chunk : reduced_chunks(scenario.plan))
      for (const ReductionSlot slot : {ReductionSlot::first, ReductionSlot::second})
        ring_numbers_.push_back(windtunnel::slot_of(slot, {chunk}));
  if (has_gather_) ring_numbers_.push_back(windtunnel::slot_of(CollectiveSlot::parameter_gather));
  ties_embeddings_ = synchronises_embedding(scenario.model, scenario.plan);
  const ChunkMap map = scenario.plan.chunk_map();
  embedding_stage_ = static_cast<int>(map.first().stage.index());
  head_stage_ = static_cast<int>(map.last().stage.index());
  const auto replicas = static_cast<std::size_t>(data_);
  durations_.assign(
      replicas, std::vector<Seconds>(tables_->layout().size(static_cast<std::size_t>(pipeline_))));
  ends_.assign(replicas, std::vector<Seconds>(static_cast<std::size_t>(pipeline_)));
  dirty_.assign(replicas, 0);
  add_messages();
  add_rings();
  slot_of_ = slots;
  place(slots);
}

void PlacementObjective::place(const std::vector<int>& slots) {
  WT_EXPECT(slots.size() == slot_of_.size());
  std::vector<std::pair<int, int>> changes;
  for (int unit = 0; unit < num_units(); ++unit)
    changes.emplace_back(unit, slots[static_cast<std::size_t>(unit)]);
  move(changes);
}

void PlacementObjective::move(const std::vector<std::pair<int, int>>& changes) {
  undo_.slots.clear();
  undo_.ends.clear();
  undo_.durations.clear();
  undo_.rings.clear();
  undo_.messages.clear();
  undo_.embedding = embedding_;
  undo_.value = value_;
  std::vector<char> stages(static_cast<std::size_t>(pipeline_), 0);
  for (const auto& [unit, slot] : changes) {
    undo_.slots.emplace_back(unit, slot_of(unit));
    slot_of_[static_cast<std::size_t>(unit)] = slot;
    stages[static_cast<std::size_t>(unit / parts_ % pipeline_)] = 1;
  }
  // Works out again what the moved units touch: their works, the messages of the stages around theirs, their stages' rings.
  for (const auto& [unit, slot] : changes) {
    const int replica = unit / parts_ / pipeline_, stage = unit / parts_ % pipeline_;
    const auto s = static_cast<std::size_t>(stage);
    for (std::uint32_t row = 0; row < tables_->layout().rows; ++row) {
      Seconds slowest{};  // the ranks of a tensor group wait for each other
      for (int part = 0; part < parts_; ++part)
        slowest = std::max(
            slowest, tables_->works(s, slot_of(this->unit(replica, stage, part)))[row].duration);
      set_duration(replica, tables_->layout().work(s, row), slowest);
    }
    set_operation_collectives(replica, stage);
  }
  for (int stage = 0; stage < pipeline_; ++stage) {
    for (int channel = 0; channel < num_channels(stage); ++channel)
      if (stages[static_cast<std::size_t>(stage)] != 0 ||
          stages[static_cast<std::size_t>(target(stage, channel))] != 0)
        set_messages(stage, channel);
    if (stages[static_cast<std::size_t>(stage)] == 0) continue;
    for (const std::uint32_t number : ring_numbers_) {
      const std::size_t ring = ring_of(stage, number);
      if (!follow(ring) || number < num_device_collectives) continue;
      for (int replica = 0; replica < data_; ++replica)  // chunk by chunk, bucket after bucket
        set_duration(replica, tables_->layout().collective(static_cast<std::size_t>(stage), number),
                     rings_[ring].cost().alone());
    }
  }
  const std::size_t edges =
      ring_of(embedding_stage_, windtunnel::slot_of(CollectiveSlot::embedding_sync));
  if (ties_embeddings_ && follow(edges)) embedding_ = rings_[edges].cost().alone();
  refresh_ends();
  value_ = total();
}

void PlacementObjective::undo() {
  for (const auto& [unit, slot] : undo_.slots) slot_of_[static_cast<std::size_t>(unit)] = slot;
  // Backwards: a duration that changed twice is the first one again.
  for (auto old = undo_.durations.rbegin(); old != undo_.durations.rend(); ++old)
    durations_[old->replica][old->index] = old->time;
  for (auto& [replica, ends] : undo_.ends) ends_[replica] = std::move(ends);
  for (const std::size_t ring : undo_.rings) rings_[ring].undo();
  for (const std::size_t messages : undo_.messages) messages_[messages].undo();
  embedding_ = undo_.embedding;
  value_ = undo_.value;
  undo_ = Undo{};
  undo_.embedding = embedding_;
  undo_.value = value_;
}

/// Recomputes the ends of the pipelines whose durations have changed.
void PlacementObjective::refresh_ends() {
  std::vector<std::size_t> replicas;
  std::vector<const std::vector<Seconds>*> pipelines;
  for (std::size_t replica = 0; replica < ends_.size(); ++replica) {
    if (std::exchange(dirty_[replica], 0) == 0) continue;
    replicas.push_back(replica);
    pipelines.push_back(&durations_[replica]);
  }
  std::vector<std::vector<Seconds>> ends = tables_->ends(pipelines);
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    undo_.ends.emplace_back(replicas[i], std::move(ends_[replicas[i]]));
    ends_[replicas[i]] = std::move(ends[i]);
  }
}

void PlacementObjective::set_duration(int replica, std::uint32_t index, Seconds time) {
  const auto r = static_cast<std::size_t>(replica);
  Seconds& duration = durations_[r][index];
  if (duration == time) return;
  undo_.durations.push_back({r, index, duration});
  duration = time;
  dirty_[r] = 1;
}

int PlacementObjective::node_of(int slot) const {
  return static_cast<int>(tables_->slot(slot).node.index());
}

int PlacementObjective::num_channels(int stage) const {
  return static_cast<int>(
      tables_->programs().programs[static_cast<std::size_t>(stage)].targets.size());
}

int PlacementObjective::target(int stage, int channel) const {
  return static_cast<int>(tables_->programs()
                              .programs[static_cast<std::size_t>(stage)]
                              .targets[static_cast<std::size_t>(channel)]
                              .index());
}

/// By stage and channel, each pipeline's parts side by side.
void PlacementObjective::add_messages() {
  for (int stage = 0; stage < pipeline_; ++stage) {
    first_messages_.push_back(messages_.size());
    for (int channel = 0; channel < num_channels(stage); ++channel) {
      PlacedMessages& messages = messages_.emplace_back();
      for (int replica = 0; replica < data_; ++replica)
        for (int part = 0; part < parts_; ++part)
          messages.add(unit(replica, stage, part), unit(replica, target(stage, channel), part));
    }
  }
}

/// A message takes as long as its slowest part.
void PlacementObjective::set_messages(int stage, int channel) {
  const std::size_t index =
      first_messages_[static_cast<std::size_t>(stage)] + static_cast<std::size_t>(channel);
  if (!messages_[index].follow(*tables_, slot_of_, scratch_)) return;
  undo_.messages.push_back(index);
  for (int replica = 0; replica < data_; ++replica) {
    const auto first = messages_[index].flows().begin() + replica * parts_, last = first + parts_;
    if (std::none_of(first, last, [](const auto& flow) { return flow.has_changed; })) continue;
    for (std::uint32_t row = 0; row < tables_->layout().messages; ++row) {
      const Bytes bytes = tables_->programs().message_bytes[row];
      Seconds slowest{};
      for (auto flow = first; flow != last; ++flow)
        slowest = std::max(slowest, flow->route.latency + bytes / flow->share);
      set_duration(replica,
                   tables_->layout().message(static_cast<std::size_t>(stage),
                                             static_cast<std::uint32_t>(channel), row),
                   slowest);
    }
  }
}

/// Sets the collectives of passes that are simulated by operation. For a tensor group across nodes: a ring through its parts, each on its
/// own node; the time of others stays as it is in the plan's own placement.
void PlacementObjective::set_operation_collectives(int replica, int stage) {
  const DurationLayout& layout = tables_->layout();
  const auto set = [&](std::uint32_t number, Seconds time) {
    set_duration(replica, layout.collective(static_cast<std::size_t>(stage), number), time);
  };
  const int first = unit(replica, stage, 0);
  for (std::uint32_t number = num_collective_slots(layout.chunks); number < layout.collectives;
       ++number) {
    const Collective* like = tables_->collective(first, number);
    if (like == nullptr) continue;
    // Devices of one tensor group have consecutive numbers, those of other groups lie further apart.
    const bool is_tensor_ring =
        parts_ > 1 && like->members.size() == static_cast<std::size_t>(parts_) &&
        like->members.back().index() == like->members.front().index() + like->members.size() - 1;
    if (!is_tensor_ring) {
      set(number, tables_->time_alone(*like));
      continue;
    }
    Seconds time = like->fixed;
    for (int part = 0; part < parts_; ++part) {
      const auto route = tables_->route(slot_of(unit(replica, stage, part)),
                                        slot_of(unit(replica, stage, (part + 1) % parts_)));
      BytesPerSecond rate = route.in_node ? route.bandwidth : no_limit;
      for (const auto& link : tables_->links(route)) rate = std::min(rate, link.bandwidth);
      time =
          std::max(time, like->latency + like->flows[static_cast<std::size_t>(part)].bytes / rate);
    }
    set(number, time);
  }
}

std::size_t PlacementObjective::ring_of(int stage, std::uint32_t number) const {
  return static_cast<std::size_t>(stage) * num_collective_slots(tables_->layout().chunks) + number;
}

void PlacementObjective::add_rings() {
  rings_.resize(ring_of(pipeline_, 0));
  const std::uint32_t gather = windtunnel::slot_of(CollectiveSlot::parameter_gather);
  const std::uint32_t second =
      windtunnel::slot_of(ReductionSlot::second, {has_buckets_ ? 0 : at_the_end});
  for (int stage = 0; stage < pipeline_; ++stage) {
    // A codec in two parts all-reduces both, sharded or not.
    const bool scatters = tables_->plan().parallel.zero_stage > 0 &&
                          tables_->collective(unit(0, stage, 0), second) == nullptr;
    for (const std::uint32_t number : ring_numbers_) {
      const RingKind work = number == gather ? RingKind::all_gather
                            : scatters       ? RingKind::reduce_scatter
                                             : RingKind::all_reduce;
      for (int part = 0; part < parts_; ++part) {  // through all replicas, one for each part
        std::vector<int> members;
        for (int replica = 0; replica < data_; ++replica)
          members.push_back(unit(replica, stage, part));
        if (const Collective* like = tables_->collective(members.front(), number))
          rings_[ring_of(stage, number)].add(
              std::move(members), *like,
              {work, collective_algorithm(tables_->plan().parallel.gradient_ring).steps});
      }
    }
  }
  // All pipelines synchronise their first with their last stage at the same time: each for itself, or fused into one ring.
  const std::uint32_t sync = windtunnel::slot_of(CollectiveSlot::embedding_sync);
  for (int part = 0; ties_embeddings_ && part < parts_; ++part) {
    std::vector<int> members;
    for (int replica = 0; replica < data_; ++replica) {
      members.push_back(unit(replica, embedding_stage_, part));
      members.push_back(unit(replica, head_stage_, part));
      const Collective* like = tables_->collective(members.front(), sync);
      WT_EXPECT(like != nullptr);
      if (members.size() < like->members.size()) continue;
      rings_[ring_of(embedding_stage_, sync)].add(
          std::exchange(members, {}), *like,
          {RingKind::all_reduce, collective_algorithms().front().steps});
    }
  }
}

bool PlacementObjective::follow(std::size_t ring) {
  if (!rings_[ring].follow(*tables_, slot_of_, scratch_)) return false;
  undo_.rings.push_back(ring);
  return true;
}

/// When each stage's ring is done, entered at `ends`.
void PlacementObjective::serve(std::uint32_t number, std::vector<Seconds>& ends) {
  const auto cost = [&](std::size_t stage) -> const RingCost& {
    return rings_[ring_of(static_cast<int>(stage), number)].cost();
  };
  std::vector<Seconds>& link_time = scratch_.link_time;
  if (link_time.size() < tables_->num_links()) link_time.resize(tables_->num_links());
  std::vector<std::size_t> order(ends.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
  for (const std::size_t stage : order) {
    const RingCost& ring = cost(stage);
    const Seconds begin = ends[stage] + ring.latency;
    ends[stage] = std::max(ends[stage] + ring.fixed, begin);
    for (const auto& [link, time] : ring.busy) {
      Seconds& free = link_time[link.index()];
      free = std::max(free, begin) + time;
      ends[stage] = std::max(ends[stage], free);
    }
  }
  for (std::size_t stage = 0; stage < ends.size(); ++stage)
    for (const auto& [link, time] : cost(stage).busy) link_time[link.index()] = Seconds{0};
}

Seconds PlacementObjective::total() {
  const auto stages = static_cast<std::size_t>(pipeline_);
  std::vector<Seconds> ends(stages);
  for (const std::vector<Seconds>& of_replica : ends_)
    for (std::size_t s = 0; s < stages; ++s) ends[s] = std::max(ends[s], of_replica[s]);
  const int chunks = tables_->layout().chunks;
  const bool codecs = has_codec_work(tables_->plan().compression);
  const auto codec = [&](std::uint16_t row) {
    if (codecs) add_slowest(row, ends);
  };
  if (has_rings_) {
    codec(row_of(ReductionRow::encode, {}, chunks));
    serve(windtunnel::slot_of(ReductionSlot::first, {}), ends);
    codec(row_of(ReductionRow::encode_second, {}, chunks));
    serve(windtunnel::slot_of(ReductionSlot::second, {}), ends);
    codec(row_of(ReductionRow::decode, {}, chunks));
  }
  if (ties_embeddings_) {
    Seconds& first = ends[static_cast<std::size_t>(embedding_stage_)];
    Seconds& last = ends[static_cast<std::size_t>(head_stage_)];
    first = last = std::max(first, last) + embedding_;
  }
  add_slowest(row_of(DeviceRow::optimizer, chunks), ends);
  if (has_gather_) {
    codec(row_of(DeviceRow::encode_gathered, chunks));
    serve(windtunnel::slot_of(CollectiveSlot::parameter_gather), ends);
    codec(row_of(DeviceRow::decode_gathered, chunks));
  }
  add_slowest(row_of(DeviceRow::overhead, chunks), ends);
  // Units on GPUs whose memory their stage does not fit in, and tensor groups with two of their parts on one node.
  int misfits = 0;
  for (int unit = 0; unit < num_units(); ++unit) {
    for (int other = unit + 1; parts_ > 1 && other < unit - unit % parts_ + parts_; ++other)
      if (node_of(slot_of(unit)) == node_of(slot_of(other))) ++misfits;
    const auto stage = static_cast<std::size_t>(unit / parts_ % pipeline_);
    if (!tables_->fits(stage, slot_of(unit))) ++misfits;
  }
  return *std::ranges::max_element(ends) * (1.0 + misfits);
}

/// Adds the work that every replica of a stage does once; the ring behind it waits for the slowest.
void PlacementObjective::add_slowest(std::uint16_t row, std::vector<Seconds>& ends) const {
  for (std::size_t s = 0; s < ends.size(); ++s) {
    Seconds slowest{};
    for (const std::vector<Seconds>& durations : durations_)
      slowest = std::max(slowest, durations[tables_->layout().work(s, row)]);
    ends[s] += slowest;
  }
}

std::vector<PlacementTerm> PlacementObjective::terms() const {
  using Kind = PlacementTerm::Kind;
  std::vector<PlacementTerm> terms;
  for (int stage = 0; stage < pipeline_; ++stage) {
    terms.push_back({Kind::passes, stage, 0});
    for (int channel = 0; channel < num_channels(stage); ++channel)
      terms.push_back({Kind::messages, stage, channel});
    if (has_rings_ || has_buckets_) terms.push_back({Kind::ring, stage, 0});
  }
  if (ties_embeddings_) terms.push_back({Kind::embedding, embedding_stage_, 0});
  return terms;
}

/// Indices of the term's durations in a pipeline's list.
std::vector<std::uint32_t> PlacementObjective::durations_of(const PlacementTerm& term) const {
  const auto stage = static_cast<std::size_t>(term.stage);
  const DurationLayout& layout = tables_->layout();
  std::vector<std::uint32_t> indices;
  if (term.kind == PlacementTerm::Kind::passes) {
    for (std::uint32_t row = 0; row < layout.rows; ++row)
      indices.push_back(layout.work(stage, row));
    for (std::uint32_t slot = num_device_collectives; parts_ > 1 && slot < layout.collectives;
         ++slot)
      indices.push_back(layout.collective(stage, slot));
  } else if (term.kind == PlacementTerm::Kind::messages) {
    for (std::uint32_t row = 0; row < layout.messages; ++row)
      indices.push_back(layout.message(stage, static_cast<std::uint32_t>(term.channel), row));
  } else if (term.kind == PlacementTerm::Kind::ring && has_buckets_) {
    for (const std::uint32_t number : ring_numbers_)
      if (number >= num_device_collectives) indices.push_back(layout.collective(stage, number));
  }
  return indices;
}

Seconds PlacementObjective::value_with(const PlacementTerm& term,
                                       const PlacementObjective& other) const {
  PlacementObjective mixed = *this;
  if (term.kind == PlacementTerm::Kind::embedding) mixed.embedding_ = other.embedding_;
  if (term.kind == PlacementTerm::Kind::ring)
    for (const std::uint32_t number : ring_numbers_)
      mixed.rings_[ring_of(term.stage, number)] = other.rings_[ring_of(term.stage, number)];
  const std::vector<std::uint32_t> indices = durations_of(term);
  for (std::size_t replica = 0; replica < durations_.size() && !indices.empty(); ++replica) {
    for (const std::uint32_t index : indices)
      mixed.durations_[replica][index] = other.durations_[replica][index];
    mixed.dirty_[replica] = 1;
  }
  mixed.refresh_ends();
  return mixed.total();
}

Seconds PlacementObjective::time_of(const PlacementTerm& term) const {
  if (term.kind == PlacementTerm::Kind::embedding) return embedding_;
  const auto alone = [&](ReductionSlot slot) {
    return rings_[ring_of(term.stage, windtunnel::slot_of(slot, {}))].cost().alone();
  };
  if (term.kind == PlacementTerm::Kind::ring && has_rings_)
    return alone(ReductionSlot::first) + alone(ReductionSlot::second);
  Seconds slowest{};
  for (const std::vector<Seconds>& durations : durations_) {
    Seconds time{};
    if (term.kind == PlacementTerm::Kind::passes) {
      for (int chunk = 0; chunk < tables_->plan().parallel.virtual_pipeline; ++chunk)
        for (const ChunkRow row : {ChunkRow::forward, ChunkRow::backward})
          time += durations[tables_->layout().work(static_cast<std::size_t>(term.stage),
                                                   row_of(row, chunk))];
    } else {
      for (const std::uint32_t index : durations_of(term)) time = std::max(time, durations[index]);
    }
    slowest = std::max(slowest, time);
  }
  return slowest;
}

PlacementObjective::Slowest PlacementObjective::slowest_link(const PlacementTerm& term) const {
  std::vector<std::pair<int, int>> flows;  // from and to which units the term's bytes go
  for (int part = 0; part < parts_; ++part) {
    std::vector<NodeId> nodes;
    for (int replica = 0; replica < data_; ++replica) {
      const int here = unit(replica, term.stage, part);
      nodes.push_back(tables_->slot(slot_of(here)).node);
      if (term.kind == PlacementTerm::Kind::messages)
        flows.emplace_back(here, unit(replica, target(term.stage, term.channel), part));
      if (term.kind == PlacementTerm::Kind::embedding) {
        const int there = unit(replica, head_stage_, part);
        flows.emplace_back(here, there);
        flows.emplace_back(there, here);
      }
    }
    if (term.kind != PlacementTerm::Kind::ring) continue;
    for (const RingEdge& edge : ring_layout(nodes).edges)
      flows.emplace_back(unit(static_cast<int>(edge.from), term.stage, part),
                         unit(static_cast<int>(edge.to), term.stage, part));
  }
  Slowest slowest{{}, no_limit};
  for (const auto& [from, to] : flows) {
    const auto route = tables_->route(slot_of(from), slot_of(to));
    for (const auto& on_way : tables_->links(route)) {
      const Link& link = tables_->link(on_way.id);
      if (link.bandwidth < slowest.bandwidth) slowest = {link.name, link.bandwidth};
    }
  }
  return slowest;
}

PipelinePath::PipelinePath(const std::vector<StageProgram>& programs, const DurationLayout& layout)
    : steps_(1), stage_end_(programs.size()) {
  // Our steps by those of the order. One without a length that waits for one step alone is that step.
  std::vector<std::uint32_t> numbers{0};
  const auto add = [&](const WaitStep& wait) {
    const std::uint32_t a = numbers[wait.a], b = numbers[wait.b];
    const std::size_t stage = wait.device.index();
    const Op& op = *wait.op;
    std::uint32_t duration = 0;
    if (op.kind == OpKind::compute) duration = layout.work(stage, op.work);
    if (op.kind == OpKind::collective) duration = layout.collective(stage, op.slot);
    if (op.kind == OpKind::send) duration = layout.message(stage, op.peer, op.work);
    numbers.push_back(a);
    if (duration != 0 || a != b) {
      numbers.back() = static_cast<std::uint32_t>(steps_.size());
      steps_.push_back({a, b, duration});
    }
    if (op.kind == OpKind::record && op.slot == programs[stage].num_events)
      stage_end_[stage] = numbers.back();
  };
  const ProgramSet pipeline = one_pipeline(passes_of(programs, layout.chunks));
  WT_ENSURE(for_each_wait(pipeline, add).empty());
  times_.resize(steps_.size() * most_lanes);
}

std::vector<Seconds> PipelinePath::ends(const std::vector<Seconds>& durations) const {
  return std::move(ends(std::vector{&durations}).front());
}

std::vector<std::vector<Seconds>> PipelinePath::ends(
    const std::vector<const std::vector<Seconds>*>& pipelines) const {
  std::vector<std::vector<Seconds>> ends;
  ends.reserve(pipelines.size());
  while (ends.size() < pipelines.size()) {
    const auto next = pipelines.data() + ends.size();
    const std::size_t left = pipelines.size() - ends.size();
    if (left >= most_lanes)
      add_ends<most_lanes>(next, ends);
    else if (left >= 2)
      add_ends<2>(next, ends);
    else
      add_ends<1>(next, ends);
  }
  return ends;
}

/// Adds the ends of `lanes` pipelines, step by step.
template <std::size_t lanes>
void PipelinePath::add_ends(const std::vector<Seconds>* const* pipelines,
                            std::vector<std::vector<Seconds>>& ends) const {
  std::array<const Seconds*, lanes> durations{};
  for (std::size_t lane = 0; lane < lanes; ++lane) durations[lane] = pipelines[lane]->data();
  std::fill_n(times_.begin(), lanes, Seconds{0});
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    for (std::size_t lane = 0; lane < lanes; ++lane)
      times_[i * lanes + lane] =
          std::max(times_[step.a * lanes + lane], times_[step.b * lanes + lane]) +
          durations[lane][step.duration];
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::vector<Seconds>& of_stages = ends.emplace_back();
    of_stages.reserve(stage_end_.size());
    for (const std::uint32_t end : stage_end_) of_stages.push_back(times_[end * lanes + lane]);
  }
}

}  // namespace windtunnel
