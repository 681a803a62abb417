#include "simulate/simulate.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/memory_left.hpp"
#include "cost/stage_cost.hpp"
#include "engine/program_simulator.hpp"
#include "evidence/evidence.hpp"
#include "evidence/interval.hpp"
#include "lower/program_builder.hpp"
#include "lower/stage_choice.hpp"
#include "plan/nvlink_groups.hpp"
#include "report/number_text.hpp"
#include "scenario/scenario.hpp"
#include "schedule/pipeline_program.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/compression_report.hpp"
#include "simulate/folding.hpp"
#include "simulate/memory_inputs.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using Clock = std::chrono::steady_clock;

/// Everything known about a simulated scenario when its report is written.
struct Outcome {
  const Scenario* scenario = nullptr;
  const Plan* whole_plan = nullptr;  ///< the scenario's, with its compressed stages chosen
  const Plan* plan = nullptr;        ///< that was simulated: the same, or a fold of it
  const BuiltPrograms* built = nullptr;
  const EngineResult* result = nullptr;
  const BreakdownListener* breakdowns = nullptr;
  const Fold* fold = nullptr;  ///< none: simulated as it is

  Repeats repeats() const { return fold == nullptr ? Repeats{} : fold->repeats; }
};

/// The second part of a compressed message is no message of its own.
void count_message(const Op& send, int times, MessageCount& count) {
  const auto row = static_cast<MessageRow>(send.work);
  if (row == MessageRow::activation || row == MessageRow::gradient)
    count.uncompressed += static_cast<std::uint64_t>(times);
  if (row == MessageRow::encoded_activation || row == MessageRow::encoded_gradient)
    count.compressed += static_cast<std::uint64_t>(times);
}

/// Sends of each traffic class by one pipeline (one replica, all its stages).
EnumArray<Traffic, MessageCount> count_messages(const ProgramSet& set, const Repeats& repeats) {
  EnumArray<Traffic, MessageCount> counts{};
  for (const StageProgram& program : set.programs)
    for (const std::vector<Op>& stream : program.streams)
      for (const Op& op : stream)
        if (op.kind == OpKind::send) count_message(op, repeats.of(op), counts[op.traffic]);
  return counts;
}

/// Bytes that one rank of a device sends in collectives inside the passes of one microbatch.
Bytes sent_in_passes(const StageCost& cost, Traffic traffic, GroupSizes sizes) {
  sizes.exchanged = cost.exchanged;
  Bytes sent{};
  for (const ChunkCost& chunk : cost.chunks)
    for (const Direction direction : {Direction::forward, Direction::backward})
      sent += sent_bytes(chunk.operations->at(direction), traffic, sizes);
  return sent;
}

/// True if its collectives are added up from passes, however they are simulated.
bool is_counted_by_pass(Traffic traffic) {
  return traffic == Traffic::tensor_activations || traffic == Traffic::context ||
         traffic == Traffic::expert_dispatch || traffic == Traffic::expert_combine;
}

/// True if a backward pass with gathers is simulated in pieces, whatever its detail: during the reductions under no_sync().
bool gathers_in_pieces(const Plan& plan) {
  return plan.parallel.no_sync && plan.parallel.overlap_gradient_reduce;
}

/// By program: the ops whose bytes count_traffic() counts one by one, in order.
std::vector<std::vector<const Op*>> counted_ops(const ProgramSet& set, const Plan& plan) {
  std::vector<std::vector<const Op*>> counted(set.programs.size());
  for (std::size_t i = 0; i < counted.size(); ++i)
    for (const std::vector<Op>& stream : set.programs[i].streams)
      for (const Op& op : stream)
        if (op.kind == OpKind::send ||
            (op.kind == OpKind::collective && !is_counted_by_pass(op.traffic) &&
             !(op.traffic == Traffic::zero_gather && gathers_in_pieces(plan))))
          counted[i].push_back(&op);
  return counted;
}

/// Bytes all GPUs together send in one iteration, NVLink included.
EnumArray<Traffic, Bytes> count_traffic(const Outcome& o) {
  const Plan& plan = *o.whole_plan;
  const ProgramSet& set = o.built->programs;
  const Repeats repeats = o.repeats();
  EnumArray<Traffic, Bytes> traffic{};
  const auto counted = counted_ops(set, plan);
  for (const ProgramDevice& device : set.devices) {
    for (const Op* op : counted[device.program]) {
      if (op->kind == OpKind::send) {
        traffic[op->traffic] += set.message_bytes[op->work] * repeats.of(*op);
        continue;
      }
      const Collective& collective = set.collectives[device.entered(op->slot).index()];
      traffic[op->traffic] += collective.traffic_bytes * repeats.of(*op) /
                              static_cast<double>(collective.members.size());
    }
  }
  const int group = sharding_group_size(plan.parallel);
  GroupSizes sizes{{}, replica_layout(plan.parallel)};
  sizes.members[GroupKind::tensor] = plan.parallel.tensor;
  sizes.members[GroupKind::sharding] = group;
  sizes.members[GroupKind::copies] = plan.parallel.gradient_replicas() / group;
  sizes.members[GroupKind::experts] = plan.parallel.expert;
  sizes.members[GroupKind::expert_tensor] = plan.parallel.expert_tensor;
  sizes.members[GroupKind::expert_data] = expert_data_parallel_size(plan.parallel);
  std::vector<Traffic> kinds{Traffic::tensor_activations, Traffic::context,
                             Traffic::expert_dispatch, Traffic::expert_combine};
  if (!o.built->by_operation)
    kinds.insert(kinds.end(),
                 {Traffic::zero_gather, Traffic::zero_scatter, Traffic::data_gradients});
  else if (gathers_in_pieces(plan))
    kinds.push_back(Traffic::zero_gather);
  std::map<const StageCost*, std::vector<Bytes>> sent_by_rank;  // by place in `kinds`
  for (std::size_t i = 0; i < set.devices.size(); ++i) {
    const StageCost& cost = o.built->cost_of_device[i];
    const double times = plan.microbatches_of_chunk() * plan.devices[i].num_gpus();
    std::vector<Bytes>& sent = sent_by_rank[&cost];
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (sent.size() == kind) sent.push_back(sent_in_passes(cost, kinds[kind], sizes));
      traffic[kinds[kind]] += sent[kind] * times;
    }
  }
  return traffic;
}

/// Every link that carried anything, the highest utilisation first; among equals in the network's order.
std::vector<LinkUse> links_in_use(const Network& network,
                                  const std::vector<TrafficBytes>& carried) {
  std::vector<std::pair<Seconds, std::size_t>> busy;  // how long at its full rate, and which
  for (std::size_t i = 0; i < carried.size(); ++i)
    if (const Bytes bytes = total_of(carried[i]); bytes > Bytes{0})
      busy.emplace_back(bytes / network.links()[i].bandwidth, i);
  std::stable_sort(busy.begin(), busy.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<LinkUse> used;
  used.reserve(busy.size());
  for (const auto& [time, i] : busy)
    used.push_back({network.links()[i].name, network.links()[i].bandwidth, carried[i]});
  return used;
}

/// By stage, the device of the replica that ends last; of a tensor group across nodes, the part that ends last.
std::vector<DeviceId> last_devices(const Outcome& o) {
  const Plan& plan = *o.plan;
  const int replica = plan.devices[o.result->last_device.index()].replica;
  std::vector<DeviceId> devices;
  for (int s = 0; s < plan.parallel.pipeline; ++s) {
    DeviceId last = plan.device(replica, StageId{s}, 0);
    for (int part = 1; part < plan.nodes_per_tensor_group; ++part) {
      const DeviceId device = plan.device(replica, StageId{s}, part);
      if (o.result->device_end[device.index()] > o.result->device_end[last.index()]) last = device;
    }
    devices.push_back(last);
  }
  return devices;
}

std::vector<StageTime> stage_times(const Outcome& o) {
  std::vector<StageTime> times;
  for (const DeviceId device : last_devices(o)) {
    const DeviceId simulated_as = o.built->simulated_as(device);
    StageTime time{StageId{times.size()}, o.breakdowns->of(simulated_as),
                   o.result->device_end[device.index()]};
    if (o.fold != nullptr) {
      o.fold->unfold(time.breakdown, simulated_as);
      time.end += o.fold->left_out();
    }
    times.push_back(time);
  }
  return times;
}

FlopsPerSecond peak_per_gpu(const Scenario& scenario) {
  // The mean over the GPUs in use: a mixed cluster has no single peak.
  FlopsPerSecond sum{};
  for (const GpuPlace& place : scenario.plan.places)
    sum += scenario.nodes[place.node.index()].device.peak.at(scenario.plan.training.precision);
  return sum / static_cast<double>(scenario.plan.places.size());
}

/// FLOPs of all GPUs in one iteration.
FlopCounts iteration_flops(const Outcome& o) {
  const Plan& plan = o.scenario->plan;             // not a fold of it
  std::map<const StageCost*, FlopCounts> of_rank;  // in one microbatch
  FlopCounts sum;
  for (std::size_t i = 0; i < plan.devices.size(); ++i) {
    const StageCost& cost = o.built->cost_of_device[i];
    const auto [found, is_new] = of_rank.try_emplace(&cost);
    if (is_new)
      for (const ChunkCost& chunk : cost.chunks)
        for (const Direction direction : {Direction::forward, Direction::backward})
          found->second += count_flops(chunk.operations->at(direction));
    sum += found->second * static_cast<double>(plan.devices[i].num_gpus());
  }
  return sum * plan.microbatches_of_chunk();
}

void fill_rates(const Outcome& o, Report& report) {
  const Scenario& scenario = *o.scenario;
  const double batch = scenario.plan.training.global_batch;
  const double seconds = report.iteration_time / Seconds{1};
  WT_ENSURE(seconds > 0);
  report.samples_per_s = batch / seconds;
  report.tokens_per_s = report.samples_per_s * scenario.model.sequence;
  const double gpus = scenario.plan.num_ranks();
  const FlopCounts flops = iteration_flops(o);
  report.model_flops_per_gpu = flops.model / report.iteration_time / gpus;
  report.hardware_flops_per_gpu = flops.hardware / report.iteration_time / gpus;
  report.causal_flops_per_gpu = flops.causal / report.iteration_time / gpus;
  report.mfu = report.model_flops_per_gpu / peak_per_gpu(scenario);
  report.mfu_causal = report.causal_flops_per_gpu / peak_per_gpu(scenario);
  report.hfu = flops.executed / report.iteration_time / gpus / peak_per_gpu(scenario);
}

/// A value as a file has it: text without quotes, numbers as written.
std::string text_of(const JsonValue& value) {
  return value.is_string() ? value.string() : canonical_text(value);
}

/// One microbatch through all chunks of a stage that it takes, forward and backward; the mean where those are not the same for all.
std::pair<Seconds, Seconds> pass_times(const StageCost& cost, const Plan& plan) {
  Seconds forward{}, backward{};
  for (const ChunkCost& chunk : cost.chunks) {
    forward += chunk.forward.duration;
    backward += chunk.backward.duration;
  }
  const double copies = plan.parallel.copies_of_stage();
  return {forward / copies, backward / copies};
}

/// Forward and backward time of the last stage, whose timers stop while it waits for stages on slower nodes.
std::pair<Seconds, Seconds> timed_passes(const Outcome& o) {
  const Scenario& scenario = *o.scenario;
  if (scenario.nodes.front().pass_spread == 0)  // all nodes have the same
    return pass_times(o.built->cost_of_device.back(), *o.plan);
  std::vector<NodeType> alike = scenario.nodes;
  for (NodeType& node : alike) node.pass_spread = 0;
  const BuiltPrograms built =
      build_programs({&scenario.model, &scenario.platform, &alike, &scenario.software, o.plan});
  return pass_times(built.cost_of_device.back(), *o.plan);
}

void fill_stage_times(const Outcome& o, Report& report) {
  for (std::size_t d = 0; d < o.built->cost_of_device.size(); ++d) {
    const auto [forward, backward] = pass_times(o.built->cost_of_device[d], *o.plan);
    if (forward + backward <= report.forward_time + report.backward_time) continue;
    report.forward_time = forward;
    report.backward_time = backward;
  }
  const auto [forward, backward] = timed_passes(o);
  report.last_stage_forward = forward * static_cast<double>(o.scenario->plan.microbatches);
  report.last_stage_backward = backward * static_cast<double>(o.scenario->plan.microbatches);
}

/// The numbers of one file, each with the value in use and where it comes from. `pointer` is the file's place in the
/// resolved scenario.
void add_sources(const JsonValue& resolved, const std::map<std::string, Source>& sources,
                 const std::string& pointer, const std::string& file, Report& report) {
  const JsonValue* const part = find_at(resolved, pointer);
  for (const auto& [key, source] : sources) {
    const JsonValue* value = part == nullptr ? nullptr : find_at(*part, "/" + key);
    report.assumptions.push_back(
        {file + ": " + key, value ? text_of(*value) : "", source.text, source.evidence});
  }
}

void fill_assumptions(const Scenario& scenario, Report& report) {
  const JsonValue& resolved = scenario.resolved;
  std::set<std::string> devices;
  for (std::size_t i = 0; i < scenario.platform.node_types.size(); ++i) {
    const Device& device = scenario.platform.node_types[i].device;
    if (!devices.insert(device.name).second) continue;
    add_sources(resolved, device.sources, "/platform/node_types/" + std::to_string(i) + "/device",
                "device " + device.name, report);
  }
  const Training& training = scenario.plan.training;
  const bool offloads = training.optimizer_offload > 0 || training.activation_offload > 0;
  std::map<std::string, Source> of_platform = scenario.platform.sources;
  std::erase_if(of_platform, [offloads](const auto& each) {
    return !offloads && each.first.find("/host/") != std::string::npos;
  });
  add_sources(resolved, of_platform, "/platform", "platform " + scenario.platform.name, report);
  add_sources(resolved, scenario.software.sources, "/software",
              "software " + scenario.software.name, report);
  if (!scenario.placement_note.empty())
    report.assumptions.push_back(
        {"placement", "found by search", scenario.placement_note, Evidence::assumed});
  add_codec_assumptions(scenario, report);
}

/// Note on whether memory comes from the account alone or from the correction that the scenario names.
std::string correction_note(const MemoryCorrection& correction) {
  constexpr double percent = 100;
  const HeldOutMemory& errors = correction.held_out;
  const std::string figures = "held out, it was " + fixed_text(errors.corrected * percent, 1) +
                              " % off and the account alone " +
                              fixed_text(errors.analytic * percent, 1) + " %";
  return correction.is_better()
             ? "memory is the account's times memory_correction (" + figures + ")"
             : "memory_correction is not used (" + figures + ")";
}

/// Breakdown line of the time that an iteration waits for exchanges of such groups.
Line exposed_line(AxisName axis) {
  if (axis == AxisName::expert) return Line::expert_comm;
  return axis == AxisName::context ? Line::context_comm : Line::tensor_comm;
}

/// The most that the breakdown of any device has on this line. One that waits for a straddling group elsewhere has less than those in it.
Seconds most_on_line(const Outcome& o, Line line) {
  Seconds most{};
  for (std::size_t d = 0; d < o.built->simulated_set().devices.size(); ++d) {
    Breakdown breakdown = o.breakdowns->of(DeviceId{d});
    if (o.fold != nullptr) o.fold->unfold(breakdown, DeviceId{d});
    most = std::max(most, breakdown.of(line));
  }
  return most;
}

std::optional<DomainUse> domain_use(const Outcome& o) {
  const Scenario& scenario = *o.scenario;
  const Platform& platform = scenario.platform;
  const Plan& plan = scenario.plan;
  if (platform.domain_nodes == 1 || plan.num_nodes == 1) return std::nullopt;
  const int segment = scenario.nodes.front().trays;
  const auto whole = std::count_if(scenario.nodes.begin(), scenario.nodes.end(),
                                   [&](const NodeType& node) { return node.trays == segment; });
  DomainUse use{segment,
                platform.domain_nodes,
                static_cast<int>(whole) * (platform.domain_nodes - segment),
                {}};
  for (const NvlinkGroup& group : nvlink_groups(plan.parallel))
    if (const int domains = domains_of(group, plan); domains > 1)
      use.straddling.push_back(
          {group.axis, group.ranks, domains, most_on_line(o, exposed_line(group.axis))});
  return use;
}

void warn_of_straddling(const Report& report, std::vector<std::string>& warnings) {
  if (!report.domains) return;
  for (const StraddlingGroups& groups : report.domains->straddling)
    warnings.push_back(
        std::string(name_of(groups.axis)) + " groups of " + std::to_string(groups.gpus) +
        " GPUs straddle " + std::to_string(groups.domains) +
        " NVLink domains, so that their exchanges cross the network cards, which takes up to " +
        to_text(groups.exposed) + " of the iteration");
}

/// Warns of neighbours on links that no message of the job crosses: the name may be a slip.
void warn_of_idle_neighbours(const Outcome& o, std::vector<std::string>& warnings) {
  const std::vector<Link>& links = o.built->network.links();
  for (const NeighbourFlow& flow : o.scenario->platform.neighbours)
    if (!flow.is_simulated && std::none_of(links.begin(), links.end(), [&](const Link& link) {
          return link.name == flow.link;
        }))
      warnings.push_back("neighbours: no message of the job passes a link named \"" + flow.link +
                         "\"");
}

void fill_warnings(const Outcome& o, Report& report) {
  const Scenario& scenario = *o.scenario;
  warn_of_straddling(report, report.warnings);
  if (scenario.neighbour_costs.empty())  // which have the nodes behind this job's
    for (std::string& warning : absent_node_warnings(scenario.platform, scenario.plan.num_nodes))
      report.warnings.push_back(std::move(warning));
  warn_of_idle_neighbours(o, report.warnings);
  if (scenario.memory_correction)
    report.warnings.push_back(correction_note(*scenario.memory_correction));
  const Parallel& parallel = scenario.plan.parallel;
  const int tokens = scenario.model.sequence / parallel.context;
  if (parallel.sequence_parallel && tokens % parallel.tensor != 0)
    report.warnings.push_back(
        "the " + std::to_string(tokens) +
        " tokens of a sample cannot be split evenly over tensor " +
        std::to_string(parallel.tensor) +
        " (sequence_parallel): the framework refuses or pads them, which is not simulated");
  if (parallel.tensor > scenario.model.kv_heads && !scenario.model.mla)
    report.warnings.push_back(
        "tensor " + std::to_string(parallel.tensor) + " cuts the model's " +
        count_text(scenario.model.kv_heads, "key/value head") +
        " into parts: the framework refuses, copies or gathers them, which is not simulated");
  if (parallel.virtual_pipeline == 1 && parallel.pipeline > 1 && parallel.schedule->takes(2))
    report.warnings.push_back("schedule " + parallel.schedule->name +
                              " of one chunk per device is 1f1b: write \"virtual_pipeline\": 2 or "
                              "more to interleave");
  constexpr int aligned = 8;
  if (scenario.plan.training.attention == Attention::standard &&
      scenario.model.head_size() % aligned != 0) {
    report.warnings.push_back(
        "head size " + std::to_string(scenario.model.head_size()) +
        " is no multiple of 8: attention products run several times slower on tensor cores");
  }
}

BuildInputs build_inputs(const Scenario& scenario, const Plan& plan,
                         Replicas replicas = Replicas::each, Detail detail = Detail::pass) {
  return {&scenario.model, &scenario.platform,
          &scenario.nodes, &scenario.software,
          &plan,           replicas,
          detail,          {Tokens::Draws::by_seed, scenario.seed}};
}

/// Number of replicas simulated on behalf of all; 0 if each was.
int simulated_replicas(const Outcome& o) {
  if (!o.built->collapsed) return 0;
  std::set<int> replicas;
  for (const DeviceId device : o.built->collapsed->stands_for)
    replicas.insert(o.plan->devices[device.index()].replica);
  return static_cast<int>(replicas.size());
}

/// Figures that a search compares: time, rates, memory. Without the periods that were not simulated.
Report make_key_report(const Outcome& o) {
  const Scenario& scenario = *o.scenario;
  Report report;
  report.name = scenario.name;
  report.version = WINDTUNNEL_VERSION;
  report.scenario_hash = scenario.hash;
  report.seed = scenario.seed;
  report.placement_note = scenario.placement_note;
  report.iteration_time = o.result->end;
  report.num_gpus = scenario.plan.num_ranks();
  report.gpu_family = device_family(scenario.nodes);
  // A fold has as many passes in flight.
  report.memory = account_memory(scenario, *o.whole_plan, count_in_flight(*o.plan));
  report.activities = o.result->activities;
  report.flows = o.result->flows;
  report.simulated_replicas = simulated_replicas(o);
  return report;
}

Report make_report(const Outcome& o) {
  const Scenario& scenario = *o.scenario;
  Report report = make_key_report(o);
  if (!report.memory.fits)
    report.memory.advice = memory_advice(scenario, *o.whole_plan, report.memory);
  report.plan = scenario.plan;
  report.host_gathers = scenario.software.host_gathers &&
                        scenario.plan.parallel.gathers_in_passes() &&
                        scenario.plan.parallel.replicas() > 1;
  report.model_name = scenario.model.name;
  report.platform_name = scenario.platform.name;
  report.software_name = scenario.software.name;
  if (const JsonValue* software = scenario.resolved.find("software"); software != nullptr)
    report.software_release = release_of(*software);
  report.parameters = total_parameters(scenario.model);
  report.breakdown = o.breakdowns->of(o.built->simulated_as(o.result->last_device));
  report.traffic = count_traffic(o);
  report.messages = count_messages(o.built->programs, o.repeats());
  for (int s = 0; s < scenario.plan.parallel.pipeline; ++s)
    if (compresses_gradients(o.built->compression, s)) report.compressed_stages.push_back(s);
  report.links = links_in_use(o.built->network,
                              traffic_of_links(o.built->network, o.built->programs, o.repeats()));
  report.stage_times = stage_times(o);
  report.last_device = o.result->last_device;
  if (o.fold != nullptr) {
    report.iteration_time += o.fold->left_out();
    o.fold->unfold(report.breakdown, o.built->simulated_as(o.result->last_device));
    report.simulated_microbatches = o.plan->microbatches;
  }
  fill_rates(o, report);
  fill_stage_times(o, report);
  fill_assumptions(scenario, report);
  report.domains = domain_use(o);
  report.time_alone = scenario.time_alone;
  report.neighbours = scenario.neighbour_costs;
  fill_warnings(o, report);
  add_compression_warnings(scenario, *o.built, report);
  return report;
}

std::size_t num_ops(const ProgramSet& programs) {
  std::size_t count = 0;
  for (const ProgramDevice& device : programs.devices)
    for (const std::vector<Op>& stream : programs.programs[device.program].streams)
      count += stream.size();
  return count;
}

/// No program of the plan has fewer: a forward and a backward pass, and between stages one exchange for both.
std::size_t fewest_ops(const Plan& plan) {
  const auto passes = static_cast<std::size_t>(plan.microbatches) *
                      static_cast<std::size_t>(plan.parallel.virtual_pipeline);
  const std::size_t ops_of_pair = plan.parallel.pipeline > 1 ? 3 : 2;
  return passes * ops_of_pair * plan.devices.size() /
         static_cast<std::size_t>(plan.parallel.copies_of_stage());
}

/// Whoever wants the timeline keeps the times of each op, its place on the critical path and its slice of a page or a trace.
void expect_room_for_timeline(std::size_t ops, const std::string& of_devices) {
  constexpr std::size_t most_ops = 40'000'000;
  constexpr double bytes_of_op = 250;
  const std::string what = "a timeline of " + std::to_string(ops) + " steps on " + of_devices;
  const char* const advice = "run it without files, or with fewer microbatches or stages";
  if (ops > most_ops)
    throw UnsupportedError(
        {{{},
          {},
          what + " is not written to files; the limit is " + std::to_string(most_ops),
          advice}});
  expect_memory_for(bytes_of_op * static_cast<double>(ops), what, advice);
}

/// Reads the measured errors while the simulation runs, since reading takes a quarter of a small run.
std::future<MeasuredErrors> measured_errors(const Library& library) {
  const std::optional<std::filesystem::path> file = residuals_of(library);
  return std::async(file ? std::launch::async | std::launch::deferred : std::launch::deferred,
                    [source = file ? read_source(*file) : nullptr] {
                      return source ? parse_evidence(source) : MeasuredErrors{};
                    });
}

}  // namespace

Simulation simulate(const Scenario& scenario, const SimulateOptions& options) {
  WT_EXPECT(scenario.placement_request == PlacementRequest::as_planned &&
            scenario.neighbour_jobs.empty());
  const Clock::time_point start = Clock::now();
  std::future<MeasuredErrors> errors;
  if (options.evidence != nullptr) errors = measured_errors(*options.evidence);
  const PlanWithStages with_stages(build_inputs(scenario, scenario.plan));
  const Plan& chosen = with_stages.plan();
  const Replicas replicas = options.keep_timeline ? Replicas::each : options.replicas;
  std::optional<Fold> fold =
      options.keep_timeline || options.folding == Folding::never
          ? std::nullopt
          : find_fold(build_inputs(scenario, chosen, replicas, options.detail));
  // Messages that meet do not slow each other down on that engine.
  if (fold && fold->steady.messages_met && options.make_engine == make_heap_engine) fold.reset();
  const Plan& plan = fold ? fold->plan : chosen;
  const std::string of_devices = std::to_string(plan.devices.size()) + " devices";
  // First by what the plan says, since a program that is too large takes its time to build.
  if (options.keep_timeline) expect_room_for_timeline(fewest_ops(plan), of_devices);
  BuiltPrograms built =
      fold ? std::move(fold->built)
           : build_programs(build_inputs(scenario, plan, replicas, options.detail));
  if (options.keep_timeline) expect_room_for_timeline(num_ops(built.programs), of_devices);
  BreakdownListener breakdowns(built.simulated_set().devices.size());
  TimelineListener timeline;
  ListenerPair both(breakdowns, timeline);
  SimulationListener* const listener =
      options.keep_timeline ? static_cast<SimulationListener*>(&both) : &breakdowns;
  const bool ready = fold && options.make_engine == make_native_engine;
  if (ready) breakdowns = std::move(fold->run.breakdowns);
  const EngineResult result =
      ready ? std::move(fold->run.result) : simulate_programs(built, options.make_engine, listener);
  Simulation simulation;
  simulation.report = make_report(
      {&scenario, &chosen, &plan, &built, &result, &breakdowns, fold ? &*fold : nullptr});
  simulation.report.engine = result.engine;
  if (errors.valid()) {
    const MeasuredErrors known = errors.get();
    if (known.regimes.empty())
      simulation.report.warnings.push_back(
          "no prediction interval: " + (options.evidence->root / "validation").string() +
          " has no errors of measured runs (residuals.json)");
    else
      add_interval(scenario, known, simulation.report);
  }
  simulation.report.wall = Seconds{std::chrono::duration<double>(Clock::now() - start).count()};
  simulation.programs = std::move(built.programs);
  simulation.network = std::move(built.network);
  simulation.timeline = std::move(timeline.timeline());
  simulation.timeline.end = result.end;
  return simulation;
}

BuiltScenario build(const Scenario& scenario) { return build(scenario, scenario.plan); }

BuiltScenario build(const Scenario& scenario, const Plan& plan) {
  WT_EXPECT(scenario.neighbour_jobs.empty());
  BuiltScenario built;
  built.plan = PlanWithStages(build_inputs(scenario, plan)).plan();
  constexpr Replicas replicas = Replicas::collapsed_when_exact;
  built.fold = find_fold(build_inputs(scenario, built.plan, replicas));
  built.programs = built.fold ? std::move(built.fold->built)
                              : build_programs(build_inputs(scenario, built.plan, replicas));
  return built;
}

PlanFigures simulate_plan(const Scenario& scenario, const Plan& plan) {
  BuiltScenario built = build(scenario, plan);
  const NativeRun run = built.fold ? std::move(built.fold->run) : simulate_natively(built.programs);
  const DeviceId last = built.programs.simulated_as(run.result.last_device);
  PlanFigures figures{run.result.end,
                      account_memory(scenario, built.plan,
                                     count_in_flight(built.fold ? built.fold->plan : built.plan)),
                      run.breakdowns.of(last)};
  if (built.fold) {
    figures.iteration_time += built.fold->left_out();
    built.fold->unfold(figures.breakdown, last);
  }
  return figures;
}

Report simulate_key_figures(const Scenario& scenario, const BuiltScenario& built) {
  std::optional<NativeRun> whole;
  const NativeRun& run =
      built.fold ? built.fold->run : whole.emplace(simulate_natively(built.programs));
  const Plan& plan = built.fold ? built.fold->plan : built.plan;
  const Outcome outcome{&scenario,   &built.plan, &plan,  &built.programs,
                        &run.result, nullptr,     nullptr};
  Report report = make_key_report(outcome);
  report.engine = run.result.engine;
  const DeviceId last = built.programs.simulated_as(run.result.last_device);
  report.breakdown = run.breakdowns.of(last);
  if (built.fold) {
    report.iteration_time += built.fold->left_out();
    built.fold->unfold(report.breakdown, last);
  }
  fill_rates(outcome, report);
  return report;
}

}  // namespace windtunnel
