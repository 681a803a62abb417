#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "calibrate/calibrate_command.hpp"

namespace windtunnel {

/// Command line of `calibrate --memory`.
struct MemoryCalibrationRequest {
  std::vector<std::string> sets;
  Overrides overrides;
  std::filesystem::path out;  ///< where the correction goes; empty: nowhere
  std::uint64_t seed = 0;
  CalibrationFormat format = CalibrationFormat::text;
};

/// `windtunnel calibrate --memory`: trains a correction on each quantity that the sets have, and prints its errors on runs held out
/// beside those of the account alone. To `out` goes the last of allocated, reserved, nvidia-smi that there is. Returns the exit code:
/// 0, or 1 when no set has two groups of readings. InputError when the readings are of more than one stack and a file is asked for.
int run_memory_calibration(const MemoryCalibrationRequest& request, const Library& library,
                           std::ostream& out, std::ostream& messages);

}  // namespace windtunnel
