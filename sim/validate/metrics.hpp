#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/validate.hpp"

namespace windtunnel {

/// A figure of a validated set that can have a limit: the smaller the better. Names are those of
/// the JSON document. A bias counts without its sign; verdicts on memory are counts.
struct Metric {
  const char* name;
  /// None where the set has nothing of the kind.
  std::optional<double> (*of)(const ValidatedSet&);
};

/// All of them, in the order in which a message lists them.
const std::vector<Metric>& all_metrics();
/// A null pointer when there is none of this name.
const Metric* find_metric(const std::string& name);

/// Mean absolute error; none of none.
std::optional<double> mean_absolute_error(const std::vector<double>& errors);

}  // namespace windtunnel
