#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/parts.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// The rows with their speed-ups over the sweep's baseline; as they are where it has none, or where the baseline was not simulated.
PartRows with_speedups(PartRows rows, const Sweep& sweep);

/// The rows as a table: point, id, label where some row has one, a column a swept pointer, ok, then the figures, failure and error, and what the sweep `asked` for. Absent
/// values are empty.
std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked = {});

/// Writes DIR/results.jsonl, results.csv and sweep.svg from what DIR/parts holds, each whole or not at all; and once or twice more where
/// somebody added rows in the meantime, but never for as long as they come. Returns the rows. The picture is left out, and an old one removed, when there is nothing to draw.
PartRows merge_results(const std::filesystem::path& directory, const Sweep& sweep);

/// Writes DIR/manifest.json, or makes sure that the one which is there belongs to this very sweep and version. Throws InputError, with what to
/// do, when it does not, and EnvironmentError when it cannot be read or written.
///   {"schema": "windtunnel/sweep-manifest-v2", "name": …, "sweep_hash": …, "version": …, "points": 12}
void open_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                   const std::string& version);
/// The same for looking only: no folder is made. Throws EnvironmentError when there is no manifest.
void expect_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                     const std::string& version);

}  // namespace windtunnel
