#pragma once

#include <string>
#include <utility>
#include <vector>

#include "timeline/breakdown.hpp"

namespace windtunnel {

/// How large an error usually is: it grows with a share of the time that an error has its source in. An interval of a new run is as many
/// allowances wide as measured ones needed: split conformal with a scale of its own for each run (Lei et al., JASA 113(523), 2018, section 5.2).
struct Allowance {
  double base = 1, growth = 0;

  double of(double share) const { return base + growth * share; }
};

/// A measured error and that share.
struct SizedError {
  std::string set;
  double error = 0;  ///< without its sign
  double share = 0;
};

/// A resistant line (Tukey, Exploratory Data Analysis, 1977, chapter 5) through the medians of the errors with the smallest and the largest
/// shares, a third each; every set counts alike. It falls nowhere. There must be an error.
Allowance fitted_allowance(const std::vector<SizedError>& errors);

/// Of the time of a run, what its passes do not compute: communication, bubbles, optimizer, host. That is predicted worse than kernels are,
/// which were measured one by one.
double share_outside_kernels(const Breakdown& breakdown);

}  // namespace windtunnel
