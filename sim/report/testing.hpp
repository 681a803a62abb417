#pragma once

#include "engine/program_simulator.hpp"
#include "report/comparison.hpp"
#include "report/report.hpp"
#include "report/report_json.hpp"
#include "timeline/breakdown.hpp"
#include "timeline/timeline.hpp"

/// A world small enough to check by hand, for the tests of this folder.
namespace windtunnel::testing {

/// An op of a hand-made program.
inline Op op(OpKind kind, Phase phase, std::uint32_t microbatch, std::uint32_t slot = 0,
             std::uint16_t work = 0) {
  Op result;
  result.kind = kind;
  result.phase = phase;
  result.traffic = phase == Phase::gradient         ? Traffic::pipeline_backward
                   : phase == Phase::embedding_sync ? Traffic::embedding_sync
                                                    : Traffic::pipeline_forward;
  result.microbatch = microbatch;
  result.slot = slot;
  result.work = work;
  return result;
}

/// Two stages of eight GPUs each, two microbatches, 1F1B. In microseconds: forward 3 (2 computing,
/// 1 tensor-parallel), backward 6 (4 and 2), a message 1, embedding 2, optimizer 1.
///
///   us       0  3  4  6  7    13 14 16   20 22 23    29 31 32
///   stage 0  [F0|F1   ]wait      [B0    ]wait  [B1   ][e ][o]
///   stage 1  wait  [F0][B0   ][F1   |B1     ]wait ...  [e ][o]
inline ProgramSet two_stage_programs() {
  enum : std::uint16_t { forward, backward, optimizer };
  const auto compute = [](Phase phase, std::uint32_t i, std::uint16_t work) {
    return op(OpKind::compute, phase, i, 0, work);
  };
  const Op sync = op(OpKind::collective, Phase::embedding_sync, 0);
  const Op step = compute(Phase::optimizer, 0, optimizer);
  ProgramSet set;
  set.programs.resize(2);
  set.programs[0].streams[0] = {compute(Phase::forward, 0, forward),
                                op(OpKind::send, Phase::activation, 0, 0),
                                compute(Phase::forward, 1, forward),
                                op(OpKind::send, Phase::activation, 1, 1),
                                op(OpKind::receive, Phase::gradient, 0, 0),
                                compute(Phase::backward, 0, backward),
                                op(OpKind::receive, Phase::gradient, 1, 1),
                                compute(Phase::backward, 1, backward),
                                sync,
                                step};
  set.programs[1].streams[0] = {op(OpKind::receive, Phase::activation, 0, 0),
                                compute(Phase::forward, 0, forward),
                                compute(Phase::backward, 0, backward),
                                op(OpKind::send, Phase::gradient, 0, 0),
                                op(OpKind::receive, Phase::activation, 1, 1),
                                compute(Phase::forward, 1, forward),
                                compute(Phase::backward, 1, backward),
                                op(OpKind::send, Phase::gradient, 1, 1),
                                sync,
                                step};
  for (StageProgram& program : set.programs) {
    program.num_slots = 2;
    program.num_collectives = 1;
  }
  set.programs[0].targets = {StageId{1}};
  set.programs[1].targets = {StageId{0}};
  set.devices = {{0, 0, {ChannelId{0}}, {CollectiveId{0}}},
                 {1, 0, {ChannelId{1}}, {CollectiveId{0}}}};
  set.work = {{3_us, {2_us, 1_us, 0_s, 0_s, 0_s}},
              {6_us, {4_us, 2_us, 0_s, 0_s, 0_s}},
              {1_us, {0_s, 0_s, 0_s, 1_us, 0_s}}};
  set.message_bytes = {1_MB};
  set.channels.resize(2);
  set.channels[0].from = set.channels[1].to = DeviceId{0};
  set.channels[0].to = set.channels[1].from = DeviceId{1};
  for (Channel& channel : set.channels) channel.bandwidth = 1000_GBps;
  set.collectives.resize(1);
  set.collectives[0].members = {DeviceId{0}, DeviceId{1}};
  set.collectives[0].fixed = 2_us;
  set.collectives[0].traffic_bytes = 4_MB;
  return set;
}

inline Plan two_stage_plan() {
  Plan plan;
  plan.parallel.tensor = 8;
  plan.parallel.pipeline = 2;
  plan.training.global_batch = 8;
  plan.training.micro_batch = 4;
  plan.training.recompute = Recompute::full;
  plan.microbatches = 2;
  plan.num_nodes = 2;
  plan.gpus_per_node = 8;
  for (int stage = 0; stage < 2; ++stage) {
    PlanDevice device{0, StageId{stage}, 0, NodeId{stage}, {}, {}, {}};
    for (int i = 0; i < 8; ++i) {
      device.ranks.push_back(RankId{8 * stage + i});
      device.tensor_indices.push_back(i);
      device.gpus.push_back(i);
    }
    plan.devices.push_back(device);
  }
  return plan;
}

inline StageMemory stage_memory(int stage, Bytes activations) {
  StageMemory memory;
  memory.stage = StageId{stage};
  memory.weights = 2_GiB;
  memory.gradients = 4_GiB;
  memory.optimizer = 12_GiB;
  memory.activations = activations;
  memory.buffers = 3_GiB;
  memory.allocated = 21_GiB + activations;
  memory.reserved = memory.allocated * 1.25;
  memory.context = 1_GiB;
  memory.total = memory.reserved + memory.context;
  memory.required = memory.allocated + memory.context;
  memory.usable = 79_GiB;
  memory.activation_per_microbatch = 1_GiB;
  return memory;
}

/// Report of the small world's run.
inline Report small_report() {
  Report report;
  report.name = "small";
  report.version = "0.1.0";
  report.scenario_hash = "c0ffee";
  report.seed = 7;
  report.iteration_time = 32_us;
  report.samples_per_s = 250000;
  report.tokens_per_s = 512000000;
  report.model_flops_per_gpu = 120_TFLOPS;
  report.hardware_flops_per_gpu = 160_TFLOPS;
  report.causal_flops_per_gpu = 118_TFLOPS;
  report.mfu = 0.385;
  report.mfu_causal = 0.379;
  report.hfu = 0.513;
  report.breakdown.seconds = {12_us, 6_us, 2_us, 9_us, 0_s, 2_us, 0_s, 1_us, 0_s};
  report.memory.stages = {stage_memory(0, 2_GiB), stage_memory(1, 1_GiB)};
  report.memory.capacity = 80_GiB;
  report.memory.usable = 79_GiB;
  report.memory.max_total = report.memory.stages[0].total;
  report.traffic[0] = 16_MB;
  report.messages[0].uncompressed = 2;
  report.messages[1] = {1, 1};
  report.assumptions = {{"NIC efficiency", "0.9", "made up", Evidence::measured},
                        {"peak rate", "312 TFLOP/s", "made up", Evidence::datasheet},
                        {"launch floor", "0.9 ms", "made up", Evidence::fitted},
                        {"latency", "5 us", "made up", Evidence::assumed},
                        {"overhead", "20 ms", "made up", Evidence::assumed}};
  report.engine = "simgrid";
  report.activities = 20;
  report.wall = 0.25_s;
  report.model_name = "toy";
  report.platform_name = "two-nodes";
  report.software_name = "megatron-lm-2021";
  report.plan = two_stage_plan();
  report.parameters = 1.3e9;
  report.num_gpus = 16;
  return report;
}

/// A program set, simulated without contention.
struct SimulatedWorld {
  Timeline timeline;
  EngineResult result;
  std::vector<Breakdown> breakdowns;
};

inline SimulatedWorld simulate_alone(const ProgramSet& programs) {
  const Network network;
  const auto engine = make_heap_engine(network);
  TimelineListener timeline;
  BreakdownListener breakdown(programs.devices.size());
  ListenerPair both(timeline, breakdown);
  SimulatedWorld world;
  world.result = simulate_programs(programs, *engine, &both);
  world.timeline = timeline.timeline();
  for (std::size_t i = 0; i < programs.devices.size(); ++i)
    world.breakdowns.push_back(breakdown.of(DeviceId{i}));
  return world;
}

/// A side of a comparison that is known by its report alone.
inline ComparedRun run_of(const std::string& label, const Report& report) {
  return {label, report_value(report)};
}

}  // namespace windtunnel::testing
