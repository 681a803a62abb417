#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/testing.hpp"
#include "platform/platform.hpp"
#include "scenario/scenario.hpp"
#include "scenario/testing.hpp"
#include "search/placement_search.hpp"
#include "simulate/simulate.hpp"

/// Fixtures of the tests and the study of placements.
namespace windtunnel::placement_cases {

inline Scenario read_text(const std::string& text, const Overrides& overrides = {}) {
  ReadOptions options;
  options.overrides = overrides;
  options.left = LeftToCaller::neighbours_and_placement;
  return testing::read_text_with(options, text);
}

/// GPT 8.1B on the 16 nodes that Pipette measured, a tensor group a node.
inline Scenario pipette(int pipeline,
                        std::vector<std::pair<std::string, std::string>> overrides = {}) {
  overrides.insert(overrides.begin(), {"/parallel/pipeline", std::to_string(pipeline)});
  return read_text(R"({
      "model": {"name": "gpt-8.1b", "layers": 64, "hidden": 3072, "heads": 24, "sequence": 1024, "vocab": 51200},
      "platform": "pipette-a100-hdr", "nodes": 16,
      "training": {"global_batch": 128, "micro_batch": 4, "precision": "fp16"},
      "parallel": {"tensor": 8}})",
                   std::move(overrides));
}

/// The same on fewer nodes, with layers and batch to suit any number of stages and pipelines.
inline Scenario pipette_part(int nodes, int pipeline) {
  return pipette(pipeline, {{"/nodes", std::to_string(nodes)},
                            {"/model/layers", std::to_string(4 * pipeline)},
                            {"/training/global_batch", std::to_string(32 * (nodes / pipeline))}});
}

/// Every pair of nodes at one rate, but for those to, from or between the nodes of `slow`, which have a third of it.
inline Scenario with_slow_nodes(Scenario scenario, const std::vector<int>& slow) {
  const BytesPerSecond rate = 18.5_GBps;  // of a rail; about what Pipette measured
  auto& rows = scenario.platform.matrix->rate;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j) rows[i][j] = rate;
  for (const int node : slow)
    for (std::size_t other = 0; other < rows.size(); ++other)
      rows[static_cast<std::size_t>(node)][other] = rows[other][static_cast<std::size_t>(node)] =
          rate / 3;
  return scenario;
}

/// The measured links with each node's slowest, which mpiGraph's own phases made, at the median of its links.
inline Scenario without_phase_effect(Scenario scenario) {
  auto& rows = scenario.platform.matrix->rate;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::size_t> others;
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (j != i) others.push_back(j);
    std::sort(others.begin(), others.end(),
              [&](std::size_t a, std::size_t b) { return rows[i][a] < rows[i][b]; });
    rows[i][others.front()] = rows[i][others[others.size() / 2]];
  }
  return scenario;
}

/// GPT-2 of AMP's trials on its mixed cluster, a GPU a stage.
inline Scenario on_amp_mixed(int pipeline) {
  return read_text(R"({
      "model": {"layers": 24, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 52256},
      "platform": "aws-t4-v100-mixed", "nodes": 4, "training": {"global_batch": 32, "micro_batch": 1},
      "parallel": {}})",
                   {{"/parallel/pipeline", std::to_string(pipeline)}});
}

/// The scenario's simulated time with its devices (a node each) on these nodes.
inline Seconds simulated_at(const Scenario& scenario, const std::vector<int>& nodes) {
  PlacementResult result;
  result.verdict = PlacementResult::Verdict::found;
  result.placement = placement_of(scenario.plan, nodes);
  return simulate(with_placement(scenario, result)).report.iteration_time;
}

/// The best of all arrangements, each tried once: n! of them.
inline Annealed try_all(PlacementObjective& objective) {
  std::vector<int> slots(static_cast<std::size_t>(objective.num_units()));
  std::iota(slots.begin(), slots.end(), 0);
  objective.place(slots);
  Annealed best{slots, objective.value()};
  while (std::next_permutation(slots.begin(), slots.end())) {
    std::vector<std::pair<int, int>> changes;
    for (std::size_t unit = 0; unit < slots.size(); ++unit)
      if (slots[unit] != objective.slots()[unit])
        changes.emplace_back(static_cast<int>(unit), slots[unit]);
    objective.move(changes);
    if (objective.value() < best.value) best = {slots, objective.value()};
  }
  objective.place(best.slots);
  return best;
}

}  // namespace windtunnel::placement_cases
