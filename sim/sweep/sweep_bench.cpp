// Candidates per minute on one core: reading, building, simulating and writing, start-up included, compared with the heap
// engine in one process without contention, which is the speed limit. Times are CPU times of all processes together.
//
//   windtunnel_sweep_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/testing.hpp"
#include "engine/program_simulator.hpp"
#include "simulate/built_scenario.hpp"
#include "sweep/pool.hpp"
#include "sweep/results.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace {

/// GPT 39B on 512 GPUs, pipeline 8 x data 8, 24 to 72 microbatches, 48 in the mean: 11.7 k activities.
constexpr const char* scenario_text = R"({
  "version": 1, "model": "gpt-39b", "platform": "a100-80gb-4hdr", "nodes": 64,
  "software": "megatron-deepspeed-2021",
  "training": {"global_batch": 1536, "micro_batch": 4, "precision": "fp16", "recompute": "full"},
  "parallel": {"tensor": 8, "pipeline": 8, "data": 8},
  "sweep": {"matrix": {
    "/training/global_batch": [768, 1024, 1280, 1536, 1792, 2048, 2304],
    "/training/recompute": ["full", "none"],
    "/platform/node_types/0/nic_rate": ["50 Gbps", "75 Gbps", "100 Gbps", "125 Gbps", "150 Gbps", "175 Gbps",
      "200 Gbps", "225 Gbps", "250 Gbps", "275 Gbps", "300 Gbps", "325 Gbps", "350 Gbps", "375 Gbps", "400 Gbps"]}}})";

double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    constexpr double per_microsecond = 1e-6;
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * per_microsecond;
  }
  return sum;
}

/// Counts what was done in `seconds` of CPU time.
void tell(benchmark::State& state, double seconds, std::size_t points) {
  constexpr double minute = 60;
  state.SetIterationTime(seconds);
  state.counters["per_minute"] = static_cast<double>(points) / seconds * minute;
  state.counters["ms_each"] = seconds * 1e3 / static_cast<double>(points);
}

void native(benchmark::State& state) {
  for (auto _ : state) {
    const TemporaryFolder folder;
    const auto file = folder.write("bench.json", scenario_text);
    const double start = cpu_seconds();
    const Sweep sweep(file, Library{source_dir()}, {});
    PoolTask task;
    task.directory = folder.path();
    for (std::size_t point = 0; point < sweep.points().size(); ++point)
      task.points.push_back(point);
    run_pool(sweep, task);
    tell(state, cpu_seconds() - start, sweep.points().size());
    const PartRows rows = read_parts(folder.path(), sweep);
    if (rows.by_point.size() != sweep.points().size() ||
        std::ranges::any_of(rows.by_point, [](const auto& each) { return !each.second.ok; }))
      state.SkipWithError("points failed");
  }
}

void heap(benchmark::State& state) {
  for (auto _ : state) {
    const TemporaryFolder folder;
    const auto file = folder.write("bench.json", scenario_text);
    const double start = cpu_seconds();
    const Sweep sweep(file, Library{source_dir()}, {});
    for (std::size_t point = 0; point < sweep.points().size(); ++point) {
      const BuiltPrograms built = build(sweep.scenario(point)).programs;
      const auto engine = make_heap_engine(built.network);
      benchmark::DoNotOptimize(simulate_programs(built.programs, *engine, nullptr).end);
    }
    tell(state, cpu_seconds() - start, sweep.points().size());
  }
}

BENCHMARK(native)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(heap)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace windtunnel

BENCHMARK_MAIN();
