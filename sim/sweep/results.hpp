#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "report/ordering.hpp"
#include "sweep/results_folder.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// The rows with their speed-ups over the sweep's baseline; as they are where it has none, or where the baseline was not simulated.
PartRows with_speedups(PartRows rows, const Sweep& sweep);

/// A point of a sweep whose job has a length and a price.
struct FrontPoint {
  std::size_t point = 0;
  PricedPoint priced;  ///< called by its label, or its swept values
};

/// Points that fit and have days and a cost, by number; those on the Pareto front are marked. Empty where no row has both.
std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns);

/// The rows as a table: point, id, label where some row has one, a column a swept pointer, ok, then the figures, failure and error, and what the sweep `asked` for. Absent
/// values are empty.
std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked = {});

/// Writes DIR/results.jsonl, results.csv and sweep.svg from what DIR/parts holds, each whole or not at all; and once or twice more where
/// somebody added rows in the meantime, but never for as long as they come. Returns the rows. The picture is left out, and an old one removed, when there is nothing to draw.
PartRows merge_results(const std::filesystem::path& directory, const Sweep& sweep);

}  // namespace windtunnel
