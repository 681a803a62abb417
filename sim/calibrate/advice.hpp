#pragma once

#include <Eigen/Dense>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibration_points.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Knowledge of the logarithms of some constants: a normal distribution about their given values. Times depend on them as
///   ln t = ln t0 + gradient . (x - x0),
/// so that a measured time narrows it, whatever the time turns out to be (Gaussian linear model; Sherman & Morrison 1950):
///   C' = C - (C g)(C g)^T / (noise^2 + g^T C g),   m' = m + C g (y - g . m) / (noise^2 + g^T C g)
/// with y the measured ln(t / t0).
class LinearBelief {
 public:
  /// Independent constants with these standard deviations.
  explicit LinearBelief(const std::vector<double>& spreads);

  /// Variance of ln t: the part that the uncertainty of the constants causes.
  double variance(const std::vector<double>& gradient) const;
  /// variance(`asked`) if a time with `gradient` were measured, whose logarithm has errors of standard deviation `noise`.
  double variance_after(const std::vector<double>& asked, const std::vector<double>& gradient,
                        double noise) const;
  /// Records that a time with `gradient` was measured; without `residual`, ln(measured / predicted), its result is not known yet.
  void measure(const std::vector<double>& gradient, double noise,
               std::optional<double> residual = {});
  /// Expected ln(t / t0), given the measurements.
  double expected(const std::vector<double>& gradient) const;
  /// Standard deviation of one constant.
  double spread(std::size_t constant) const;

 private:
  Eigen::MatrixXd covariance_;
  Eigen::VectorXd mean_;  ///< of ln(constant) over its given value
};

/// A plan whose prediction is to become surer.
struct AdviceRequest {
  std::filesystem::path file;     ///< its scenario
  std::filesystem::path against;  ///< the plan that it is to be decided against; empty: none
  Overrides overrides;            ///< --set
  std::vector<FitConstant>
      constants;  ///< none: all that have a short name and a value in the scenario
  std::function<void(std::size_t)> on_progress;  ///< with the number of simulations; may be empty
};

/// A constant that the plan's time depends on.
struct AdvisedConstant {
  FitConstant constant;
  NumberWithUnit given;
  double spread = 0;       ///< standard deviation of ln(constant) after the measured rows
  double sensitivity = 0;  ///< d ln(time of the plan) / d ln(constant)
};

/// A configuration to measure next, after those before it.
struct AdvisedRun {
  Overrides overrides;  ///< on top of the plan's file
  std::string plan;     ///< detail::plan_text()
  int gpus = 0;
  Seconds iteration_time{};
  double width_after = 0;  ///< as Advice::width, once it is measured
  double sure_after = 0;   ///< as AdvisedDecision::sure, should it take as long as predicted
};

/// Decision between two plans: which is the faster one.
struct AdvisedDecision {
  double gain = 0;  ///< ln(time of the other / time of the plan), moved by what the rows missed
  double width =
      0;  ///< standard deviation of `gain`: what the constants leave open, and the noise of both
  double sure = 0;  ///< the probability that its sign is right
};

/// Uncertainty of a plan's prediction, and the measurements that would reduce it most.
struct Advice {
  Seconds iteration_time{};  ///< moved by what the rows missed
  double width =
      0;  ///< standard deviation of ln(time): what the constants leave open after the rows, and `noise`
  /// The width before any row, and the 90 % interval over the time that `run` states for the plan (none without evidence): widths are
  /// shown as the share of that interval that they are of the first.
  double width_of_run = 0;
  std::optional<std::pair<double, double>> run_interval;
  double noise =
      0;  ///< of it, what no constant explains: known stacks miss rows that were held out by so much
  std::vector<AdvisedConstant> constants;
  std::vector<AdvisedRun> runs;             ///< at most three, the best one first
  std::optional<AdvisedDecision> decision;  ///< where the plan is decided against another
  std::size_t num_rows = 0;                 ///< measured already
  std::vector<std::pair<std::string, std::string>>
      skipped;  ///< rows that told nothing: "set: id", reason
  std::size_t num_candidates = 0, num_simulations = 0;
  std::size_t num_refused = 0;  ///< configurations that cannot be simulated
  std::string why_refused;      ///< the first of them
};

/// Linearises ln(time) in the logarithms of the constants, for the plan, each measured row and each candidate: the plan's model with as many
/// layers on a stage, on one to four nodes, with other tensor and pipeline degrees and microbatches, that fits in memory. Candidates are
/// taken one after the other: that which narrows the plan's interval most, or one on fewer GPUs that does so nearly as well
/// while it narrows the interval by a twentieth; where the plan is decided against another, the interval of the ratio of their times (Bayesian linear design; Chaloner & Verdinelli, Statistical Science 10(3), 1995, section 2.2).
/// Throws InputError when the plan's scenario is wrong or has no value for a constant that was asked for, or when the other plan has other
/// values of the constants.
Advice advise(const AdviceRequest& request, const std::vector<MeasurementSet>& sets,
              const Library& library);

std::string advice_text(const Advice& advice, const std::string& file,
                        const std::string& against = {});
std::string advice_json(const Advice& advice);

}  // namespace windtunnel
