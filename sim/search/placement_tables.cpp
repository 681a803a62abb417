#include "search/placement_tables.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "schedule/in_flight.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

BuiltPrograms build(const Scenario& scenario, const Plan& plan) {
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
  constexpr int operations_of_pass = 200;
  const int p = plan.parallel.pipeline, m = plan.microbatches;
  const int most = most_played_passes / (plays_operations ? operations_of_pass : 1);
  const bool is_short = m <= most / p / plan.parallel.virtual_pipeline;
  const Schedule& schedule = *plan.parallel.schedule;
  if (schedule.fewest_microbatches_of_stage > 0) return m;
  if (is_short || schedule.written || m < (played_rounds + 1) * p) return m;
  return played_rounds * p + m % p;
}

}  // namespace

PlacementTables::PlacementTables(const Scenario& scenario)
    : scenario_(&scenario),
      played_plan_(scenario.plan),
      network_(scenario.platform, scenario.plan.num_nodes) {
  const int p = plan().parallel.pipeline;
  played_plan_.microbatches = played_microbatches(
      plan(), plays_operations({&scenario.model, &scenario.platform, &scenario.nodes,
                                &scenario.software, &scenario.plan}));
  left_rounds_ = static_cast<double>(plan().microbatches - played_plan_.microbatches) / p;
  built_ = build(scenario, played_plan_);
  for (const PlanDevice& device : plan().devices) {
    slots_.push_back({device.node, device.gpus});
    attachments_.push_back(network_.attach(device.node, device.gpus));
  }
  layout_.chunks = plan().parallel.virtual_pipeline;
  for (int s = 0; s < p; ++s)
    layout_.rows = std::max(layout_.rows,
                            rows_of_stage(built_, plan(), plan().device(0, StageId{s}, 0).index()));
  layout_.messages = static_cast<std::uint32_t>(programs().message_bytes.size());
  for (const StageProgram& program : programs().programs)
    layout_.collectives = std::max(layout_.collectives, program.num_collectives);
  path_.emplace(programs().programs, layout_);
  if (left_rounds_ > 0) {
    Plan shorter = played_plan_;
    shorter.microbatches -= p;
    shorter_path_.emplace(build(scenario, shorter).programs.programs, layout_);
  }
  fill_works();
  fill_fits();
}

const NodeType& PlacementTables::node_type(int slot) const {
  return scenario_->nodes[this->slot(slot).node.index()];
}

PlacementTables::Kind PlacementTables::kind_of(int slot) const {
  const Network::Endpoint& place = this->slot(slot);
  const NodeType& type = scenario_->platform.type_of(place.node);
  const bool position_matters = type.interconnect.kind == Interconnect::Kind::mesh;
  return {&type, position_matters ? place.gpus : std::vector<int>{}};
}

/// Every stage on every kind of place: as the plan has them, and for the rest with two devices changing places.
void PlacementTables::fill_works() {
  for (int s = 0; s < num_units(); ++s) {
    const Kind kind = kind_of(s);
    const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
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
          std::find(kind_of_slot_.begin(), kind_of_slot_.end(), static_cast<int>(kind)) -
          kind_of_slot_.begin());
      const auto swap_places = [&] {
        std::swap(swapped.devices[here].node, swapped.devices[there].node);
        std::swap(swapped.devices[here].gpus, swapped.devices[there].gpus);
      };
      swap_places();
      works_[stage][kind] = rows_of(build(*scenario_, swapped), here);
      swap_places();
    }
  }
}

/// Every stage as if all its replicas were on this device.
std::vector<StageMemory> PlacementTables::memory_on(const Device& device) const {
  MemoryInputs inputs;
  inputs.model = &scenario_->model;
  inputs.plan = &plan();
  inputs.software = &scenario_->software;
  inputs.device_of_stage.assign(static_cast<std::size_t>(plan().parallel.pipeline), &device);
  const InFlightOfStages held = count_in_flight(plan());
  inputs.in_flight = held.all;
  inputs.in_flight_with_gradients = held.with_gradients;
  return account_memory(inputs).stages;
}

void PlacementTables::fill_fits() {
  const auto usable = [](const Kind& kind) { return kind.node->device.usable_memory; };
  const bool all_equal = std::all_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
    return usable(kind) == usable(kinds_.front());
  });
  if (all_equal) return;
  fits_.assign(works_.size(), std::vector<char>(kinds_.size(), 0));
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const std::vector<StageMemory> stages = memory_on(kinds_[kind].node->device);
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      fits_[stage][kind] = stages[stage].verdict != MemoryVerdict::does_not_fit ? 1 : 0;
  }
}

bool PlacementTables::fits(std::size_t stage, int slot) const {
  return fits_[stage][static_cast<std::size_t>(kind_of_slot_[static_cast<std::size_t>(slot)])] != 0;
}

const std::vector<Work>& PlacementTables::works(std::size_t stage, int slot) const {
  return works_[stage][static_cast<std::size_t>(kind_of_slot_[static_cast<std::size_t>(slot)])];
}

Seconds PlacementTables::time_alone(const Collective& collective) const {
  Seconds time = collective.fixed;
  for (const CollectiveFlow& flow : collective.flows)
    time = std::max(
        time, collective.latency + flow.bytes / built_.network.rate_alone({flow.up, flow.down}));
  return time;
}

const Collective* PlacementTables::collective(int unit, std::uint32_t slot_number) const {
  const std::vector<std::optional<CollectiveId>>& entered =
      programs().devices[static_cast<std::size_t>(unit)].collectives;
  const std::optional<CollectiveId> id =
      slot_number < entered.size() ? entered[slot_number] : std::nullopt;
  return id ? &programs().collectives[id->index()] : nullptr;
}

PlacementTables::Route PlacementTables::route(int from_slot, int to_slot) {
  routes_.resize(slots_.size());
  std::vector<std::optional<Route>>& row = routes_[static_cast<std::size_t>(from_slot)];
  row.resize(slots_.size());
  std::optional<Route>& known = row[static_cast<std::size_t>(to_slot)];
  if (!known) known = find_route(from_slot, to_slot);
  return *known;
}

PlacementTables::Route PlacementTables::find_route(int from_slot, int to_slot) {
  Route route;
  const Network::Endpoint &from = slot(from_slot), &to = slot(to_slot);
  if (from.node == to.node) {
    const Interconnect& wires = node_type(from_slot).interconnect;
    route.bandwidth = wires.point_to_point * static_cast<double>(from.gpus.size());
    route.latency = wires.point_to_point_latency;
    return route;
  }
  route.in_node = false;
  route.latency = scenario_->platform.fabric.latency;
  route.first_link = static_cast<std::uint32_t>(link_list_.size());
  const windtunnel::Route way = network_.route(attachments_[static_cast<std::size_t>(from_slot)],
                                               attachments_[static_cast<std::size_t>(to_slot)]);
  for (const PathId path : {way.up, way.down})
    for (const LinkId id : network_.path(path)) link_list_.push_back({id, link(id).bandwidth});
  route.num_links = static_cast<std::uint32_t>(link_list_.size()) - route.first_link;
  return route;
}

std::vector<std::vector<Seconds>> PlacementTables::ends(
    const std::vector<const std::vector<Seconds>*>& pipelines) const {
  std::vector<std::vector<Seconds>> ends = path_->ends(pipelines);
  if (!shorter_path_) return ends;
  const std::vector<std::vector<Seconds>> before = shorter_path_->ends(pipelines);
  for (std::size_t i = 0; i < ends.size(); ++i)
    for (std::size_t s = 0; s < ends[i].size(); ++s)
      ends[i][s] += (ends[i][s] - before[i][s]) * left_rounds_;
  return ends;
}

}  // namespace windtunnel
