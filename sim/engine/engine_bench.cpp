// Speed of simulating programs. Every repetition is a process of its own (SimGrid: one engine in a
// process); its CPU time and peak memory are measured there, from the empty engine to the last event.
//
//   windtunnel_engine_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>

#include "engine/testing.hpp"

namespace windtunnel::testing {
namespace {

/// A pipeline over nodes whose links and speeds differ, so that few events coincide; then a ring of
/// gradients for each stage. A message of 50 MB takes 2 ms to 4 ms, compared with 30 ms of computing.
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

/// Messages and gradients from device to device over their paths.
void join(Workload& workload, const PipelineShape& shape, const std::vector<PathId>& up,
          const std::vector<PathId>& down) {
  for (Channel& channel : workload.set.channels) {
    channel.in_node = false;
    channel.latency = 5_us;
    channel.up = up[channel.from.index()];
    channel.down = down[channel.to.index()];
  }
  add_gradient_rings(workload, shape, up, down);
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
  join(workload, shape, up, down);
  return workload;
}

/// As above, with equal computing and one network card twenty times slower than the others.
Workload make_slow_link(const PipelineShape& shape) {
  Workload workload{make_pipeline(shape), {}};
  set_compute(workload.set, 10_ms, 20_ms);
  workload.set.message_bytes = {50_MB};
  std::vector<PathId> up, down;
  for (std::size_t d = 0; d < workload.set.devices.size(); ++d) {
    const BytesPerSecond rate = d == 0 ? 25_GBps / 20 : 25_GBps;
    up.push_back(workload.network.add_path({workload.network.add_link(rate, "up")}));
    down.push_back(workload.network.add_path({workload.network.add_link(rate, "down")}));
  }
  join(workload, shape, up, down);
  return workload;
}

/// Leaf switches of 16 nodes of eight GPUs, whose uplinks carry a quarter of what their network cards carry; the cards differ, and the
/// devices are spread over the nodes at random. Messages and gradients as GPT-39B has them, `tensor` GPUs a device: nearly every message
/// crosses two uplinks that hundreds share.
Workload make_tapered(const PipelineShape& shape, int tensor) {
  constexpr std::size_t gpus_per_leaf = 128;
  constexpr double oversubscription = 4;
  const auto devices_per_leaf = gpus_per_leaf / static_cast<std::size_t>(tensor);
  const double share = tensor / 4.0;  // of a node's cards, and of the work of four GPUs
  std::mt19937 random(1);
  std::uniform_real_distribution<double> card_speed(0.5, 1.0);
  Workload workload{make_pipeline(shape), {}};
  set_compute(workload.set, 170_ms / share, 340_ms / share);
  workload.set.message_bytes = {134_MB};
  Network& network = workload.network;
  std::vector<std::size_t> devices(workload.set.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  std::shuffle(devices.begin(), devices.end(), random);
  std::vector<PathId> up(devices.size()), down(devices.size());
  for (std::size_t first = 0; first < devices.size(); first += devices_per_leaf) {
    const std::size_t end = std::min(devices.size(), first + devices_per_leaf);
    std::vector<BytesPerSecond> rates;
    BytesPerSecond sum{};
    for (std::size_t i = first; i < end; ++i) {
      rates.push_back(42_GBps * share * card_speed(random));
      sum += rates.back();
    }
    const LinkId leaf_up = network.add_link(sum / oversubscription, "leaf up");
    const LinkId leaf_down = network.add_link(sum / oversubscription, "leaf down");
    for (std::size_t i = first; i < end; ++i) {
      const BytesPerSecond rate = rates[i - first];
      up[devices[i]] = network.add_path({network.add_link(rate, "up"), leaf_up});
      down[devices[i]] = network.add_path({leaf_down, network.add_link(rate, "down")});
    }
  }
  join(workload, shape, up, down);
  return workload;
}

/// That this process has had. Not wall time: other processes would lengthen it.
double cpu_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Measured {
  double cpu = 0;        ///< seconds, engine and platform included
  double simulated = 0;  ///< seconds
  double computes = 0, flows = 0;
  double peak_memory = 0;  ///< MB
};

std::array<double, 4> measure_here(const Workload& workload, MakeEngine kind) {
  const double start = cpu_seconds();
  const auto engine = kind(workload.network);
  const EngineResult result = simulate_programs(workload.set, *engine);
  const double cpu = cpu_seconds() - start;
  const auto messages = static_cast<double>(result.activities - workload.set.collectives.size());
  const auto flows = static_cast<double>(result.flows);
  const auto ring_flows = static_cast<double>(workload.set.devices.size());
  return {cpu, result.end / 1_s, messages - (flows - ring_flows), flows};
}

/// All members of groups send to all others of theirs at once, over cards that differ.
class AllToAll final : public EventHandler {
 public:
  AllToAll(int num_groups, int size) : num_groups_(num_groups), size_(size) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> card_speed(0.5, 1.0);
    for (int i = 0; i < num_groups * size; ++i) {
      up_.push_back(network_.add_path({network_.add_link(25_GBps * card_speed(random), "up")}));
      down_.push_back(network_.add_path({network_.add_link(25_GBps * card_speed(random), "down")}));
    }
  }
  void on_event(std::uint64_t) override {}

  std::array<double, 4> measure_here(MakeEngine kind) {
    const double start = cpu_seconds();
    const auto engine = kind(network_);
    for (int group = 0; group < num_groups_; ++group) start_group(group, *engine);
    engine->run(*this);
    return {cpu_seconds() - start, engine->now() / 1_s, 0,
            static_cast<double>(engine->num_flows())};
  }

 private:
  void start_group(int group, Engine& engine) {
    for (int from = group * size_; from < (group + 1) * size_; ++from)
      for (int to = group * size_; to < (group + 1) * size_; ++to)
        if (from != to)
          engine.start_flow(up_[static_cast<std::size_t>(from)],
                            down_[static_cast<std::size_t>(to)], 10_MB, 0);
  }

  int num_groups_, size_;
  Network network_;
  std::vector<PathId> up_, down_;
};

/// Result of the child process that simulates, and the memory it took.
Measured measure(const std::function<std::array<double, 4>()>& measure_in_child) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    const std::array<double, 4> result = measure_in_child();
    _exit(write(ends[1], result.data(), sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  std::array<double, 4> result{};
  const bool complete = read(ends[0], result.data(), sizeof result) == sizeof result;
  close(ends[0]);
  rusage usage{};
  wait4(child, nullptr, 0, &usage);
  if (!complete) throw std::runtime_error("the child failed");
  constexpr double kilobytes_per_megabyte =
      1e3;  // ru_maxrss counts 1024 bytes; 2 % are not worth the precision
  return {result[0], result[1], result[2], result[3],
          static_cast<double>(usage.ru_maxrss) / kilobytes_per_megabyte};
}

void report(benchmark::State& state, const std::function<std::array<double, 4>()>& in_child) {
  Measured last;
  for (auto _ : state) {
    last = measure(in_child);
    state.SetIterationTime(last.cpu);
  }
  state.counters["computes"] = last.computes;
  state.counters["flows"] = last.flows;
  state.counters["simulated_s"] = last.simulated;
  state.counters["peak_MB"] = last.peak_memory;
}

PipelineShape shape_of_arguments(const benchmark::State& state) {
  PipelineShape shape;
  shape.stages = static_cast<int>(state.range(0));
  shape.replicas = static_cast<int>(state.range(1));
  shape.microbatches = static_cast<int>(state.range(2));
  return shape;
}

void simulate_pipeline(benchmark::State& state, MakeEngine kind) {
  const Bytes message = 1_MB * static_cast<double>(state.range(3));
  report(state,
         [&] { return measure_here(make_workload(shape_of_arguments(state), message), kind); });
}
void simulate_tapered(benchmark::State& state, MakeEngine kind) {
  const auto tensor = static_cast<int>(state.range(3));
  report(state,
         [&] { return measure_here(make_tapered(shape_of_arguments(state), tensor), kind); });
}
void simulate_slow_link(benchmark::State& state, MakeEngine kind) {
  report(state, [&] { return measure_here(make_slow_link(shape_of_arguments(state)), kind); });
}
void simulate_all_to_all(benchmark::State& state, MakeEngine kind) {
  const auto groups = static_cast<int>(state.range(0)), size = static_cast<int>(state.range(1));
  report(state, [&] { return AllToAll(groups, size).measure_here(kind); });
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

BENCHMARK_CAPTURE(simulate_pipeline, heap, make_heap_engine)->Apply(sizes);
BENCHMARK_CAPTURE(simulate_pipeline, native, make_native_engine)->Apply(sizes);
BENCHMARK_CAPTURE(simulate_pipeline, simgrid, make_simgrid_engine)->Apply(sizes);

/// 512, 2,048, 8,192 and 16,384 GPUs at four and eight a device. SimGrid takes minutes for the last.
void tapered_sizes(benchmark::internal::Benchmark* benchmark, bool all) {
  benchmark->ArgNames({"pipeline", "data", "microbatches", "tensor"});
  for (const int tensor : {4, 8})
    for (const int gpus : {512, 2048, 8192, 16384})
      if (all || gpus <= 2048) benchmark->Args({8, gpus / 8 / tensor, 48, tensor});
  benchmark->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}
void all_tapered_sizes(benchmark::internal::Benchmark* benchmark) {
  tapered_sizes(benchmark, true);
}
void small_tapered_sizes(benchmark::internal::Benchmark* benchmark) {
  tapered_sizes(benchmark, false);
}
/// 102,400 GPUs at eight a device.
void slow_link_size(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"pipeline", "data", "microbatches"})->Args({8, 1600, 24});
  benchmark->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}
void all_to_all_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"groups", "size"})->Args({1, 64})->Args({64, 64});
  benchmark->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}
void one_all_to_all(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"groups", "size"})->Args({1, 64});
  benchmark->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(simulate_tapered, heap, make_heap_engine)->Apply(all_tapered_sizes);
BENCHMARK_CAPTURE(simulate_tapered, native, make_native_engine)->Apply(all_tapered_sizes);
BENCHMARK_CAPTURE(simulate_tapered, simgrid, make_simgrid_engine)->Apply(small_tapered_sizes);
BENCHMARK_CAPTURE(simulate_slow_link, heap, make_heap_engine)->Apply(slow_link_size);
BENCHMARK_CAPTURE(simulate_slow_link, native, make_native_engine)->Apply(slow_link_size);
BENCHMARK_CAPTURE(simulate_slow_link, simgrid, make_simgrid_engine)->Apply(slow_link_size);
BENCHMARK_CAPTURE(simulate_all_to_all, heap, make_heap_engine)->Apply(all_to_all_sizes);
BENCHMARK_CAPTURE(simulate_all_to_all, native, make_native_engine)->Apply(all_to_all_sizes);
BENCHMARK_CAPTURE(simulate_all_to_all, simgrid, make_simgrid_engine)->Apply(one_all_to_all);

}  // namespace
}  // namespace windtunnel::testing

BENCHMARK_MAIN();
