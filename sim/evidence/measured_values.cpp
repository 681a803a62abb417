#include "evidence/measured_values.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

using Range = std::pair<double, double>;

bool lies_in(const UsedNumber& value, const Range& measured) {
  return value.low >= measured.first * (1 - value.tolerance) &&
         value.high <= measured.second * (1 + value.tolerance);
}

/// "attained NIC rate 25.0 GB/s, measured 21.2 GB/s"
std::string difference_text(const UsedNumber& value, const Range* measured) {
  if (measured == nullptr)
    return value.label + " " + value_text(value.low, value.unit) + ", never measured";
  const auto& [lowest, highest] = *measured;
  const bool is_below = value.low < lowest * (1 - value.tolerance);
  return value.label + " " + value_text(is_below ? value.low : value.high, value.unit) +
         ", measured " + value_text(lowest, value.unit) +
         (lowest == highest ? "" : " to " + value_text(highest, value.unit));
}

void note(bool is_used, std::string text, ValueDifferences& differences) {
  if (is_used)
    differences.used.push_back(std::move(text));
  else
    ++differences.unused;
}

}  // namespace

std::string listed(const std::set<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

void MeasuredValues::include(const UsedValues& values) {
  for (const auto& [key, value] : values.numbers) {
    Range& range = numbers.try_emplace(key, value.low, value.high).first->second;
    range = {std::min(range.first, value.low), std::max(range.second, value.high)};
  }
  for (const auto& [key, habit] : values.habits) habits[key].insert(habit.word);
}

ValueDifferences MeasuredValues::differences(const UsedValues& values) const {
  ValueDifferences differences;
  for (const auto& [key, value] : values.numbers) {
    const auto measured = numbers.find(key);
    const Range* const range = measured == numbers.end() ? nullptr : &measured->second;
    if (range == nullptr || !lies_in(value, *range))
      note(value.is_used, difference_text(value, range), differences);
  }
  for (const auto& [key, habit] : values.habits) {
    const auto measured = habits.find(key);
    const bool is_known = measured != habits.end();
    if (is_known && measured->second.contains(habit.word)) continue;
    note(habit.is_used,
         habit.label + " " + habit.word +
             (is_known ? ", measured " + listed(measured->second) : ", never measured"),
         differences);
  }
  return differences;
}

}  // namespace windtunnel
