#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <set>
#include <string>
#include <vector>

#include "calibrate/calibrate_command.hpp"
#include "calibrate/calibration_points.hpp"
#include "evidence/measurement_set.hpp"
#include "memory/memory_correction.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// One reading of a GPU's memory next to the account of its stage.
struct MemoryRow {
  std::string id, group;  ///< rows of a group are held out together
  std::vector<double> features;
  double measured = 0, accounted = 0;  ///< bytes
};

/// Rows of one quantity on one stack: readings of the allocator by stage (the mean over its ranks), or the fullest GPU's.
struct MemoryRows {
  std::string quantity;  ///< "allocated", "reserved" or "nvidia-smi"
  std::string software;
  std::vector<MemoryRow> rows;
};

/// Every quantity that the sets have, with the account of each run. A group is the point's, or the point itself where it names none.
/// Readings of the first step are left out.
std::vector<MemoryRows> read_memory_rows(const std::vector<MeasurementSet>& sets,
                                         const Library& library, const Overrides& overrides = {});

/// The groups that the rows belong to.
std::set<std::string> groups_of(const MemoryRows& rows);

/// A network of six units trained on ln(measured / accounted) of the rows: least squares with a penalty on the weights, Adam
/// (Kingma & Ba, ICLR 2015, arXiv:1412.6980) with all rows in every step, always as many steps from weights that depend on `seed`
/// alone. Inputs are scaled to mean 0 and deviation 1.
MemoryCorrection train_memory_correction(const std::vector<MemoryRow>& rows, std::uint64_t seed);

/// The correction trained on all rows, with its errors, and the account's, on rows that were held out a group at a time. At least
/// two groups.
MemoryCorrection calibrate_memory(const MemoryRows& rows, std::uint64_t seed);

/// `windtunnel calibrate --memory`: trains a correction on each quantity that the sets have, and prints its errors on runs held out
/// next to those of the account alone. To `file` goes the last of allocated, reserved, nvidia-smi that there is. Returns the exit code:
/// 0, or 1 when no set has two groups of readings. InputError when the readings are of more than one stack and a file is asked for.
int run_memory_calibration(const CalibrateRequest& request, const std::filesystem::path& file,
                           const Library& library, std::ostream& out, std::ostream& messages);

}  // namespace windtunnel
