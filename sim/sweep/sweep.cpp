#include "sweep/sweep.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/hash.hpp"
#include "core/object_reader.hpp"
#include "scenario/overrides.hpp"
#include "scenario/scenario_files.hpp"
#include "scenario/sweep_json.hpp"

namespace windtunnel {
namespace {

/// The scenarios that a schema published for them calls by no name: nothing of these acts on the result.
constexpr const char* labels[] = {"$schema", "search"};

/// The order in which values apply so that none replaces another: the platform, then its network cards.
PointValues outer_first(PointValues values) {
  const auto depth = [](const std::string& pointer) {
    return std::count(pointer.begin(), pointer.end(), '/');
  };
  std::stable_sort(values.begin(), values.end(),
                   [&](const auto& a, const auto& b) { return depth(a.first) < depth(b.first); });
  return values;
}

/// The swept pointer whose values replace what --set puts at `pointer`; empty when there is none.
std::string replaced_by(const std::string& pointer, const SweepPoints& points) {
  for (const std::string& column : points.columns())
    if (lies_inside(pointer, column)) return column;
  return points.all_set(pointer) ? pointer : "";
}

}  // namespace

Sweep::Sweep(const std::filesystem::path& file, const Library& library, const ReadOptions& options)
    : library_(library),
      folder_(file.parent_path()),
      seed_(options.seed),
      base_(merged_scenario(file, library, options)),
      name_(base_.find("name")->string()),
      points_(take_sweep(file)) {
  expect_effect(options.overrides);
}

void Sweep::expect_effect(const Overrides& overrides) const {
  Problems problems;
  for (const auto& [pointer, text] : overrides) {
    const std::string column = replaced_by(pointer, points_);
    if (column.empty()) continue;
    const JsonValue value = value_of_override(pointer, text, problems);
    problems.add({value.origin, pointer,
                  "the sweep replaces " + column + ", and with it --set " + pointer,
                  "write --set '" + pointer_join("/sweep/matrix", pointer) + "=[" +
                      canonical_text(value) + "]'"});
  }
  problems.throw_if_any();
}

JsonValue Sweep::take_sweep(const std::filesystem::path& file) {
  JsonValue* const found = base_.find("sweep");
  if (found == nullptr || found->is_null())
    throw InputError({{base_.origin,
                       {},
                       file_name_of(file) + " has no sweep: which values to try",
                       R"(add "sweep": {"matrix": {"/nodes": [8, 16, 32]}})"}});
  Problems problems;
  check_sweep(ObjectReader(*found, "/sweep", problems));
  problems.throw_if_any();
  written_ = base_;
  JsonValue block = std::move(*found);
  base_.erase("sweep");
  for (const char* label : labels) base_.erase(label);
  hash_ = hash_of_inputs(block);
  return block;
}

std::string Sweep::hash_of_inputs(const JsonValue& block) const {
  std::string text = canonical_text(base_) + canonical_text(block) + std::to_string(seed_);
  const auto add_files_behind = [&](const std::string& pointer, const JsonValue& value) {
    if (!value.is_string()) return;
    Problems ignored;  // each point will say it
    ScenarioFiles files(library_, folder_, ignored);
    JsonValue tree = base_;
    apply_value(tree, pointer, value, files, ignored);
    expand_names(tree, files);
    const JsonValue* content = find_at(tree, pointer);
    if (content != nullptr && content->is_object()) text += canonical_text(*content);
  };
  for (const JsonValue::Member& axis : block.find("matrix")->object())
    for (const JsonValue& value : axis.value.array()) add_files_behind(axis.key, value);
  if (const JsonValue* include = block.find("include"); include != nullptr && include->is_array())
    for (const JsonValue& point : include->array())
      for (const JsonValue::Member& member : point.object())
        add_files_behind(member.key, member.value);
  return fnv1a_128_hex(text);
}

Scenario Sweep::scenario(std::size_t point) const {
  ReadOptions options;
  options.seed = seed_;
  options.values = outer_first(points_.values(point));
  return read_scenario(base_, folder_, library_, options);
}

void Sweep::expect_a_readable_point() const {
  std::vector<Problem> common;
  for (std::size_t point = 0; point < points_.size(); ++point) {
    try {
      scenario(point);
      return;
    } catch (const InputError& error) {
      const auto is_here = [&](const Problem& problem) {
        return std::any_of(
            error.problems().begin(), error.problems().end(), [&](const Problem& other) {
              return other.pointer == problem.pointer && other.message == problem.message;
            });
      };
      if (point == 0) common = error.problems();
      std::erase_if(common, [&](const Problem& problem) { return !is_here(problem); });
      if (common.empty()) return;
    }
  }
  throw InputError(common);
}

}  // namespace windtunnel
