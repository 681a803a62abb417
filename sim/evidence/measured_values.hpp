#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evidence/used_values.hpp"

namespace windtunnel {

/// Says what differs from what was measured: "attained NIC rate 25.0 GB/s, measured 21.2 GB/s". Refers to both. Most differences are only
/// counted, and words take longer than finding them.
using Difference = std::function<std::string()>;

/// Where values differ from measured ones.
struct ValueDifferences {
  std::vector<Difference> used;
  std::size_t unused = 0;  ///< of values that this job's time does not depend on
};

/// The values that measured runs had, by the key in their file.
struct MeasuredValues {
  std::map<std::string, std::pair<double, double>> numbers;  ///< smallest and largest
  std::map<std::string, std::set<std::string>> habits;

  void include(const UsedValues& values);
  ValueDifferences differences(const UsedValues& values) const;
};

/// "eager, blocking"
std::string listed(const std::set<std::string>& words);

}  // namespace windtunnel
