#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "sweep/points.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Points by the id of their scenario: those of one list differ in swept values that change nothing.
using SameScenarios = std::vector<std::vector<std::size_t>>;

/// The points that share an id with another, in the order of the first of each list.
SameScenarios same_scenarios(const PartRows& rows);

/// Note for people about points that are the same scenario; empty if all differ:
///   96 points are 6 different scenarios
///     points 0 and 1 differ in /parallel/virtual_pipeline (1, 2), which changes nothing
std::string same_text(const Sweep& sweep, const PartRows& rows);

/// The rows from the best to the worst: what fits, by the sweep's objective, then what does not fit in memory, then what failed. Those
/// that are alike in this are in the order of the points.
struct RankedRows {
  std::vector<const Row*> rows;
  std::size_t fitting = 0, too_large = 0, failed = 0;

  std::size_t ok() const { return fitting + too_large; }
};
RankedRows ranked_rows(const Sweep& sweep, const PartRows& rows);

/// Words for the order by the objective: "Most tokens a second", "Least cost of a token".
const char* order_words(Objective objective);

/// Summary of a sweep, for people:
///   12 points: 10 done, 2 failed
///   …
std::string sweep_text(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory);
/// The same as a JSON document.
std::string sweep_json(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory);

/// The baseline of speed-ups, or the reason why there are none; empty for a sweep without a baseline.
std::string baseline_text(const Sweep& sweep, const PartRows& rows);

/// "12 combinations, 2 excluded, 1 included"
std::string origins_text(const SweepPoints& points);
/// The points that would be done, a line each, with what is wrong with those that cannot.
std::string points_text(const Sweep& sweep);
std::string points_json(const Sweep& sweep);

/// Rows of the page's table, and rows that it shows before it is asked for more.
inline constexpr std::size_t most_page_rows = 5000, first_page_rows = 100;

/// The page of `sweep --report`: one HTML file that needs no network: the best point, curves, where the time goes along them, a table of
/// the points that can be sorted, failed points with their reasons, the scenario with its sweep. The document of `sweep --json` stands in it
/// under the id "report", the rows of results.jsonl under "sweep-points". Up to ten points are simulated once more, for their breakdown.
std::string sweep_page(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory, const std::string& version);

}  // namespace windtunnel
