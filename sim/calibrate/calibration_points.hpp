#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Standard deviation of ln(time): held-out rows of measured stacks miss by 5 %.
inline constexpr double row_noise = 0.05;
/// The same about their own mean in sets of which nothing was fitted: the rms of the standard deviations of the twelve sets on
/// GPUs up to the A100, their constants left out (`unseen` in validation/residuals.json).
inline constexpr double unmeasured_row_noise = 0.11;
/// The same of one run that is measured again: 95 rows of megatron-bridge/dense and moe in 30 groups that repeat a plan in other releases lie
/// 0.027 from their means (rms; without GPT-OSS, whose code became a third faster; draw_check_test), rounded up.
inline constexpr double repeat_noise = 0.03;

/// Rows that are informative about each other beyond the constants: those of one stack, GPU, model and tensor width, and
/// if nobody measured the stack, all that share it and the GPU.
struct AnchorPlace {
  std::string stack;  ///< and GPU; empty where the stack was measured
  std::string kin;    ///< equal for rows of one stack, GPU, model and tensor width
  std::vector<double>
      shares;  ///< ln of the pipeline, data, microbatch and microbatches: how far apart they are
  std::string run = {};  ///< resolved_hash(): equal for the same run, measured or predicted again
};
AnchorPlace anchor_place(const Scenario& scenario);

/// A measured row and what its prediction missed.
struct Anchor {
  AnchorPlace place;
  double residual = 0;  ///< ln(measured / predicted)
};

/// Shift of ln(measured / predicted) that anchors imply elsewhere.
struct AnchoredShift {
  double mean = 0;
  double left_open = 1;  ///< share of the variance of ln(measured / predicted) that remains
};

/// Shift that all rows agree on: the end nearest to 0 of a confidence interval of their median, 0 if the interval contains it. Each end
/// errs in at most one of eight cases, whatever the distribution, so that three rows agree on the least of what they missed, if
/// they missed to one side (sign test; Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 3.2).
double agreed_shift(std::vector<double> residuals);

/// Moves predictions by what measured rows missed. On a stack that nobody measured, all rows move by their agreed_shift(), of which n
/// rows make believable what n times the spread of stacks allows. What they miss beyond it is a Gaussian process among kin (Rasmussen &
/// Williams, Gaussian Processes for Machine Learning, MIT Press 2006, eq. 2.25 and 2.26):
///   mean = k^T (K + noise^2 I)^-1 r,   variance = k(0) - k^T (K + noise^2 I)^-1 k
///   k(a, b) = spread^2 exp(-|a - b|^2 / (2 length^2)) among kin, else 0
/// Half of what a row of a measured stack misses is taken for its own, and nearly all of one of another; the run itself shares it, but
/// for repeat_noise.
class AnchoredResiduals {
 public:
  explicit AnchoredResiduals(std::vector<Anchor> anchors) : anchors_(std::move(anchors)) {}

  AnchoredShift at(const AnchorPlace& place) const;
  /// Number of anchors that shift a prediction at this place.
  std::size_t num_near(const AnchorPlace& place) const;

 private:
  std::vector<Anchor> anchors_;
};

/// Between which values a constant is looked for.
struct FitBounds {
  double lower = 0, upper = 0;
};

/// Node types that a constant of the first one is of.
enum class NodeTypes {
  named,  ///< the one of the pointer
  alike,  ///< all with the first one's device and value: of a short name
};

/// A number of the scenario that is to be fitted: any number, or quantity, at a JSON pointer. In
/// texts like "0.32 ms" the number is fitted and the unit stays.
struct FitConstant {
  std::string name;                 ///< as asked for: a short name, or the pointer itself
  std::string pointer;              ///< as --set takes it
  std::optional<FitBounds> bounds;  ///< none: a tenth of the start to ten times
  NodeTypes node_types = NodeTypes::named;
};

/// By a constant's pointer: those to the same number of the other node types that it is of.
using AlikePlaces = std::map<std::string, std::vector<std::string>>;
AlikePlaces alike_places(const std::vector<FitConstant>& constants, JsonValue& scenario);
/// `values` of constants, and of the other node types that they are of.
Overrides on_all_places(const Overrides& values, const AlikePlaces& alike);

/// Distance of ln(constant) of an unmeasured stack or cluster from the shipped value: the
/// standard deviation of the prior. Constants of a stack with a profile are `known`: the profile's
/// measurements hold them.
enum class StackKnowledge { unmeasured, known };
double prior_spread(const FitConstant& constant, StackKnowledge stack);

/// A number and the unit that follows it; " ms" with its blank, or nothing.
struct NumberWithUnit {
  double number = 0;
  std::string unit;
};

/// Parses the argument of --fit: "emax", "/platform/node_types/0/nic_efficiency", or with bounds "emax=0.6..1".
/// Short names:
///   device    emax, memory_efficiency
///   software  compute_efficiency, tensor_collective_overhead, kernel_launch, flash_forward, flash_backward
///   platform  nic_efficiency, in_node_collective_slowdown (also arf)
/// Short names of a platform mean all its node types that are like the first one. InputError on anything else.
FitConstant parse_fit_constant(const std::string& text);
/// A constant's name as tables show it: pointers into the first node type without their beginning, and whose compute_efficiency it is, which
/// both the stack and the nodes have.
std::string shown_name(const std::string& name);
/// All with a short name, each once.
std::vector<FitConstant> named_fit_constants();

/// The number that `scenario` has at the constant's pointer; none where there is none.
std::optional<NumberWithUnit> number_at(JsonValue& scenario, const std::string& pointer);

/// The text that --set takes for the value: "0.832", "0.317 ms".
std::string text_of(const NumberWithUnit& value);

/// A start value within bounds, ready to be fitted: the bounds of the constant, or a tenth to ten
/// times `start`, and the start moved into them.
struct FitRange {
  double start = 0;
  FitBounds bounds;
};
FitRange range_of(const FitConstant& constant, double start);

/// A measured iteration that can be predicted.
struct CalibrationPoint {
  std::string set, id;
  std::string size;  ///< of the model, as "18B": what leave-one-size-out leaves out together
  JsonValue scenario;
  std::filesystem::path folder;  ///< what paths in the scenario are relative to
  Seconds measured{};
  ScenarioTraits traits;
  AnchorPlace place;
  StackKnowledge stack = StackKnowledge::unmeasured;  ///< known: the profile was measured
  bool is_fitted = false;             ///< a number of the point's own files was fitted on its set
  std::vector<NumberWithUnit> given;  ///< of each constant, as the point's own files have it
  AlikePlaces alike;
};

/// The points of the sets, and why the others are left out.
struct CalibrationPoints {
  std::vector<CalibrationPoint> points;
  std::vector<std::pair<std::string, std::string>> skipped;  ///< "set: id", reason
  /// Sets that the points' own files were fitted on, as their sources say: what these files predict
  /// of them was not held out.
  std::set<std::string> fitted_sets;
};

/// The measurement sets of the command line, by names or paths; all of the library's where there are none.
std::vector<MeasurementSet> read_sets(const std::vector<std::string>& asked,
                                      const Library& library);

/// Settings that all points of a calibration are read with.
struct PointReading {
  const Library* library = nullptr;
  Overrides overrides;  ///< --set
  std::vector<FitConstant> constants;
};

/// Reads the scenarios of all measured iterations. A point that this version cannot simulate is
/// skipped; InputError when a scenario is wrong, or has no number where a constant is to be fitted.
CalibrationPoints read_calibration_points(const std::vector<MeasurementSet>& sets,
                                          const PointReading& reading);

/// Gives each constant the bounds that are searched (range_of), narrowed to the values that the readers of all points' files take.
/// InputError on a constant that cannot be fitted: a whole number, one without bounds that is 0, and one whose bounds hold no such value.
void narrow_to_readable(std::vector<FitConstant>& constants,
                        const std::vector<CalibrationPoint>& points, const PointReading& reading);

/// A model's parameters to two digits: "0.12B", "18B", "180B".
std::string size_name(double parameters);

}  // namespace windtunnel
