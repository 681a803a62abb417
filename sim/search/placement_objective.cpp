#include "search/placement_objective.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/contracts.hpp"
#include "cost/collective_algorithm.hpp"
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

std::vector<int> own_slots(const Scenario& scenario) {
  std::vector<int> slots(scenario.plan.devices.size());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

BuiltPrograms built_for(const Scenario& scenario, const Plan& plan) {
  return build_programs(
      {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &plan});
}

/// Where the rows of a stage's device end, and its collectives.
std::uint32_t rows_of_stage(const BuiltPrograms& built, const Plan& plan, std::size_t unit) {
  if (!built.plays_operations)
    return num_work_rows(plan.parallel.virtual_pipeline, has_codec_work(plan.compression));
  return OperationPlaces(operations_of(built.cost_of_device[unit]),
                         directions_of(plan.parallel.schedule->splits_backward))
      .num_rows();
}

/// Passes of one pipeline up to which a schedule is played in full.
constexpr int most_played_passes = 2048;
/// Rounds of p microbatches that are played of a longer one: fill, one in the middle, drain.
constexpr int played_rounds = 3;

/// Microbatches to play: all, or so few that the rest are whole rounds.
int played_microbatches(const Plan& plan, bool plays_operations) {
  // Of 24 layers with about eight each, so that as much is worked out as for whole passes [own].
  constexpr int operations_of_pass = 200;
  const int p = plan.parallel.pipeline, m = plan.microbatches;
  const int most = most_played_passes / (plays_operations ? operations_of_pass : 1);
  const bool is_short = m <= most / p / plan.parallel.virtual_pipeline;
  const Schedule& schedule = *plan.parallel.schedule;
  if (schedule.fewest_microbatches_of_stage > 0) return m;
  if (is_short || schedule.written || m < (played_rounds + 1) * p) return m;
  return played_rounds * p + m % p;
}

/// Where the passes end and what all replicas do together begins.
bool is_tail(const Op& op, int chunks) {
  if (op.kind == OpKind::collective) return op.slot < num_device_collectives;
  return op.kind == OpKind::compute && is_after_passes(op.work, chunks);
}

/// The programs up to there, where their last event is recorded.
std::vector<StageProgram> passes_of(std::vector<StageProgram> programs, int chunks) {
  for (StageProgram& program : programs) {
    for (std::vector<Op>& ops : program.streams)
      ops.erase(std::ranges::find_if(ops, [chunks](const Op& op) { return is_tail(op, chunks); }),
                ops.end());
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
        played_plan_(scenario.plan),
        network_(scenario.platform, scenario.plan.num_nodes) {
    const int p = plan().parallel.pipeline;
    played_plan_.microbatches = played_microbatches(
        plan(), plays_operations({&scenario.model, &scenario.platform, &scenario.nodes,
                                  &scenario.software, &scenario.plan}));
    left_rounds_ = static_cast<double>(plan().microbatches - played_plan_.microbatches) / p;
    built_ = built_for(scenario, played_plan_);
    for (const PlanDevice& device : plan().devices) {
      slots_.push_back({device.node, device.gpus});
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
      Plan shorter = played_plan_;
      shorter.microbatches -= p;
      shorter_path_.emplace(built_for(scenario, shorter).programs.programs, layout_);
    }
    fill_works();
    fill_fits();
  }

  /// The way from one place to another: links that flows share, and what is paid beside them.
  struct Route {
    bool in_node = true;
    BytesPerSecond bandwidth{};  ///< in the node; nothing else shares it
    Seconds latency{};
    std::vector<std::pair<LinkId, BytesPerSecond>> links = {};
  };
  const Route& route(int from_slot, int to_slot) {
    routes_.resize(slots_.size());
    std::vector<std::optional<Route>>& row = routes_[static_cast<std::size_t>(from_slot)];
    row.resize(slots_.size());
    std::optional<Route>& known = row[static_cast<std::size_t>(to_slot)];
    if (!known) known = find_route(from_slot, to_slot);
    return *known;
  }

  const Link& link(LinkId id) const { return network_.links()[id.index()]; }

  const Scenario& scenario() const { return *scenario_; }
  const Plan& plan() const { return scenario_->plan; }
  const ProgramSet& programs() const { return built_.programs; }
  const DurationLayout& layout() const { return layout_; }
  int num_units() const { return static_cast<int>(slots_.size()); }
  const Network::Endpoint& slot(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  const NodeType& node_type(int slot) const {
    return scenario_->nodes[this->slot(slot).node.index()];
  }
  /// Works of a stage's device in a slot.
  const std::vector<Work>& works(std::size_t stage, int slot) const {
    return works_[stage][static_cast<std::size_t>(kind_of_slot_[static_cast<std::size_t>(slot)])];
  }

  /// Whether GPUs differ in memory so that a stage fits on some and not on others.
  bool memory_matters() const { return !fits_.empty(); }
  /// Whether a stage fits in the memory of a slot's GPUs; where all GPUs have as much, nobody asks.
  bool fits(std::size_t stage, int slot) const {
    return fits_[stage][static_cast<std::size_t>(kind_of_slot_[static_cast<std::size_t>(slot)])] !=
           0;
  }

  /// The collective that the device of this stage enters at `slot_number` in the plan's own placement, or null.
  const Collective* collective(int unit, std::uint32_t slot_number) const {
    const std::vector<std::optional<CollectiveId>>& entered =
        programs().devices[static_cast<std::size_t>(unit)].collectives;
    const std::optional<CollectiveId> id =
        slot_number < entered.size() ? entered[slot_number] : std::nullopt;
    return id ? &programs().collectives[id->index()] : nullptr;
  }

  /// What it takes there while nobody else is on the network, each of its flows on its own.
  Seconds time_alone(const Collective& collective) const {
    Seconds time = collective.fixed;
    for (const CollectiveFlow& flow : collective.flows)
      time = std::max(
          time, collective.latency + flow.bytes / built_.network.rate_alone({flow.up, flow.down}));
    return time;
  }

  /// By stage of a pipeline: when its passes end, all microbatches played. Long schedules of equal rounds are played for a few rounds,
  /// and what the last round added is added for each of the others.
  std::vector<Seconds> ends(const std::vector<Seconds>& durations) const {
    std::vector<Seconds> ends = path_->ends(durations);
    if (!shorter_path_) return ends;
    const std::vector<Seconds> before = shorter_path_->ends(durations);
    for (std::size_t s = 0; s < ends.size(); ++s) ends[s] += (ends[s] - before[s]) * left_rounds_;
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

  /// Every stage on every kind of place: as the plan has them, and for the rest with two devices changing places.
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
    Plan swapped = played_plan_;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        if (!works_[stage][kind].empty()) continue;
        const auto here = plan().device(0, StageId{stage}, 0).index();
        const auto there = static_cast<std::size_t>(
            std::ranges::find(kind_of_slot_, static_cast<int>(kind)) - kind_of_slot_.begin());
        const auto swap_places = [&] {
          std::swap(swapped.devices[here].node, swapped.devices[there].node);
          std::swap(swapped.devices[here].gpus, swapped.devices[there].gpus);
        };
        swap_places();
        works_[stage][kind] = rows_of(built_for(*scenario_, swapped), here);
        swap_places();
      }
    }
  }

  void fill_fits() {
    const auto usable = [](const Kind& kind) { return kind.node->device.usable_memory; };
    const bool all_equal = std::ranges::all_of(
        kinds_, [&](const Kind& kind) { return usable(kind) == usable(kinds_.front()); });
    if (all_equal) return;
    fits_.assign(works_.size(), std::vector<char>(kinds_.size(), 0));
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      const std::vector<StageMemory> stages = memory_on(kinds_[kind].node->device);
      for (std::size_t stage = 0; stage < stages.size(); ++stage)
        fits_[stage][kind] = stages[stage].verdict != MemoryVerdict::does_not_fit ? 1 : 0;
    }
  }

  /// Every stage as if all its replicas were on this device.
  std::vector<StageMemory> memory_on(const Device& device) const {
    MemoryInputs inputs = memory_inputs(*scenario_, plan(), count_in_flight(plan()));
    inputs.device_of_stage.assign(inputs.device_of_stage.size(), &device);
    return account_memory(inputs).stages;
  }

  Route find_route(int from_slot, int to_slot) {
    const Network::Endpoint &from = slot(from_slot), &to = slot(to_slot);
    if (from.node == to.node) {
      const Interconnect& wires = node_type(from_slot).interconnect;
      return {true, wires.point_to_point * static_cast<double>(from.gpus.size()),
              wires.point_to_point_latency};
    }
    const windtunnel::Route way = network_.route(attachments_[static_cast<std::size_t>(from_slot)],
                                                 attachments_[static_cast<std::size_t>(to_slot)]);
    Route route{false, {}, way.latency};
    for (const PathId path : {way.up, way.down})
      for (const LinkId id : network_.path(path)) route.links.emplace_back(id, link(id).bandwidth);
    link_time.resize(network_.links().size());  // the network makes links as routes ask for them
    link_flows.resize(network_.links().size());
    return route;
  }

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
  /// By slots from and to; a row is empty until somebody asks for one of it.
  std::vector<std::vector<std::optional<Route>>> routes_;

 public:
  /// Buffers for sums over links; all zero between uses.
  std::vector<Seconds> link_time;
  std::vector<int> link_flows;
};

/// Rings that are entered together: what they keep busy, and what does not depend on links.
struct RingCost {
  Seconds fixed{}, latency{};
  std::vector<std::pair<LinkId, Seconds>> busy;  ///< each link once
  std::vector<int> slots;                        ///< of the members, ring after ring

  /// How long they take while nothing else is on their links.
  Seconds alone() const {
    Seconds slowest{};
    for (const auto& [link, time] : busy) slowest = std::max(slowest, time);
    return std::max(fixed, latency + slowest);
  }
};

/// A collective of replicas through units that change places.
struct PlacedRing {
  std::vector<int> members;          ///< units
  const Collective* like = nullptr;  ///< in the plan's own placement: how much it moves
  RingKind work = RingKind::all_reduce;
  const CollectiveAlgorithm* algorithm = nullptr;
};

/// What rings that are entered together take where the units are, as CollectiveBuilder would make them there. Each link once, with all the
/// time that it is kept busy.
RingCost cost_of(const std::vector<PlacedRing>& rings, const std::vector<int>& slot_of,
                 PlacementTables& tables) {
  RingCost cost;
  for (const PlacedRing& ring : rings) {
    const auto slot = [&](std::size_t member) {
      return slot_of[static_cast<std::size_t>(ring.members[member])];
    };
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < ring.members.size(); ++i)
      nodes.push_back(tables.slot(slot(i)).node);
    const CollectiveMembers placed{
        std::move(nodes),
        [&](std::size_t i) -> const std::vector<int>& { return tables.slot(slot(i)).gpus; },
        [&](std::size_t i) -> const NodeType& { return tables.node_type(slot(i)); }};
    const CollectiveSteps steps = ring.algorithm->steps(
        collective_task(tables.scenario().platform, placed, ring.like->payload, ring.work,
                        tables.scenario().software.gathers_by_pat));
    cost.fixed = std::max(cost.fixed, steps.fixed);
    cost.latency = std::max(cost.latency, steps.latency);
    for (const auto& [from, to, bytes] : steps.flows)
      for (const auto& [link, bandwidth] : tables.route(slot(from), slot(to)).links) {
        Seconds& sum = tables.link_time[link.index()];
        if (sum == Seconds{0}) cost.busy.emplace_back(link, Seconds{0});
        sum += bytes / bandwidth;
      }
  }
  for (auto& [link, time] : cost.busy)
    time = std::exchange(tables.link_time[link.index()], Seconds{0});
  return cost;
}

PlacementObjective::PlacementObjective(const PlacementObjective&) = default;
PlacementObjective::~PlacementObjective() = default;

PlacementObjective::PlacementObjective(const Scenario& scenario)
    : PlacementObjective(scenario, own_slots(scenario)) {}

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
  apply(changes);
  refresh_ends();
  value_before_ = std::exchange(value_, total());
}

void PlacementObjective::undo() {
  apply(std::exchange(undo_, {}));
  for (auto& [replica, ends] : ends_before_) {
    ends_[replica] = std::move(ends);
    dirty_[replica] = 0;
  }
  value_ = value_before_;
}

/// Works out again what the moved units touch: their works, the messages of the stages around theirs, their stages' rings.
void PlacementObjective::apply(const std::vector<std::pair<int, int>>& changes) {
  undo_.clear();
  std::vector<char> moved(static_cast<std::size_t>(pipeline_), 0);  // by stage
  const auto has_moved = [&](int stage) { return moved[static_cast<std::size_t>(stage)] != 0; };
  for (const auto& [unit, slot] : changes) {
    undo_.emplace_back(unit, slot_of(unit));
    slot_of_[static_cast<std::size_t>(unit)] = slot;
    moved[static_cast<std::size_t>(unit / parts_ % pipeline_)] = 1;
  }
  for (const auto& [unit, slot] : changes) {
    const int replica = unit / parts_ / pipeline_, stage = unit / parts_ % pipeline_;
    set_works(replica, stage);
    set_operation_collectives(replica, stage);
  }
  const auto find_cost = [&](std::size_t ring) {
    std::vector<int> slots;
    for (const PlacedRing& each : rings_[ring])
      for (const int unit : each.members) slots.push_back(slot_of(unit));
    if (slots == costs_[ring].slots) return;
    std::swap(costs_[ring], costs_before_[ring]);  // most moves are taken back
    if (slots == costs_[ring].slots) return;
    costs_[ring] = cost_of(rings_[ring], slot_of_, *tables_);
    costs_[ring].slots = std::move(slots);
  };
  for (int stage = 0; stage < pipeline_; ++stage) {
    for (int channel = 0; channel < num_channels(stage); ++channel)
      if (has_moved(stage) || has_moved(target(stage, channel))) set_messages(stage, channel);
    if (!has_moved(stage)) continue;
    for (const std::uint32_t number : ring_numbers_) {
      const std::size_t ring = ring_of(stage, number);
      find_cost(ring);
      if (number < num_device_collectives) continue;
      for (int replica = 0; replica < data_; ++replica)  // chunk by chunk, bucket after bucket
        set_duration(replica, tables_->layout().collective(static_cast<std::size_t>(stage), number),
                     costs_[ring].alone());
    }
  }
  if (ties_embeddings_ && (has_moved(embedding_stage_) || has_moved(head_stage_))) {
    const std::size_t edges =
        ring_of(embedding_stage_, windtunnel::slot_of(CollectiveSlot::embedding_sync));
    find_cost(edges);
    embedding_ = costs_[edges].alone();
  }
}

/// Of the pipelines whose durations have changed.
void PlacementObjective::refresh_ends() {
  ends_before_.clear();
  for (std::size_t replica = 0; replica < ends_.size(); ++replica)
    if (std::exchange(dirty_[replica], 0) != 0)
      ends_before_.emplace_back(replica,
                                std::exchange(ends_[replica], tables_->ends(durations_[replica])));
}

void PlacementObjective::set_duration(int replica, std::uint32_t index, Seconds time) {
  const auto r = static_cast<std::size_t>(replica);
  Seconds& duration = durations_[r][index];
  if (duration == time) return;
  duration = time;
  dirty_[r] = 1;
}

/// The ranks of a tensor group wait for each other: the slowest part's time.
void PlacementObjective::set_works(int replica, int stage) {
  const auto s = static_cast<std::size_t>(stage);
  for (std::uint32_t row = 0; row < tables_->layout().rows; ++row) {
    Seconds slowest{};
    for (int part = 0; part < parts_; ++part)
      slowest =
          std::max(slowest, tables_->works(s, slot_of(unit(replica, stage, part)))[row].duration);
    set_duration(replica, tables_->layout().work(s, row), slowest);
  }
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

/// A message takes as long as its slowest part; those of all pipelines share links.
void PlacementObjective::set_messages(int stage, int channel) {
  std::vector<const PlacementTables::Route*> routes;  // each pipeline's parts beside each other
  for (int replica = 0; replica < data_; ++replica)
    for (int part = 0; part < parts_; ++part)
      routes.push_back(&tables_->route(slot_of(unit(replica, stage, part)),
                                       slot_of(unit(replica, target(stage, channel), part))));
  std::vector<int>& flows = tables_->link_flows;
  for (const auto* route : routes)
    for (const auto& [link, bandwidth] : route->links) ++flows[link.index()];
  std::vector<BytesPerSecond> rates;
  for (const auto* route : routes) {
    rates.push_back(route->in_node ? route->bandwidth : no_limit);
    for (const auto& [link, bandwidth] : route->links)
      rates.back() = std::min(rates.back(), bandwidth / static_cast<double>(flows[link.index()]));
  }
  for (const auto* route : routes)
    for (const auto& [link, bandwidth] : route->links) flows[link.index()] = 0;
  for (int replica = 0; replica < data_; ++replica)
    for (std::uint32_t row = 0; row < tables_->layout().messages; ++row) {
      const Bytes bytes = tables_->programs().message_bytes[row];
      Seconds slowest{};
      for (int part = 0; part < parts_; ++part) {
        const auto i = static_cast<std::size_t>(replica * parts_ + part);
        slowest = std::max(slowest, routes[i]->latency + bytes / rates[i]);
      }
      set_duration(replica,
                   tables_->layout().message(static_cast<std::size_t>(stage),
                                             static_cast<std::uint32_t>(channel), row),
                   slowest);
    }
}

/// Of passes that are their operations. Of a tensor group across nodes: a ring through its parts, each on its own node; what others take
/// stays as it is in the plan's own placement.
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
      const auto& route = tables_->route(slot_of(unit(replica, stage, part)),
                                         slot_of(unit(replica, stage, (part + 1) % parts_)));
      BytesPerSecond rate = route.in_node ? route.bandwidth : no_limit;
      for (const auto& [link, bandwidth] : route.links) rate = std::min(rate, bandwidth);
      time =
          std::max(time, like->latency + like->flows[static_cast<std::size_t>(part)].bytes / rate);
    }
    set(number, time);
  }
}

/// What the rings of a stage's gradients do: a codec in two parts all-reduces both, sharded or not.
RingKind PlacementObjective::ring_work(int stage) const {
  const int first = unit(0, stage, 0);
  const std::uint32_t second =
      windtunnel::slot_of(ReductionSlot::second, {has_buckets_ ? 0 : at_the_end});
  const bool scatters =
      tables_->plan().parallel.zero_stage > 0 && tables_->collective(first, second) == nullptr;
  return scatters ? RingKind::reduce_scatter : RingKind::all_reduce;
}

/// Through all replicas, one for each part.
std::vector<PlacedRing> PlacementObjective::rings_of_stage(int stage, std::uint32_t number,
                                                           RingKind work) const {
  std::vector<PlacedRing> rings;
  for (int part = 0; part < parts_; ++part) {
    std::vector<int> members;
    for (int replica = 0; replica < data_; ++replica) members.push_back(unit(replica, stage, part));
    if (const Collective* like = tables_->collective(members.front(), number))
      rings.push_back({std::move(members), like, work,
                       &collective_algorithm(tables_->plan().parallel.gradient_ring)});
  }
  return rings;
}

/// All pipelines synchronise their first with their last stage at the same time: each for itself, or fused into one ring.
std::vector<PlacedRing> PlacementObjective::embedding_rings() const {
  std::vector<PlacedRing> all;
  for (int part = 0; part < parts_; ++part) {
    std::vector<int> members;
    for (int replica = 0; replica < data_; ++replica) {
      members.push_back(unit(replica, embedding_stage_, part));
      members.push_back(unit(replica, head_stage_, part));
      const Collective* like =
          tables_->collective(members.front(), windtunnel::slot_of(CollectiveSlot::embedding_sync));
      WT_EXPECT(like != nullptr);
      if (members.size() < like->members.size()) continue;
      all.push_back({std::exchange(members, {}), like, RingKind::all_reduce,
                     &collective_algorithms().front()});
    }
  }
  return all;
}

std::size_t PlacementObjective::ring_of(int stage, std::uint32_t number) const {
  return static_cast<std::size_t>(stage) * num_collective_slots(tables_->layout().chunks) + number;
}

void PlacementObjective::add_rings() {
  rings_.resize(ring_of(pipeline_, 0));
  costs_.resize(rings_.size());
  costs_before_.resize(rings_.size());
  const std::uint32_t gather = windtunnel::slot_of(CollectiveSlot::parameter_gather);
  for (int stage = 0; stage < pipeline_; ++stage)
    for (const std::uint32_t number : ring_numbers_)
      rings_[ring_of(stage, number)] =
          rings_of_stage(stage, number, number == gather ? RingKind::all_gather : ring_work(stage));
  if (ties_embeddings_)
    rings_[ring_of(embedding_stage_, windtunnel::slot_of(CollectiveSlot::embedding_sync))] =
        embedding_rings();
}

/// When each stage's ring is done, entered at `ends`.
void PlacementObjective::serve(std::uint32_t number, std::vector<Seconds>& ends) {
  const auto cost = [&](std::size_t stage) -> const RingCost& {
    return costs_[ring_of(static_cast<int>(stage), number)];
  };
  std::vector<Seconds>& link_time = tables_->link_time;
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
  return *std::ranges::max_element(ends) * (1.0 + num_misfits());
}

/// What every replica of a stage does once; the ring behind it waits for the slowest.
void PlacementObjective::add_slowest(std::uint16_t row, std::vector<Seconds>& ends) const {
  for (std::size_t s = 0; s < ends.size(); ++s) {
    Seconds slowest{};
    for (const std::vector<Seconds>& durations : durations_)
      slowest = std::max(slowest, durations[tables_->layout().work(s, row)]);
    ends[s] += slowest;
  }
}

/// Units on GPUs whose memory their stage does not fit in, and tensor groups with two of their parts on one node.
int PlacementObjective::num_misfits() const {
  int misfits = 0;
  for (int unit = 0; parts_ > 1 && unit < num_units(); ++unit)
    for (int other = unit + 1; other < unit - unit % parts_ + parts_; ++other)
      if (node_of(slot_of(unit)) == node_of(slot_of(other))) ++misfits;
  if (!tables_->memory_matters()) return misfits;
  for (int unit = 0; unit < num_units(); ++unit) {
    const auto stage = static_cast<std::size_t>(unit / parts_ % pipeline_);
    if (!tables_->fits(stage, slot_of(unit))) ++misfits;
  }
  return misfits;
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

/// Where the term's durations stand in a pipeline's list.
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
      mixed.costs_[ring_of(term.stage, number)] = other.costs_[ring_of(term.stage, number)];
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
    return costs_[ring_of(term.stage, windtunnel::slot_of(slot, {}))].alone();
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

/// From and to which units the term's bytes go.
std::vector<std::pair<int, int>> PlacementObjective::flows_of(const PlacementTerm& term) const {
  std::vector<std::pair<int, int>> flows;
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
  return flows;
}

PlacementObjective::Slowest PlacementObjective::slowest_link(const PlacementTerm& term) const {
  Slowest slowest{{}, no_limit};
  for (const auto& [from, to] : flows_of(term))
    for (const auto& [link, bandwidth] : tables_->route(slot_of(from), slot_of(to)).links)
      if (bandwidth < slowest.bandwidth) slowest = {tables_->link(link).name, bandwidth};
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
  times_.resize(steps_.size());
}

std::vector<Seconds> PipelinePath::ends(const std::vector<Seconds>& durations) const {
  for (std::size_t i = 1; i < steps_.size(); ++i)
    times_[i] = std::max(times_[steps_[i].a], times_[steps_[i].b]) + durations[steps_[i].duration];
  std::vector<Seconds> ends;
  for (const std::uint32_t end : stage_end_) ends.push_back(times_[end]);
  return ends;
}

}  // namespace windtunnel
