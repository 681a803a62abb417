#pragma once

#include <optional>
#include <string>
#include <vector>

#include "importers/bandwidth_table.hpp"
#include "importers/importer.hpp"

namespace windtunnel {

/// The table of rates that an import takes from a file.
struct MeasuredTable {
  RateTable table;
  std::string tool;                  ///< what wrote it: "mpiGraph v1.5, Send table"
  std::optional<double> difference;  ///< median of |a/b - 1| to the other table of the file
};

/// Reads a log of mpiGraph or a table of comma-separated values; `notes` gets what its reader should know. InputError where it is
/// neither, or does not have the table that --table asks for.
MeasuredTable read_measured_table(const ImportRequest& request, std::vector<std::string>& notes);

}  // namespace windtunnel
