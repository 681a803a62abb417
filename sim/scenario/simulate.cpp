#include <chrono>
#include <set>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"
#include "engine/player.hpp"
#include "memory/in_flight.hpp"
#include "scenario/built_scenario.hpp"
#include "scenario/folding.hpp"
#include "scenario/interval.hpp"
#include "scenario/program_builder.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

using Clock = std::chrono::steady_clock;

/// What one pass through a scenario has in hand when the report is written.
struct Outcome {
  const Scenario* scenario = nullptr;
  const Plan* plan = nullptr;  ///< that was played: the scenario's, or a fold of it
  const BuiltPrograms* built = nullptr;
  const Played* played = nullptr;
  const Fold* fold = nullptr;  ///< none: played as it is
};

/// Sends of each traffic class by one pipeline (one replica, all its stages).
std::array<MessageCount, num_traffic_classes> count_messages(const ProgramSet& set) {
  std::array<MessageCount, num_traffic_classes> counts{};
  for (const StageProgram& program : set.programs)
    for (const std::vector<Op>& stream : program.streams)
      for (const Op& op : stream)
        if (op.kind == OpKind::send) ++counts[static_cast<std::size_t>(op.traffic)].uncompressed;
  return counts;
}

/// ZeRO 3, whose collectives are part of the passes: on each microbatch every layer's parameters are gathered forward and
/// backward, embedding and head once, and all gradients are scattered in the same type; a rank sends (n-1)/n each time.
void add_sharded_traffic(const Plan& plan, const PlanDevice& device, const StageCost& cost,
                         std::array<Bytes, num_traffic_classes>& traffic) {
  if (plan.parallel.zero_stage < 3) return;
  const int members = plan.parallel.data;
  const double layers = plan.stage_layers[device.stage.index()];
  const double sent =
      static_cast<double>(plan.microbatches) * device.num_gpus() * (members - 1) / members;
  const Bytes in_layers = cost.gathered_layer * (layers * sent),
              at_edges = cost.gathered_edges * sent;
  traffic[static_cast<std::size_t>(Traffic::zero_gather)] += 2 * in_layers + at_edges;
  traffic[static_cast<std::size_t>(Traffic::data_gradients)] += in_layers + at_edges;
}

/// Bytes all GPUs together send in one iteration, NVLink included.
std::array<Bytes, num_traffic_classes> count_traffic(const Outcome& o) {
  const Plan& plan = *o.plan;
  const ProgramSet& set = o.built->programs;
  std::array<Bytes, num_traffic_classes> traffic{};
  const auto at = [&traffic](Traffic kind) -> Bytes& {
    return traffic[static_cast<std::size_t>(kind)];
  };
  for (const ProgramDevice& device : set.devices) {
    for (const std::vector<Op>& stream : set.programs[device.program].streams) {
      for (const Op& op : stream) {
        if (op.kind == OpKind::send) at(op.traffic) += set.message_bytes[op.work];
        if (op.kind != OpKind::collective || op.traffic == Traffic::tensor_activations) continue;
        const Collective& collective = set.collectives[device.collectives[op.slot].index()];
        at(op.traffic) += collective.traffic_bytes / static_cast<double>(collective.members.size());
      }
    }
  }
  for (std::size_t i = 0; i < set.devices.size(); ++i) {
    const StageCost& cost = o.built->cost_of_device[i];
    const int t = plan.parallel.tensor;
    int all_reduces = 0;
    for (const ChunkCost& chunk : cost.chunks)
      all_reduces += chunk.forward_all_reduces + chunk.backward_all_reduces;
    const double repeats =
        static_cast<double>(all_reduces) * plan.microbatches * plan.devices[i].num_gpus();
    at(Traffic::tensor_activations) += ring_all_reduce_volume(cost.tensor_payload, t) * repeats;
    add_sharded_traffic(plan, plan.devices[i], cost, traffic);
  }
  return traffic;
}

MemoryAccount account(const Outcome& o) {
  const Scenario& scenario = *o.scenario;
  MemoryInputs inputs;
  inputs.model = &scenario.model;
  inputs.plan = &scenario.plan;
  inputs.software = &scenario.software;
  for (int s = 0; s < scenario.plan.parallel.pipeline; ++s) {
    // Of all replicas' devices that hold the stage, the one with the least memory.
    const Device* smallest = nullptr;
    for (const PlanDevice& device : scenario.plan.devices) {
      if (device.stage != StageId{s}) continue;
      const Device& candidate = scenario.nodes[device.node.index()].device;
      if (smallest == nullptr || candidate.usable_memory < smallest->usable_memory)
        smallest = &candidate;
    }
    inputs.device_of_stage.push_back(smallest);
  }
  const InFlightOfStages in_flight = in_flight_microbatches(o.built->programs.programs);
  inputs.in_flight = in_flight.all;
  inputs.in_flight_with_gradients = in_flight.with_gradients;
  return account_memory(inputs);
}

FlopsPerSecond peak_per_gpu(const Scenario& scenario) {
  // The mean over the GPUs in use: a mixed cluster has no single peak.
  FlopsPerSecond sum{};
  for (const GpuPlace& place : scenario.plan.places)
    sum += scenario.nodes[place.node.index()].device.peak.at(scenario.plan.training.precision);
  return sum / static_cast<double>(scenario.plan.places.size());
}

void fill_rates(const Scenario& scenario, Report& report) {
  const double batch = scenario.plan.training.global_batch;
  const double seconds = report.iteration_time / Seconds{1};
  WT_ENSURE(seconds > 0);
  report.samples_per_s = batch / seconds;
  report.tokens_per_s = report.samples_per_s * scenario.model.sequence;
  const double gpus = scenario.plan.num_ranks();
  report.model_flops_per_gpu = model_flops(scenario.model, batch) / report.iteration_time / gpus;
  report.hardware_flops_per_gpu =
      hardware_flops(scenario.model, batch, scenario.plan.training.recompute) /
      report.iteration_time / gpus;
  report.mfu = report.model_flops_per_gpu / peak_per_gpu(scenario);
  report.hfu = report.hardware_flops_per_gpu / peak_per_gpu(scenario);
}

/// A value as a file has it: text without quotes, numbers as written.
std::string text_of(const JsonValue& value) {
  return value.is_string() ? value.string() : canonical_text(value);
}

/// One microbatch through all chunks of a stage, forward and backward.
std::pair<Seconds, Seconds> pass_times(const StageCost& cost) {
  Seconds forward{}, backward{};
  for (const ChunkCost& chunk : cost.chunks) {
    forward += chunk.forward.duration;
    backward += chunk.backward.duration;
  }
  return {forward, backward};
}

void fill_stage_times(const Outcome& o, Report& report) {
  for (const StageCost& cost : o.built->cost_of_device) {
    const auto [forward, backward] = pass_times(cost);
    if (forward + backward <= report.forward_time + report.backward_time) continue;
    report.forward_time = forward;
    report.backward_time = backward;
  }
  const auto [forward, backward] = pass_times(o.built->cost_of_device.back());
  report.last_stage_forward = forward * static_cast<double>(o.scenario->plan.microbatches);
  report.last_stage_backward = backward * static_cast<double>(o.scenario->plan.microbatches);
}

/// The numbers of one file, each with the value in use and where it comes from. `pointer` is the file's place in the
/// resolved scenario.
void add_sources(JsonValue& resolved, const std::map<std::string, Source>& sources,
                 const std::string& pointer, const std::string& file, Report& report) {
  for (const auto& [key, source] : sources) {
    const JsonValue* value = find_at(resolved, pointer + "/" + key);
    report.assumptions.push_back(
        {file + ": " + key, value ? text_of(*value) : "", source.text, source.evidence});
  }
}

void fill_assumptions(const Scenario& scenario, Report& report) {
  JsonValue resolved = scenario.resolved;
  std::set<std::string> devices;
  for (std::size_t i = 0; i < scenario.platform.node_types.size(); ++i) {
    const Device& device = scenario.platform.node_types[i].device;
    if (!devices.insert(device.name).second) continue;
    add_sources(resolved, device.sources, "/platform/node_types/" + std::to_string(i) + "/device",
                "device " + device.name, report);
  }
  add_sources(resolved, scenario.platform.sources, "/platform",
              "platform " + scenario.platform.name, report);
  add_sources(resolved, scenario.software.sources, "/software",
              "software " + scenario.software.name, report);
  if (!scenario.placement_note.empty())
    report.assumptions.push_back(
        {"placement", "found by search", scenario.placement_note, Evidence::assumed});
}

void fill_warnings(const Scenario& scenario, Report& report) {
  constexpr int aligned = 8;
  if (scenario.plan.training.attention == Attention::standard &&
      scenario.model.head_size() % aligned != 0) {
    report.warnings.push_back(
        "head size " + std::to_string(scenario.model.head_size()) +
        " is no multiple of 8: attention products run several times slower on tensor cores");
  }
  if (!scenario.software.profiled) {
    report.warnings.push_back(
        "software " + scenario.software.name +
        " is not profiled: expect ±15 % until 3-4 of your own measurements calibrate it");
  }
}

BuildInputs build_inputs(const Scenario& scenario, const Plan& plan) {
  return {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &plan};
}

/// Adds the periods that were not played: each adds as much as the one by which the longer plan differs from the played one.
void unfold(const Outcome& o, const Breakdown& a_period, Report& report) {
  const Fold& fold = *o.fold;
  const double repeats = fold.repeats;
  const BuiltPrograms longer = build_programs(build_inputs(*o.scenario, fold.longer));
  const Outcome one_more{o.scenario, &fold.longer, &longer, o.played, nullptr};
  const auto traffic = count_traffic(one_more);
  const auto messages = count_messages(longer.programs);
  report.iteration_time += fold.duration * repeats;
  for (std::size_t i = 0; i < report.breakdown.seconds.size(); ++i)
    report.breakdown.seconds[i] += a_period.seconds[i] * repeats;
  for (std::size_t i = 0; i < traffic.size(); ++i)
    report.traffic[i] += (traffic[i] - report.traffic[i]) * repeats;
  const auto extended = [&](std::uint64_t shorter, std::uint64_t more) {
    return shorter + (more - shorter) * static_cast<std::uint64_t>(fold.repeats);
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    MessageCount& count = report.messages[i];
    count.compressed = extended(count.compressed, messages[i].compressed);
    count.uncompressed = extended(count.uncompressed, messages[i].uncompressed);
  }
  report.played_microbatches = o.plan->microbatches;
}

/// What a search compares: time, rates, memory. Without the periods that were not played.
Report make_key_report(const Outcome& o) {
  const Scenario& scenario = *o.scenario;
  Report report;
  report.name = scenario.name;
  report.version = WINDTUNNEL_VERSION;
  report.scenario_hash = scenario.hash;
  report.seed = scenario.seed;
  report.placement_note = scenario.placement_note;
  report.iteration_time = o.played->end;
  report.num_gpus = scenario.plan.num_ranks();
  report.memory = account(o);
  report.activities = o.played->activities;
  report.flows = o.played->flows;
  return report;
}

Report make_report(const Outcome& o, const Breakdown& breakdown) {
  const Scenario& scenario = *o.scenario;
  Report report = make_key_report(o);
  report.plan = scenario.plan;
  report.model_name = scenario.model.name;
  report.platform_name = scenario.platform.name;
  report.software_name = scenario.software.name;
  report.parameters = total_parameters(scenario.model);
  report.breakdown = breakdown;
  report.traffic = count_traffic(o);
  report.messages = count_messages(o.built->programs);
  if (o.fold != nullptr) unfold(o, o.fold->breakdowns[o.played->last_device.index()], report);
  fill_rates(scenario, report);
  fill_stage_times(o, report);
  fill_assumptions(scenario, report);
  fill_warnings(scenario, report);
  return report;
}

}  // namespace

Simulation simulate(const Scenario& scenario, const SimulateOptions& options) {
  WT_EXPECT(scenario.placement_request == PlacementRequest::as_planned);
  const Clock::time_point start = Clock::now();
  const std::optional<Fold> fold = options.keep_timeline || options.folding == Folding::never
                                       ? std::nullopt
                                       : find_fold(build_inputs(scenario, scenario.plan));
  const Plan& plan = fold ? fold->plan : scenario.plan;
  BuiltPrograms built = build_programs(build_inputs(scenario, plan));
  const std::unique_ptr<Engine> engine = make_engine(options.engine, built.network);
  BreakdownListener breakdowns(built.programs.devices.size());
  TimelineListener timeline;
  ListenerPair both(breakdowns, timeline);
  PlayListener* const listener =
      options.keep_timeline ? static_cast<PlayListener*>(&both) : &breakdowns;
  const Played played = play(built.programs, *engine, listener);
  Simulation simulation;
  simulation.report = make_report({&scenario, &plan, &built, &played, fold ? &*fold : nullptr},
                                  breakdowns.of(played.last_device));
  if (options.evidence != nullptr) add_interval(scenario, *options.evidence, simulation.report);
  simulation.report.wall = Seconds{std::chrono::duration<double>(Clock::now() - start).count()};
  simulation.programs = std::move(built.programs);
  simulation.timeline = std::move(timeline.timeline());
  simulation.timeline.end = played.end;
  return simulation;
}

BuiltScenario build(const Scenario& scenario) {
  BuiltScenario built;
  built.fold = find_fold(build_inputs(scenario, scenario.plan));
  built.programs =
      build_programs(build_inputs(scenario, built.fold ? built.fold->plan : scenario.plan));
  return built;
}

Report simulate_key_figures(const Scenario& scenario, const BuiltScenario& built) {
  const std::unique_ptr<Engine> engine = make_engine(EngineKind::simgrid, built.programs.network);
  const Played played = play(built.programs.programs, *engine, nullptr);
  const Plan& plan = built.fold ? built.fold->plan : scenario.plan;
  Report report = make_key_report({&scenario, &plan, &built.programs, &played, nullptr});
  if (built.fold)
    report.iteration_time += built.fold->duration * static_cast<double>(built.fold->repeats);
  fill_rates(scenario, report);
  return report;
}

}  // namespace windtunnel
