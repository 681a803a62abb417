#pragma once

#include <string>
#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// Of ln(time): rows of measured stacks, held out, miss by 5 %.
inline constexpr double row_noise = 0.05;
/// The same about their own mean in sets of which nothing was fitted: the rms of the standard deviations of the twelve sets on
/// GPUs up to the A100, their constants left out (`unseen` in validation/residuals.json).
inline constexpr double unmeasured_row_noise = 0.11;

/// Which rows say something about each other beyond what constants explain: those of one stack, GPU, model and tensor width, and
/// where nobody measured the stack, all that share it and the GPU.
struct AnchorPlace {
  std::string stack;  ///< and GPU; empty where the stack was measured
  std::string kin;    ///< equal for rows of one stack, GPU, model and tensor width
  std::vector<double>
      shares;  ///< ln of the pipeline, data, microbatch and microbatches: how far apart they are
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

/// What all rows agree on: the end nearest to 0 of a confidence interval of their median, 0 where the interval holds it. Each end
/// errs in at most one of eight cases, whatever the distribution, so that three rows agree on the least of what they missed, if
/// they missed to one side (sign test; Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 3.2).
double agreed_shift(std::vector<double> residuals);

/// Moves predictions by what measured rows missed. On a stack that nobody measured, all rows move by their agreed_shift(), of which n
/// rows make believable what n times the spread of stacks allows. What they miss beyond it is a Gaussian process among kin (Rasmussen &
/// Williams, Gaussian Processes for Machine Learning, MIT Press 2006, eq. 2.25 and 2.26):
///   mean = k^T (K + noise^2 I)^-1 r,   variance = k(0) - k^T (K + noise^2 I)^-1 k
///   k(a, b) = spread^2 exp(-|a - b|^2 / (2 length^2)) among kin, else 0
/// Half of what a row of a measured stack misses is taken for its own, and nearly all of one of another.
class AnchoredResiduals {
 public:
  explicit AnchoredResiduals(std::vector<Anchor> anchors) : anchors_(std::move(anchors)) {}

  AnchoredShift at(const AnchorPlace& place) const;
  /// Of the anchors that move it.
  std::size_t num_near(const AnchorPlace& place) const;

 private:
  std::vector<Anchor> anchors_;
};

}  // namespace windtunnel
