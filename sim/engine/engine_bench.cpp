// How fast programs are played. Every repetition is a process of its own (SimGrid: one engine in a
// process); its time and peak memory are measured there, from the empty engine to the last event.
//
//   windtunnel_engine_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <stdexcept>

#include "engine/testing.hpp"

namespace windtunnel::testing {
namespace {

/// A pipeline over nodes whose links and speeds differ, so that few events coincide; then a ring of
/// gradients for each stage. A message of 50 MB takes 2 ms to 4 ms, beside 30 ms of computing.
struct Workload {
  ProgramSet set;
  Network network;
};

void add_gradient_rings(Workload& workload, const PipelineShape& shape,
                        const std::vector<PathId>& up, const std::vector<PathId>& down) {
  const auto num_stages = static_cast<std::size_t>(shape.stages);
  for (std::size_t stage = 0; stage < num_stages; ++stage) {
    Collective ring;
    ring.latency = 100_us;
    for (std::size_t device = stage; device < up.size(); device += num_stages) {
      ring.members.emplace_back(device);
      ring.flows.push_back({up[device], down[(device + num_stages) % up.size()], 1_GB});
      workload.set.devices[device].collectives.emplace_back(stage);
    }
    workload.set.collectives.push_back(ring);
    StageProgram& program = workload.set.programs[stage];
    program.num_collectives = 1;
    program.streams[static_cast<std::size_t>(Stream::compute)].push_back(collective(0));
  }
}

Workload make_workload(const PipelineShape& shape, Bytes message) {
  constexpr unsigned seed = 1;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> link_speed(0.5, 1.0);
  std::uniform_real_distribution<double> device_speed(0.9, 1.1);
  Workload workload{make_pipeline(shape), {}};
  ProgramSet& set = workload.set;
  set.message_bytes = {message};
  std::vector<PathId> up, down;
  for (std::size_t d = 0; d < set.devices.size(); ++d) {
    const double slowness = device_speed(random);
    set.work.push_back(work(10_ms * slowness));
    set.work.push_back(work(20_ms * slowness));
    Network& network = workload.network;
    up.push_back(network.add_path({network.add_link(25_GBps * link_speed(random), "up")}));
    down.push_back(network.add_path({network.add_link(25_GBps * link_speed(random), "down")}));
  }
  for (Channel& channel : set.channels) {
    channel.in_node = false;
    channel.latency = 5_us;
    channel.up = up[channel.from.index()];
    channel.down = down[channel.to.index()];
  }
  add_gradient_rings(workload, shape, up, down);
  return workload;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Measured {
  double wall = 0;       ///< seconds, engine and platform included
  double simulated = 0;  ///< seconds
  double computes = 0, flows = 0;
  double peak_memory = 0;  ///< MB
};

std::array<double, 4> measure_here(const Workload& workload, EngineKind kind) {
  const auto start = std::chrono::steady_clock::now();
  const auto engine = make_engine(kind, workload.network);
  const Played played = play(workload.set, *engine);
  const double wall = seconds_since(start);
  const auto messages = static_cast<double>(played.activities - workload.set.collectives.size());
  const auto flows = static_cast<double>(played.flows);
  const auto ring_flows = static_cast<double>(workload.set.devices.size());
  return {wall, played.end / 1_s, messages - (flows - ring_flows), flows};
}

Measured measure(const PipelineShape& shape, Bytes message, EngineKind kind) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const std::array<double, 4> result = measure_here(make_workload(shape, message), kind);
    _exit(write(ends[1], result.data(), sizeof result) == sizeof result ? 0 : 1);
  }
  std::array<double, 4> result{};
  const bool complete = read(ends[0], result.data(), sizeof result) == sizeof result;
  close(ends[0]);
  close(ends[1]);
  rusage usage{};
  wait4(child, nullptr, 0, &usage);
  if (!complete) throw std::runtime_error("the child failed");
  constexpr double kilobytes_per_megabyte =
      1e3;  // ru_maxrss counts 1024 bytes; 2 % are not worth the precision
  return {result[0], result[1], result[2], result[3],
          static_cast<double>(usage.ru_maxrss) / kilobytes_per_megabyte};
}

void play_pipeline(benchmark::State& state, EngineKind kind) {
  PipelineShape shape;
  shape.stages = static_cast<int>(state.range(0));
  shape.replicas = static_cast<int>(state.range(1));
  shape.microbatches = static_cast<int>(state.range(2));
  const Bytes message = 1_MB * static_cast<double>(state.range(3));
  Measured last;
  for (auto _ : state) {
    last = measure(shape, message, kind);
    state.SetIterationTime(last.wall);
  }
  state.counters["computes"] = last.computes;
  state.counters["flows"] = last.flows;
  state.counters["simulated_s"] = last.simulated;
  state.counters["peak_MB"] = last.peak_memory;
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"pipeline", "data", "microbatches", "message_MB"});
  benchmark->Args({8, 8, 24, 50})->Args({8, 8, 256, 50})->Args({8, 8, 32768, 50});
  benchmark->Args({8, 8, 64, 50})->Args({64, 6, 64, 50})->Args({64, 48, 64, 50});
  benchmark->Args({64, 256, 64, 50});  // 16,384 devices: 131,072 GPUs at eight a device
  benchmark->Args({64, 6, 512, 50});
  benchmark->Args({64, 6, 512, 400});  // bound by communication: most messages meet others
  benchmark->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(play_pipeline, heap, EngineKind::heap)->Apply(sizes);
BENCHMARK_CAPTURE(play_pipeline, simgrid, EngineKind::simgrid)->Apply(sizes);

}  // namespace
}  // namespace windtunnel::testing

BENCHMARK_MAIN();
