#include "questions/input_differences.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace windtunnel {
namespace {

constexpr std::array unimportant{"$schema", "version", "name",  "description",
                                 "source",  "sweep",   "search"};
constexpr std::size_t longest_value = 40;  ///< characters of an array that are printed

bool is_unimportant(const std::string& key) {
  return std::find(unimportant.begin(), unimportant.end(), key) != unimportant.end();
}

/// Nothing there: a null pointer here, "absent" in the result.
using Places = std::vector<const JsonValue*>;

std::string text_of(const JsonValue* value) {
  if (value == nullptr) return "absent";
  if (value->is_string()) return value->string();
  std::string text = value->is_object() ? text_for_message(*value) : canonical_text(*value);
  if (text.size() > longest_value) text = text.substr(0, longest_value - 3) + "...";
  return text;
}

/// What the object calls itself; null when it is none or has no name.
const JsonValue* name_of(const JsonValue* value) {
  const JsonValue* name = value == nullptr ? nullptr : value->find("name");
  return name != nullptr && name->is_string() ? name : nullptr;
}

bool all_equal(const Places& places) {
  const auto same = [](const JsonValue* a, const JsonValue* b) {
    if (a == nullptr || b == nullptr) return a == b;
    return canonical_text(*a) == canonical_text(*b);
  };
  return std::all_of(places.begin(), places.end(),
                     [&](const JsonValue* place) { return same(places.front(), place); });
}

template <class Predicate>
bool all_are(const Places& places, Predicate predicate) {
  return std::all_of(places.begin(), places.end(),
                     [&](const JsonValue* place) { return place != nullptr && predicate(*place); });
}

class Differences {
 public:
  std::vector<InputDifference> take() { return std::move(found_); }

  void walk(const Places& places, const std::string& pointer) {
    if (all_equal(places)) return;
    const bool is_root = pointer.empty();
    if (!is_root && names_differ(places, pointer)) return;
    if (all_are(places, [](const JsonValue& value) { return value.is_object(); }))
      return walk_objects(places, pointer);
    if (all_are(places, [](const JsonValue& value) { return is_list_of_objects(value); }))
      return walk_lists(places, pointer);
    add(pointer, places);
  }

 private:
  static bool is_list_of_objects(const JsonValue& value) {
    return value.is_array() && !value.array().empty() && value.array().front().is_object();
  }

  void add(const std::string& pointer, const Places& places) {
    InputDifference difference{pointer, {}};
    for (const JsonValue* place : places) difference.values.push_back(text_of(place));
    found_.push_back(std::move(difference));
  }

  /// Says so, too, when the places hold things of different names.
  bool names_differ(const Places& places, const std::string& pointer) {
    Places names;
    for (const JsonValue* place : places) names.push_back(name_of(place));
    if (names.front() == nullptr || all_equal(names)) return false;
    add(pointer, names);
    return true;
  }

  void walk_objects(const Places& places, const std::string& pointer) {
    std::vector<std::string> keys;
    for (const JsonValue* place : places)
      for (const JsonValue::Member& member : place->object())
        if (!is_unimportant(member.key) &&
            std::find(keys.begin(), keys.end(), member.key) == keys.end())
          keys.push_back(member.key);
    for (const std::string& key : keys) {
      Places members;
      for (const JsonValue* place : places) members.push_back(place->find(key));
      walk(members, pointer_join(pointer, key));
    }
  }

  void walk_lists(const Places& places, const std::string& pointer) {
    std::size_t longest = 0;
    for (const JsonValue* place : places) longest = std::max(longest, place->array().size());
    for (std::size_t i = 0; i < longest; ++i) {
      Places elements;
      for (const JsonValue* place : places)
        elements.push_back(i < place->array().size() ? &place->array()[i] : nullptr);
      walk(elements, pointer_join(pointer, std::to_string(i)));
    }
  }

  std::vector<InputDifference> found_;
};

}  // namespace

std::vector<InputDifference> input_differences(const std::vector<const JsonValue*>& trees) {
  Differences differences;
  differences.walk(trees, {});
  return differences.take();
}

}  // namespace windtunnel
