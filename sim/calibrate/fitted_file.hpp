#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/calibrate.hpp"

namespace windtunnel {

/// Kind of file that takes the fitted numbers.
enum class FittedPart { device, software, platform };

/// A device, software or platform file, and the new one made of it.
struct FittedFile {
  FittedPart part = FittedPart::device;
  std::string name;  ///< of a built-in file, or a path
  std::filesystem::path out;
};

/// The file's text with the fitted numbers that belong into it, each with a source "fitted: <sets>
/// (…, leave one size out 5.3 %)", and the name of the new file; all else as it was, comments
/// excepted. InputError when none belongs into it, or when the file is not the one that the sets'
/// scenarios use.
std::string fitted_file_text(const FittedFile& file, const Calibration& calibration,
                             const std::vector<CalibrationPoint>& points, const Library& library);

/// True when the constant's number stands in a file of that kind.
bool stands_in(const FitConstant& constant, FittedPart part);

/// The whole option: "--device", …
const char* option_of(FittedPart part);

/// "fitted: vtrain-a100-multi-node (emax; 54 rows, 5.1 % in-sample, leave one size out 5.3 %)".
std::string provenance(const Calibration& calibration, const std::vector<CalibrationPoint>& points);

}  // namespace windtunnel
