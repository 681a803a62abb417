#include "sweep/points.hpp"

#include <algorithm>
#include <set>

#include "core/problem.hpp"

namespace windtunnel {
namespace {

/// More would not fit into a directory of results that anybody reads.
constexpr std::size_t most_combinations = 10'000'000;

bool is_amount(const JsonValue& value) {
  return value.is_number() || (value.is_string() && !value.string().empty() &&
                               value.string().front() >= '0' && value.string().front() <= '9');
}

/// Where a name or a path of a file stands: /model, /platform/node_types/0/device.
bool is_place_of_name(const std::string& pointer) {
  return pointer.ends_with("/device") || pointer == "/model" || pointer == "/platform" ||
         pointer == "/software" || pointer == "/parallel/schedule";
}

/// A swept amount stands in for a measured one, as one from --set does: its source is the sweep.
JsonValue swept(const std::string& pointer, JsonValue value) {
  if (is_amount(value) && !is_place_of_name(pointer)) value.origin.kind = OriginKind::command_line;
  return value;
}

/// Equal for points that set the same values, in whatever order.
std::string text_of(const PointValues& values) {
  JsonValue point{JsonValue::Object{}};
  for (const auto& [pointer, value] : values) point.set(pointer, value);
  return canonical_text(point);
}

[[noreturn]] void refuse(const Origin& origin, const std::string& pointer,
                         const std::string& message, const std::string& suggestion) {
  throw InputError({{origin, pointer, message, suggestion}});
}

}  // namespace

SweepPoints::SweepPoints(const JsonValue& sweep) {
  read_matrix(*sweep.find("matrix"));
  exclude(sweep.find("exclude"));
  include(sweep.find("include"));
  if (size() == 0)
    refuse(sweep.origin, "/sweep",
           "no point is left of the " + std::to_string(num_combinations_) +
               " of the matrix: exclude matches all of them",
           "exclude fewer");
}

void SweepPoints::read_matrix(const JsonValue& matrix) {
  for (const JsonValue::Member& member : matrix.object()) {
    Axis axis{member.key, {}, {}};
    for (const JsonValue& value : member.value.array()) {
      std::string text = canonical_text(value);
      if (std::find(axis.texts.begin(), axis.texts.end(), text) != axis.texts.end()) continue;
      axis.values.push_back(swept(member.key, value));
      axis.texts.push_back(std::move(text));
    }
    num_combinations_ *= axis.values.size();
    if (num_combinations_ > most_combinations)
      refuse(matrix.origin, "/sweep/matrix",
             "the matrix has more than " + std::to_string(most_combinations) + " combinations",
             "sweep fewer values at once");
    columns_.push_back(axis.pointer);
    axes_.push_back(std::move(axis));
  }
  std::size_t stride = num_combinations_;
  for (const Axis& axis : axes_) strides_.push_back(stride /= axis.values.size());
}

std::size_t SweepPoints::index_on(const Axis& axis, Combination combination) const {
  const auto place = static_cast<std::size_t>(&axis - axes_.data());
  return combination / strides_[place] % axis.values.size();
}

void SweepPoints::exclude(const JsonValue* points) {
  /// For each entry: the axes that it names, and the text it names there.
  std::vector<std::vector<std::pair<const Axis*, std::string>>> entries;
  if (points != nullptr && points->is_array())
    for (const JsonValue& point : points->array()) {
      entries.emplace_back();
      for (const JsonValue::Member& member : point.object())
        for (const Axis& axis : axes_)
          if (axis.pointer == member.key)
            entries.back().emplace_back(&axis, canonical_text(member.value));
    }
  for (std::size_t number = 0; number < num_combinations_; ++number) {
    const auto combination = static_cast<Combination>(number);
    const bool is_out = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return std::all_of(entry.begin(), entry.end(), [&](const auto& condition) {
        return condition.first->texts[index_on(*condition.first, combination)] == condition.second;
      });
    });
    if (!is_out) kept_.push_back(combination);
  }
}

bool SweepPoints::is_combination(const PointValues& values) const {
  if (values.size() != axes_.size()) return false;
  std::size_t number = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto value = std::find_if(values.begin(), values.end(), [&](const auto& each) {
      return each.first == axes_[i].pointer;
    });
    if (value == values.end()) return false;
    const auto& texts = axes_[i].texts;
    const auto text = std::find(texts.begin(), texts.end(), canonical_text(value->second));
    if (text == texts.end()) return false;
    number += strides_[i] * static_cast<std::size_t>(text - texts.begin());
  }
  return std::binary_search(kept_.begin(), kept_.end(), static_cast<Combination>(number));
}

void SweepPoints::include(const JsonValue* points) {
  if (points == nullptr || !points->is_array()) return;
  std::set<std::string> known;
  for (const JsonValue& point : points->array()) {
    PointValues values;
    for (const JsonValue::Member& member : point.object()) {
      values.emplace_back(member.key, swept(member.key, member.value));
      if (std::find(columns_.begin(), columns_.end(), member.key) == columns_.end())
        columns_.push_back(member.key);
    }
    if (!is_combination(values) && known.insert(text_of(values)).second)
      included_.push_back(std::move(values));
  }
}

PointValues SweepPoints::values(std::size_t point) const {
  if (point >= kept_.size()) return included_.at(point - kept_.size());
  PointValues values;
  for (const Axis& axis : axes_)
    values.emplace_back(axis.pointer, axis.values[index_on(axis, kept_[point])]);
  return values;
}

bool SweepPoints::all_set(const std::string& pointer) const {
  const auto is_it = [&](const auto& value) { return value.first == pointer; };
  const bool is_axis = std::any_of(axes_.begin(), axes_.end(),
                                   [&](const Axis& axis) { return axis.pointer == pointer; });
  return (is_axis || kept_.empty()) &&
         std::all_of(included_.begin(), included_.end(), [&](const PointValues& values) {
           return std::any_of(values.begin(), values.end(), is_it);
         });
}

std::string short_name(const std::string& column, const std::vector<std::string>& columns) {
  std::size_t begin = column.rfind('/');
  while (begin != std::string::npos && begin > 0) {
    const std::string tail = column.substr(begin);
    const auto ends_alike = [&](const std::string& other) { return other.ends_with(tail); };
    if (std::count_if(columns.begin(), columns.end(), ends_alike) <= 1) break;
    begin = column.rfind('/', begin - 1);
  }
  return column.substr(begin + 1);
}

}  // namespace windtunnel
