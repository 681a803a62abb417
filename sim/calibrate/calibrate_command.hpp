#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibrate.hpp"
#include "calibrate/calibration_points.hpp"
#include "calibrate/draw_check.hpp"
#include "report/progress_line.hpp"
#include "report/summary_text.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// A calibration for people:
///
///   54 points of vtrain-a100-multi-node; 4 model sizes; 1924 simulations
///
///   constant  from  fitted    bounds            refits  weight
///   emax      0.83  0.8157  0.3 .. 1  0.8057 .. 0.8293    0.65  well identified
///
///   error                mean  median    90th   worst    bias  without the 3 largest
///   as given            5.1 %   2.2 %  13.2 %  38.2 %  -3.2 %  3.2 %
///   fitted, in-sample   …
///   leave one size out  …
///   random folds        …
///
///   left out  rows   mean    bias  emax
///   3.6B         9  3.0 %  +1.2 %  0.8145
///
/// The columns of refits are those without one model size each, or one fold where there is one size
/// only.
std::string calibration_text(const Calibration& calibration, const CalibrationPoints& points,
                             std::size_t num_predictions);

/// The same as one JSON document, windtunnel/calibration-v1, with errors as fractions.
JsonValue calibration_value(const Calibration& calibration, const CalibrationPoints& points,
                            std::size_t num_predictions);

/// [{"id", "why"}...] of rows that were left out.
JsonValue skipped_value(const std::vector<std::pair<std::string, std::string>>& skipped);

/// "+-3.1 %": of ln(constant).
std::string width_text(double width);

/// "well identified", or what is wrong with the constant.
std::string identification_text(const FittedConstant& fitted);

/// Explanation of a constant that ends at its bound: "emax ends at the upper bound of its range, 1 (range 0.3 to 1, …".
std::string bound_text(const FittedConstant& fitted);

/// The names of the sets, in the order of the points.
std::vector<std::string> set_names(const CalibrationPoints& points);

/// A device, software or platform file, and the new one made of it.
struct FittedFile {
  std::string option;  ///< by which it is given: --device, --software or --platform
  std::string name;    ///< of a built-in file, or a path
  std::filesystem::path out;
};

/// The file's text with the fitted numbers that belong into it, each with a source "fitted: <sets>
/// (…, leave one size out 5.3 %)", and the name of the new file; all else as it was, comments
/// excepted. InputError when none belongs into it, or when the file is not the one that the sets'
/// scenarios use.
std::string fitted_file_text(const FittedFile& file, const Calibration& calibration,
                             const std::vector<CalibrationPoint>& points, const Library& library);

/// "fitted: vtrain-a100-multi-node (emax; 54 rows, 5.1 % in-sample, leave one size out 5.3 %)".
std::string provenance(const Calibration& calibration, const std::vector<CalibrationPoint>& points);

/// Command line of `calibrate`.
struct CalibrateRequest {
  std::vector<std::string> sets;   ///< paths or names, at least one
  std::vector<std::string> fit;    ///< "emax", "emax,nic_efficiency", "/pointer=0.1..1"
  std::optional<FittedFile> file;  ///< --device, --software or --platform, and -o
  std::filesystem::path advise;  ///< --advise: a plan that measurements are advised for; empty: fit
  std::string advise_name;       ///< as the command line has it
  std::filesystem::path against;  ///< --against: the plan it is decided against; empty: none
  std::string against_name;
  std::filesystem::path predict;  ///< --predict: a plan to predict with the fit; empty: none
  std::string predict_name;
  std::optional<DrawPlan> draws;    ///< --draws: how well fits to a few rows predict the others
  std::filesystem::path residuals;  ///< --residuals: where held-out residuals go; empty: nowhere
  Overrides overrides;              ///< --set
  /// Prior of the fit; none with --residuals, as the shipped values may have been fitted to these
  /// very rows, and nothing would be held out.
  std::optional<PriorKind> prior;
  std::uint64_t seed = 0;  ///< of the random folds and draws
  ResultFormat format = ResultFormat::text;
  ProgressStyle progress = ProgressStyle::hidden;
};

/// `windtunnel calibrate`: fits named constants to measurement sets, writes tables or one JSON
/// document to `out`, and the files that are asked for. Returns the exit code: 0, or 1 when nothing
/// could be predicted or a constant ended at a bound of its range, or no constant for the file asked for was
/// identified; then no file is written. Throws InputError and EnvironmentError.
int run_calibrate(const CalibrateRequest& request, const Library& library, std::ostream& out,
                  std::ostream& messages);

/// The file of residuals with the regimes of this calibration in place of those of the same stack
/// and GPU family.
std::string merged_residuals(const std::filesystem::path& file,
                             std::vector<EvidenceRegime> regimes);

}  // namespace windtunnel
