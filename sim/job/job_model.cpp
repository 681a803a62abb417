#include "job/job_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/contracts.hpp"
#include "cost/adapters.hpp"
#include "plan/plan.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double ticks_per_second = 1e9;
constexpr double seconds_per_year = 365.25 * 24 * 3600;
/// Beyond some ninety years ticks would overflow where several are added up.
constexpr double most_seconds = 3e9;

/// A step on fewer replicas keeps its batch: the rest run more microbatches each. Pipeline bubbles and the end of the step
/// grow along with them, which is too long by their share.
std::vector<Ticks> step_times(const Job& job, const Plan& plan) {
  std::vector<Ticks> times{to_ticks(job.step_time)};
  const int all = plan.parallel.data;
  const double samples = plan.training.global_batch;
  for (int missing = 1; job.block.elastic; ++missing) {
    const int left = replicas_on((job.model.nodes - missing) * job.gpus_per_node, plan.parallel);
    if (left < 1 || 2 * left < all) break;
    const double microbatches = std::ceil(samples / (left * plan.training.micro_batch));
    times.push_back(to_ticks(job.step_time * (microbatches / plan.microbatches)));
  }
  return times;
}

double parts_in(FailingPart part, const Scenario& scenario) {
  double gpus = 0, nics = 0;
  for (const NodeType& node : scenario.nodes) {
    gpus += node.gpus;
    nics += node.nics;
  }
  switch (part) {
    case FailingPart::gpu:
    case FailingPart::memory:
      return gpus;
    case FailingPart::nic:
    case FailingPart::network:
      return nics;
    case FailingPart::node:
    case FailingPart::software:
      return num_trays(scenario.nodes);
  }
  return 0;
}

void set_checkpoints(Job& job, const Scenario& scenario) {
  JobModel& model = job.model;
  const Plan& plan = scenario.plan;
  // The whole checkpoint is written as fast as storage and the nodes that write go.
  const int writers = job.block.sharded ? model.nodes : nodes_of_replica(plan, job.gpus_per_node);
  const Seconds write = job.checkpoint / std::min(job.block.storage_bandwidth,
                                                  job.block.node_bandwidth * double(writers));
  model.read = model.stall = to_ticks(write);
  if (job.block.checkpoint_kind == CheckpointKind::asynchronous) {
    // Every GPU that writes copies its share to host memory at once.
    int ranks = job.block.sharded ? plan.num_ranks() : 0;
    if (!job.block.sharded)
      for (const DeviceId device : devices_of_one_copy(plan))
        ranks += plan.devices[device.index()].num_gpus();
    model.stall = to_ticks(job.checkpoint / (job.block.snapshot_bandwidth * double(ranks)));
    model.write = to_ticks(write);
  }
  const double rate = model.failure_rate();
  Seconds every = job.step_time * double(model.steps);
  if (job.block.interval)
    every = *job.block.interval;
  else if (rate > 0)
    every = daly_interval(to_seconds(model.stall), Seconds{1 / (rate * ticks_per_second)});
  const double steps = std::round(every / job.step_time);
  model.checkpoint_every =
      static_cast<std::int64_t>(std::clamp(steps, 1.0, static_cast<double>(model.steps)));
}

/// Time until a failure is noticed. A process that ends is missed by the agents of the other nodes; a hang is noticed when a collective
/// runs into its timeout. Of Llama 3's 419 interruptions 7 are told as timeouts of NCCL's watchdog (arXiv:2407.21783, table 5).
constexpr Seconds crash_detection{15}, hang_detection{600};
constexpr double share_of_hangs = 7.0 / 419;

/// Without a failure; in doubles, since ticks would overflow.
Seconds time_without_failures(const JobModel& model) {
  const auto seconds = [](Ticks each, double times) { return to_seconds(each) * times; };
  const auto steps = static_cast<double>(model.steps);
  const auto every = static_cast<double>(model.checkpoint_every);
  const Seconds writing = to_seconds(model.write) - seconds(model.step.front(), every);
  Seconds time = to_seconds(model.start) + seconds(model.step.front(), steps);
  for (const Ticks each : model.noise)
    time += seconds(each, steps / static_cast<double>(model.noise.size()));
  if (model.evaluation_every > 0)
    time += seconds(model.evaluation, steps / static_cast<double>(model.evaluation_every));
  return time + (to_seconds(model.stall) + std::max(Seconds{0}, writing)) * (steps / every);
}

void refuse_endless(const JobModel& model) {
  if (time_without_failures(model) < Seconds{most_seconds}) return;
  Problems problems;
  problems.add({{},
                "/job",
                "the steps, evaluations and checkpoints of this job take more than 95 years",
                "write fewer"});
  problems.throw_if_any();
}

/// Every number of the job that the file leaves to us.
std::vector<Assumption> assumptions_of(const Job& job, const Scenario& scenario) {
  std::vector<Assumption> list;
  const auto add = [&](const char* pointer, const char* what, const std::string& value,
                       const char* note, Evidence evidence) {
    const JsonValue* given = find_at(scenario.resolved, pointer);
    if (given == nullptr || given->is_null() || given->origin.kind == OriginKind::defaulted)
      list.push_back({what, value, note, evidence});
  };
  add("/job/start/time", "start-up", interval_text(to_seconds(job.model.start)), start_up_source,
      Evidence::measured);
  for (const FailingPart part : enumerators<FailingPart>()) {
    const std::string name = name_of(part);
    add(("/job/failures/" + name).c_str(), ("failures of " + name).c_str(),
        significant_text(job.block.failures_per_year[part], 3) + " per part and year",
        "Llama 3: 419 in 54 days on 16,384 H100, arXiv:2407.21783, table 5", Evidence::measured);
  }
  add("/job/restart/detection", "noticing a dead process", interval_text(crash_detection),
      "PyTorch's rendezvous misses three heartbeats, one every 5 s", Evidence::assumed);
  add("/job/restart/detection", "noticing a hang", interval_text(hang_detection),
      "the default timeout of a collective in PyTorch; 7 of Llama 3's 419 interruptions were such",
      Evidence::assumed);
  add("/job/restart/repair", "repair of a node", interval_text(job.block.repair), "no source",
      Evidence::assumed);
  add("/job/checkpoint/storage_bandwidth", "storage", to_text(job.block.storage_bandwidth),
      "no source; BLOOM wrote 2.3 TB in 40 s, 58 GB/s", Evidence::assumed);
  add("/job/checkpoint/node_bandwidth", "writing of a node", to_text(job.block.node_bandwidth),
      "no source", Evidence::assumed);
  if (job.block.checkpoint_kind == CheckpointKind::asynchronous)
    add("/job/checkpoint/snapshot_bandwidth", "copy to host memory, per GPU",
        to_text(job.block.snapshot_bandwidth), "no source; PCIe 4.0 x16 gives 25 GB/s at most",
        Evidence::assumed);
  return list;
}

/// All weight matrices of a model's layers.
double matrices_of(const Transformer& model) {
  const double matrices = model.layers * layer_matrix_parameters(model, 1);
  if (!model.moe) return matrices;
  return matrices +
         model.expert_layers(0, model.layers) * (expert_matrices(model) + router_matrix(model));
}

struct Measured {
  double nodes, seconds;
};

/// Initialisation to start of training, means of three runs each: NVIDIA's GPT-3 175B submissions to MLPerf Training 3.1 on
/// one site (Eos, DGX H100, NeMo 23.09). Includes the warm-up that NeMo does before the clock starts.
constexpr std::array<Measured, 7> measured{{{64, 169.1},
                                            {96, 169.1},
                                            {512, 188.2},
                                            {768, 228.9},
                                            {1024, 291.3},
                                            {1280, 382.5},
                                            {1344, 392.1}}};

}  // namespace

Ticks to_ticks(Seconds time) {
  const double seconds = std::min(time / Seconds{1}, most_seconds);
  return std::llround(seconds * ticks_per_second);
}

Seconds to_seconds(Ticks ticks) { return Seconds{static_cast<double>(ticks) / ticks_per_second}; }

std::string interval_text(Seconds time) {
  constexpr double minute = 60, hour = 3600;
  const double seconds = time / Seconds{1};
  if (seconds < 1) return to_text(time);
  if (seconds < minute) return fixed_text(seconds, 1) + " s";
  if (seconds < hour) return fixed_text(seconds / minute, 1) + " min";
  return fixed_text(seconds / hour, 2) + " h";
}

double JobModel::failure_rate() const {
  double rate = 0;
  for (const double each : failures_per_tick) rate += each;
  return rate;
}

Bytes checkpoint_bytes(double parameters, const Scenario& scenario) {
  const Training& training = scenario.plan.training;
  const Transformer& model = scenario.model;
  if (training.lora.is_used())
    parameters = model.layers * (adapter_parameters(model, training.lora, LayerHalf::attention) +
                                 adapter_parameters(model, training.lora, LayerHalf::feed_forward));
  const StateBytes states = state_bytes(training, scenario.software);
  const double saved = moment_bytes(training) - matrix_moment_bytes(training);
  return Bytes{parameters * (states.weights + states.optimizer) - saved * matrices_of(model)};
}

Job make_job(const Scenario& scenario, const Report& report, const std::vector<double>& steps) {
  WT_EXPECT(report.iteration_time > Seconds{});
  Job job;
  job.block = job_block_of(scenario);
  const Plan& plan = scenario.plan;
  job.step_time = job.block.step_time.value_or(report.iteration_time);
  job.model.nodes = num_trays(scenario.nodes);
  job.gpus_per_node = plan.gpus_per_node / scenario.nodes.front().trays;
  job.gpus = job.model.nodes * job.gpus_per_node;
  job.ranks = plan.num_ranks();
  job.tokens_per_step = static_cast<double>(plan.training.global_batch) * scenario.model.sequence;
  JobModel& model = job.model;
  model.steps = job.block.steps > 0
                    ? job.block.steps
                    : static_cast<std::int64_t>(std::ceil(job.block.tokens / job.tokens_per_step));
  model.step = step_times(job, plan);
  // The fastest step is what steps take at full speed: none is faster than it.
  const double least = steps.empty() ? 1 : std::min(1.0, *std::ranges::min_element(steps));
  for (Ticks& step : model.step) step = std::llround(static_cast<double>(step) * least);
  for (const double factor : steps)
    model.noise.push_back(to_ticks(job.step_time * (factor - least)));
  model.start =
      to_ticks(job.block.start_time.value_or(measured_start_up(model.nodes)) + job.block.warm_up);
  model.detection = to_ticks(job.block.detection.value_or(crash_detection));
  model.hang = to_ticks(job.block.detection.value_or(hang_detection));
  model.hang_share = job.block.detection ? 0 : share_of_hangs;
  model.repair = to_ticks(job.block.repair);
  model.evaluation_every = job.block.evaluation_every;
  model.evaluation = to_ticks(job.block.evaluation_time);
  model.spare_nodes = job.block.spare_nodes;
  job.checkpoint = checkpoint_bytes(report.parameters, scenario);
  for (const FailingPart part : enumerators<FailingPart>())
    model.failures_per_tick[part] = job.block.failures_per_year[part] * parts_in(part, scenario) /
                                    (seconds_per_year * ticks_per_second);
  set_checkpoints(job, scenario);
  refuse_endless(model);
  job.shares = shares_of(report.breakdown);
  job.assumptions = assumptions_of(job, scenario);
  return job;
}

std::optional<JobModel> with_longer_steps(JobModel model, double factor) {
  for (std::vector<Ticks>* times : {&model.step, &model.noise})
    for (Ticks& time : *times) time = to_ticks(to_seconds(time) * factor);
  if (time_without_failures(model) < Seconds{most_seconds}) return model;
  return std::nullopt;
}

Seconds young_interval(Seconds stall, Seconds mtbf) {
  return Seconds{std::sqrt(2 * (stall / Seconds{1}) * (mtbf / Seconds{1}))};
}

Seconds daly_interval(Seconds stall, Seconds mtbf) {
  if (stall >= 2 * mtbf) return mtbf;
  const double half = stall / (2 * mtbf);
  constexpr double third = 1.0 / 3, ninth = 1.0 / 9;
  return young_interval(stall, mtbf) * (1 + third * std::sqrt(half) + ninth * half) - stall;
}

const char* const start_up_source =
    "measured: MLPerf Training 3.1, GPT-3 on DGX H100, 64 to 1,344 nodes of one site; a straight "
    "line beyond";

Seconds measured_start_up(int nodes) {
  const double at = nodes;
  if (at <= measured.front().nodes) return Seconds{measured.front().seconds};
  std::size_t i = 1;
  while (i + 1 < measured.size() && measured[i].nodes < at) ++i;
  // The last two points are 64 nodes apart: beyond them, the line from 768 nodes on is steadier.
  constexpr std::size_t steady = 3;
  const Measured from = at > measured.back().nodes ? measured[steady] : measured[i - 1];
  const Measured to = measured[i];
  return Seconds{from.seconds +
                 (to.seconds - from.seconds) * (at - from.nodes) / (to.nodes - from.nodes)};
}

}  // namespace windtunnel
