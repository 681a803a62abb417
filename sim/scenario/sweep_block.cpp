#include "scenario/sweep_block.hpp"

#include <cstddef>
#include <set>
#include <string>

#include "scenario/overrides.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

void check_pointer(const JsonValue::Member& member, const std::string& at, Problems& problems) {
  if (is_known_pointer(member.key)) return;
  const std::string nearest = closest_known_pointer(member.key);
  problems.add(
      {member.key_origin, at,
       text_for_message(JsonValue(member.key)) + " points to nothing in a scenario",
       nearest.empty() ? "such as \"/parallel/tensor\"" : "did you mean \"" + nearest + "\"?"},
      {pointer_join(at, nearest.empty() ? member.key : nearest)});
}

/// Complaint about `value`, which is not a non-empty object.
std::string object_complaint(const std::string& name, const JsonValue& value) {
  if (value.is_object()) return name + " is empty";
  return name + " is " + text_for_message(value) + ", which is not an object";
}

/// True if the matrix has no such pointer, as far as it could be read; a misspelt one counts as what was meant.
bool is_missing_in(const JsonValue* matrix, const std::string& key, const std::string& at,
                   const Problems& problems) {
  if (matrix == nullptr || !matrix->is_object() || problems.is_spoiled(at)) return false;
  return matrix->find(key) == nullptr && !problems.is_spoiled(pointer_join(at, key));
}

/// Needed unless points are listed.
void check_matrix(ObjectReader& reader) {
  const bool is_needed = !reader.has("points") && !reader.has("include");
  JsonValue* matrix =
      is_needed
          ? reader.require("matrix", "an object with lists of values by JSON pointer; or points")
          : reader.take("matrix");
  if (matrix == nullptr) return;
  const std::string at = pointer_join(reader.pointer(), "matrix");
  if (!matrix->is_object() || matrix->object().empty()) {
    reader.problem("matrix", object_complaint("matrix", *matrix), "write {\"/nodes\": [8, 16]}");
    return;
  }
  for (const JsonValue::Member& member : matrix->object()) {
    check_pointer(member, at, reader.problems());
    if (!member.value.is_array() || member.value.array().empty())
      reader.problems().add(
          {member.value.origin, pointer_join(at, member.key),
           member.value.is_array()
               ? std::string("the list is empty")
               : "the values are " + text_for_message(member.value) + ", which is not a list",
           "write [ ... ]"});
  }
}

/// The name of a point, which no other has.
void check_label(ObjectReader point, std::set<std::string>& known) {
  const JsonValue* given = point.take("label");
  if (given == nullptr) return;
  const std::string label = point.required_string("label");
  if (given->is_string() && label.empty())
    point.problem("label", "the label is empty", "write a name, or leave it out");
  else if (!known.insert(label).second && !label.empty())
    point.problem("label", "another point is called \"" + label + "\" too");
}

/// As SweepPoints has at most.
constexpr int most_points = 10'000'000;

/// A label, the number of a point, or its values.
void check_baseline(ObjectReader& reader) {
  const JsonValue* baseline = reader.take("baseline");
  if (baseline == nullptr || baseline->is_string()) return;
  if (baseline->is_integer())
    reader.required_int("baseline", 0, most_points - 1);
  else if (!baseline->is_object() || baseline->object().empty())
    reader.problem("baseline", object_complaint("baseline", *baseline),
                   "write the label of a point, its number, or its values: {\"/nodes\": 8}");
}

/// A list of objects with pointers as keys; those of `exclude` must be in the matrix, others may have a label of `labels`.
void check_points(ObjectReader& reader, const char* key, std::set<std::string>& labels) {
  JsonValue* points = reader.take(key);
  if (points == nullptr) return;
  const std::string at = pointer_join(reader.pointer(), key);
  if (!points->is_array()) {
    reader.problem(key,
                   std::string(key) + " is " + text_for_message(*points) + ", which is not a list",
                   "write [ {\"/nodes\": 8} ]");
    return;
  }
  const JsonValue* matrix = reader.value().find("matrix");
  const std::string of_matrix = pointer_join(reader.pointer(), "matrix");
  for (std::size_t i = 0; i < points->array().size(); ++i) {
    JsonValue& point = points->array()[i];
    const std::string here = pointer_join(at, std::to_string(i));
    if (!point.is_object() || point.object().empty()) {
      reader.problems().add(
          {point.origin, here, object_complaint("the point", point), "write {\"/nodes\": 8}"});
      continue;
    }
    const bool is_excluded = std::string(key) == "exclude";
    if (!is_excluded) check_label(ObjectReader(point, here, reader.problems()), labels);
    for (const JsonValue::Member& member : point.object()) {
      if (!is_excluded && member.key == "label") continue;
      if (!is_excluded)
        check_pointer(member, here, reader.problems());
      else if (is_missing_in(matrix, member.key, of_matrix, reader.problems()))
        reader.problems().add({member.key_origin,
                               here,
                               text_for_message(JsonValue(member.key)) + " is not in the matrix",
                               {}});
    }
  }
}

}  // namespace

SweepChoices check_sweep(ObjectReader reader) {
  check_matrix(reader);
  std::set<std::string> labels;
  for (const char* key : {"exclude", "include", "points"}) check_points(reader, key, labels);
  check_baseline(reader);
  SweepChoices
      choices;  // what is not given is not written back: results are kept under the hash of the block
  given(reader, "objective", choices.objective);
  given(reader, "plan", choices.plan);
  reader.reject_unknown_keys();
  return choices;
}

}  // namespace windtunnel
