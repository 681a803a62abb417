#pragma once

#include <map>
#include <string>

#include "scenario/scenario.hpp"

namespace windtunnel {

enum class ValueUnit { count, ratio, time, data_rate, flop_rate };

/// A number that a prediction rests on, of all nodes in use.
struct UsedNumber {
  std::string label;  ///< for people: "NIC rate"
  ValueUnit unit = ValueUnit::ratio;
  /// How far it may lie from measured numbers, as a share of them, and still be taken for one of them.
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

}  // namespace windtunnel
