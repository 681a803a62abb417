#pragma once

#include <filesystem>
#include <string>

#include "sweep/results.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Options of a sweep's page.
struct SweepPageOptions {
  std::filesystem::path directory;  ///< of the results
  std::string version;
};

/// How many points the page's table holds, and how many of these it shows before it is asked for more.
inline constexpr std::size_t most_page_rows = 5000, first_page_rows = 100;

/// The page of `sweep --report`: one HTML file that needs no network: the best point, curves, where the time goes along them, a table of
/// the points that can be sorted, failed points with their reasons, the scenario with its sweep. The document of `sweep --json` stands in it
/// under the id "report", the rows of results.jsonl under "sweep-points". Up to ten points are simulated once more, for their breakdown.
std::string sweep_page(const Sweep& sweep, const PartRows& rows, const SweepPageOptions& options);

}  // namespace windtunnel
