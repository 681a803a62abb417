#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

enum class ValueUnit { count, ratio, time, data_rate, flop_rate };

/// A number that a prediction rests on, of all nodes in use.
struct UsedNumber {
  std::string label;  ///< for people: "NIC rate"
  ValueUnit unit = ValueUnit::ratio;
  /// Largest distance from a measured number, as a share of it, at which it still counts as measured.
  double tolerance = 0;
  bool is_used = true;  ///< this job's time depends on it
  double low = 0, high = 0;
};

/// A habit that is no number: "yes", "mesh".
struct UsedHabit {
  std::string label;
  bool is_used = true;
  std::string word;
};

/// Values of the stack, the GPU and the cluster that decide a prediction, by the key in its file. Names are no part of
/// it: a renamed copy is what it is a copy of.
struct UsedValues {
  std::map<std::string, UsedNumber> numbers;
  std::map<std::string, UsedHabit> habits;
};

UsedValues stack_values(const Scenario& scenario);
UsedValues gpu_values(const Scenario& scenario);
UsedValues cluster_values(const Scenario& scenario);

/// "21.2 GB/s"
std::string value_text(double number, ValueUnit unit);

/// Says what differs from what was measured: "attained NIC rate 25.0 GB/s, measured 21.2 GB/s". Refers to both. Most differences are only
/// counted, and words take longer than finding them.
using Difference = std::function<std::string()>;

/// Values that differ from measured ones.
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

}  // namespace windtunnel
