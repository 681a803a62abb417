// Speed of searching plans: gpt-39b on 512 GPUs (all legal plans of tensor <= 8, any pipeline and data, microbatch <= 32)
// and gpt-530b on 2,240.
//   considered: every plan enumerated, laid out, accounted for memory and bounded; no simulation
//   ranked:     the whole search with the simulations that prove the table, several at once
//
//   windtunnel_search_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "search/rank.hpp"
#include "simulate/forked.hpp"

namespace windtunnel {
namespace {

Scenario shipped(const std::string& name) {
  const Library library = Library::find();
  return read_scenario(library.root / "scenarios" / (name + ".json"), library);
}

void search(benchmark::State& state, const std::string& name, const RankOptions& options) {
  const Scenario base = shipped(name);
  RankResult result;
  for (auto _ : state) result = rank_plans(base, options);
  state.counters["considered"] = static_cast<double>(result.considered);
  state.counters["bounded"] =
      static_cast<double>(result.considered - result.rejected_shape - result.rejected_memory);
  state.counters["simulated"] = static_cast<double>(result.simulated);
  state.counters["gap"] = result.gap;
  state.counters["candidates_per_second"] = benchmark::Counter(
      static_cast<double>(result.considered), benchmark::Counter::kIsIterationInvariantRate);
}

void considered(benchmark::State& state, const std::string& name) {
  RankOptions options;
  options.budget = 0;
  search(state, name, options);
}

void ranked(benchmark::State& state, const std::string& name) {
  RankOptions options;
  options.top = 20;
  options.at_once = default_at_once();
  search(state, name, options);
}

BENCHMARK_CAPTURE(considered, gpt_39b, "rank-gpt-39b-512xa100")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(considered, gpt_530b, "rank-gpt-530b-2240xa100")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(ranked, gpt_39b, "rank-gpt-39b-512xa100")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(ranked, gpt_530b, "rank-gpt-530b-2240xa100")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace windtunnel
