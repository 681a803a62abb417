// Moves of a placement search per second: a move is drawn, the estimate of the iteration follows it, and
// it is taken back or kept.
//
//   windtunnel_search_bench --benchmark_filter=placement_moves
#include <benchmark/benchmark.h>

#include "core/testing.hpp"
#include "search/placement_fixtures.hpp"
#include "search/placement_search.hpp"

namespace windtunnel {
namespace {

Scenario shipped(const char* name, int tensor, int data) {
  const std::filesystem::path root = source_dir();
  ReadOptions options;
  options.overrides = {{"/parallel/tensor", std::to_string(tensor)},
                       {"/parallel/data", std::to_string(data)}};
  return read_scenario(root / "scenarios" / name, Library{root}, options);
}

void anneal_moves(benchmark::State& state, const Scenario& scenario) {
  constexpr int moves = 2000;
  PlacementObjective objective(scenario);
  const std::vector<int> own = objective.slots();
  std::uint64_t seed = 0;
  for (auto _ : state) {
    objective.place(own);
    benchmark::DoNotOptimize(anneal(objective, {moves, seed++}).value);
  }
  state.SetItemsProcessed(state.iterations() * moves);
  state.counters["units"] = objective.num_units();
}

void placement_moves_16_nodes(benchmark::State& state) {
  anneal_moves(state, placement_cases::pipette(static_cast<int>(state.range(0))));
}
BENCHMARK(placement_moves_16_nodes)->ArgName("pipeline")->Arg(2)->Arg(4)->Arg(8);

void placement_moves_64_nodes(benchmark::State& state) {
  anneal_moves(state, shipped("gpt-39b-512xa100.json", 8, 8));
}
BENCHMARK(placement_moves_64_nodes);

void placement_moves_4_units_a_node(benchmark::State& state) {
  anneal_moves(state, shipped("gpt-39b-512xa100.json", 2, 32));
}
BENCHMARK(placement_moves_4_units_a_node);

}  // namespace
}  // namespace windtunnel

BENCHMARK_MAIN();
