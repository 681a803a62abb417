#include "sweep/points.hpp"

#include <algorithm>
#include <set>

#include "core/problem.hpp"
#include "platform/platform_json.hpp"

namespace windtunnel {
namespace {

/// More would not fit into a directory of results that anybody reads.
constexpr std::size_t most_combinations = 10'000'000;
/// Key of a listed point's name, next to its pointers and values.
constexpr const char* label_key = "label";

/// A swept amount stands in for a measured one, as one from --set does: its source is the sweep. So do those in lists, and in objects without
/// sources of their own.
JsonValue swept(const std::string& pointer, JsonValue value) {
  // Pointers to names or paths of files: /model, /platform/node_types/0/device.
  const bool is_name = pointer.ends_with("/device") || pointer == "/model" ||
                       pointer == "/platform" || pointer == "/software" ||
                       pointer == "/parallel/schedule";
  if (value.is_object() && value.find("source") == nullptr)
    for (JsonValue::Member& member : value.object())
      member.value = swept(pointer_join(pointer, member.key), std::move(member.value));
  if (carries_number(value) && !is_name) value.origin.kind = OriginKind::command_line;
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
  if (const JsonValue* matrix = sweep.find("matrix"); matrix != nullptr && matrix->is_object())
    read_matrix(*matrix);
  exclude(sweep.find("exclude"));
  for (const char* key : {"include", "points"}) include(sweep.find(key));
  if (size() == 0)
    refuse(sweep.origin, "/sweep",
           num_combinations_ == 0 ? "the list of points is empty"
                                  : "no point is left of the " + std::to_string(num_combinations_) +
                                        " of the matrix: exclude matches all of them",
           num_combinations_ == 0 ? "write [ {\"/nodes\": 8} ]" : "exclude fewer");
  if (const JsonValue* baseline = sweep.find("baseline");
      baseline != nullptr && !baseline->is_null())
    find_baseline(*baseline);
}

void SweepPoints::read_matrix(const JsonValue& matrix) {
  num_combinations_ = 1;
  for (const JsonValue::Member& member : matrix.object()) {
    Axis axis{member.key, {}, {}};
    for (const JsonValue& value : member.value.array()) {
      std::string text = canonical_text(value);
      if (std::ranges::find(axis.texts, text) != axis.texts.end()) continue;
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
    const bool is_out = std::ranges::any_of(entries, [&](const auto& entry) {
      return std::ranges::all_of(entry, [&](const auto& condition) {
        return condition.first->texts[index_on(*condition.first, combination)] == condition.second;
      });
    });
    if (!is_out) kept_.push_back(combination);
  }
}

std::optional<std::size_t> SweepPoints::combination_with(const PointValues& values) const {
  if (axes_.empty() || values.size() != axes_.size()) return std::nullopt;
  std::size_t number = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto value = std::ranges::find_if(
        values, [&](const auto& each) { return each.first == axes_[i].pointer; });
    if (value == values.end()) return std::nullopt;
    const auto& texts = axes_[i].texts;
    const auto text = std::ranges::find(texts, canonical_text(value->second));
    if (text == texts.end()) return std::nullopt;
    number += strides_[i] * static_cast<std::size_t>(text - texts.begin());
  }
  const auto wanted = static_cast<Combination>(number);
  const auto kept = std::ranges::lower_bound(kept_, wanted);
  if (kept == kept_.end() || *kept != wanted) return std::nullopt;
  return static_cast<std::size_t>(kept - kept_.begin());
}

void SweepPoints::include(const JsonValue* points) {
  if (points == nullptr || !points->is_array()) return;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < included_.size(); ++i)
    known.emplace(text_of(included_[i]), kept_.size() + i);
  for (const JsonValue& point : points->array()) {
    PointValues values;
    for (const JsonValue::Member& member : point.object()) {
      if (member.key == label_key) continue;
      values.emplace_back(member.key, swept(member.key, member.value));
      if (std::ranges::find(columns_, member.key) == columns_.end()) columns_.push_back(member.key);
    }
    std::optional<std::size_t> number = combination_with(values);
    if (!number) {
      const auto [place, is_new] = known.try_emplace(text_of(values), size());
      number = place->second;
      if (is_new) included_.push_back(std::move(values));
    }
    const JsonValue* label = point.find(label_key);
    if (label == nullptr || label->is_null()) continue;
    const auto [named, is_new] = labels_.try_emplace(*number, label->string());
    if (!is_new)
      refuse(
          label->origin, "/sweep",
          "the point \"" + label->string() + "\" sets the same values as \"" + named->second + "\"",
          "leave one of them out");
  }
}

void SweepPoints::find_baseline(const JsonValue& baseline) {
  // A whole number may be a label or a point's number; one that is both, of two points, is refused below.
  std::vector<std::size_t> found;
  const std::string named = baseline.is_string() ? baseline.string() : canonical_text(baseline);
  for (const auto& [point, label] : labels_)
    if (!baseline.is_object() && label == named) found.push_back(point);
  if (baseline.is_integer()) {
    const std::int64_t point = std::get<std::int64_t>(baseline.content);
    const bool is_point = point >= 0 && point < static_cast<std::int64_t>(size());
    if (is_point && std::ranges::count(found, static_cast<std::size_t>(point)) == 0)
      found.push_back(static_cast<std::size_t>(point));
  }
  for (std::size_t point = 0; baseline.is_object() && point < size(); ++point) {
    const PointValues own = values(point);
    const auto is_set = [&](const JsonValue::Member& wanted) {
      return std::ranges::any_of(own, [&](const auto& value) {
        return value.first == wanted.key &&
               canonical_text(value.second) == canonical_text(wanted.value);
      });
    };
    if (std::ranges::all_of(baseline.object(), is_set)) found.push_back(point);
  }
  if (found.size() == 1) {
    baseline_ = found.front();
    return;
  }
  std::vector<std::string> labels;
  for (const auto& [point, label] : labels_) labels.push_back(label);
  const std::string nearest =
      baseline.is_string() ? closest_match(baseline.string(), labels) : std::string{};
  refuse(baseline.origin, "/sweep/baseline",
         text_for_message(baseline) +
             (found.empty()
                  ? " is none of the " + std::to_string(size()) + " points"
                  : " fits " + std::to_string(found.size()) + " points, and the baseline is one"),
         !nearest.empty() ? "did you mean \"" + nearest + "\"?"
         : !found.empty() && baseline.is_integer()
             ? "write the label in quotes, or values of the point"
         : !found.empty() ? "add values until one point is left"
                          : "write a label, the values of a point, or its number as sweep "
                            "--dry-run lists it");
}

std::string SweepPoints::label(std::size_t point) const {
  const auto found = labels_.find(point);
  return found == labels_.end() ? std::string{} : found->second;
}

PointValues SweepPoints::values(std::size_t point) const {
  if (point >= kept_.size()) return included_.at(point - kept_.size());
  PointValues values;
  for (const Axis& axis : axes_)
    values.emplace_back(axis.pointer, axis.values[index_on(axis, kept_[point])]);
  return values;
}

std::vector<JsonValue> SweepPoints::tried(const std::string& pointer) const {
  std::vector<JsonValue> tried;
  for (const Axis& axis : axes_)
    if (axis.pointer == pointer) tried = axis.values;
  std::set<std::string> known;
  for (const JsonValue& value : tried) known.insert(canonical_text(value));
  for (const PointValues& values : included_)
    for (const auto& [at, value] : values)
      if (at == pointer && known.insert(canonical_text(value)).second) tried.push_back(value);
  return tried;
}

bool SweepPoints::all_set(const std::string& pointer) const {
  const auto is_it = [&](const auto& value) { return value.first == pointer; };
  const bool is_axis =
      std::ranges::any_of(axes_, [&](const Axis& axis) { return axis.pointer == pointer; });
  return (is_axis || kept_.empty()) &&
         std::ranges::all_of(included_, [&](const PointValues& values) {
           return std::ranges::any_of(values, is_it);
         });
}

std::string short_name(const std::string& column, const std::vector<std::string>& columns) {
  std::size_t begin = column.rfind('/');
  while (begin != std::string::npos && begin > 0) {
    const std::string tail = column.substr(begin);
    const auto ends_alike = [&](const std::string& other) { return other.ends_with(tail); };
    if (std::ranges::count_if(columns, ends_alike) <= 1) break;
    begin = column.rfind('/', begin - 1);
  }
  return column.substr(begin + 1);
}

}  // namespace windtunnel
