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

/// "optimizer fused, measured foreach, none"; `measured` is null where nothing was.
std::string difference_text(const UsedHabit& habit, const std::set<std::string>* measured) {
  return habit.label + " " + habit.word +
         (measured == nullptr ? ", never measured" : ", measured " + listed(*measured));
}

/// Looks up keys that are asked for in ascending order, in one walk through a map.
template <class Value>
class Walk {
 public:
  explicit Walk(const std::map<std::string, Value>& map) : at_(map.begin()), end_(map.end()) {}
  /// Null where the map has no such key.
  const Value* at(const std::string& key) {
    for (; at_ != end_; ++at_) {
      const int order = at_->first.compare(key);
      if (order >= 0) return order == 0 ? &at_->second : nullptr;
    }
    return nullptr;
  }

 private:
  typename std::map<std::string, Value>::const_iterator at_, end_;
};

/// The text of what is used; the rest is counted.
template <class Value, class Measured>
void note(const Value& value, const Measured* measured, ValueDifferences& differences) {
  if (value.is_used)
    differences.used.push_back([&value, measured] { return difference_text(value, measured); });
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
  Walk number(numbers);
  for (const auto& [key, value] : values.numbers) {
    const Range* const range = number.at(key);
    if (range == nullptr || !lies_in(value, *range)) note(value, range, differences);
  }
  Walk words_of(habits);
  for (const auto& [key, habit] : values.habits) {
    const std::set<std::string>* const words = words_of.at(key);
    if (words == nullptr || !words->contains(habit.word)) note(habit, words, differences);
  }
  return differences;
}

}  // namespace windtunnel
