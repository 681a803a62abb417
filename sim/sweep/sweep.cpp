#include "sweep/sweep.hpp"

#include <algorithm>
#include <utility>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/hash.hpp"
#include "core/object_reader.hpp"
#include "evidence/evidence.hpp"
#include "scenario/overrides.hpp"
#include "scenario/scenario_files.hpp"

namespace windtunnel {
namespace {

using SweptValue = std::pair<std::string, JsonValue>;

/// Every value that some point sets.
std::vector<SweptValue> swept_values(const JsonValue& block) {
  std::vector<SweptValue> values;
  if (const JsonValue* matrix = block.find("matrix"); matrix != nullptr && matrix->is_object())
    for (const JsonValue::Member& axis : matrix->object())
      for (const JsonValue& value : axis.value.array()) values.emplace_back(axis.key, value);
  for (const char* key : {"include", "points"})
    if (const JsonValue* points = block.find(key); points != nullptr && points->is_array())
      for (const JsonValue& point : points->array())
        for (const JsonValue::Member& member : point.object())
          if (member.key.starts_with('/')) values.emplace_back(member.key, member.value);
  return values;
}

/// True if a point may set `job` or `job.plan` so that its job uses the best plan.
bool some_point_wants_best_plan(const JsonValue& block) {
  const std::vector<SweptValue> values = swept_values(block);
  return std::ranges::any_of(values, [](const SweptValue& swept) {
    JsonValue point(JsonValue::Object{}), job(JsonValue::Object{});
    if (swept.first == "/job") point.set("job", swept.second);
    if (swept.first == "/job/plan") {
      job.set("plan", swept.second);
      point.set("job", job);
    }
    return job_wants_best_plan(point);
  });
}

/// Content of the files that swept values name.
class SweptContent {
 public:
  struct Place {
    const Library& library;
    const std::filesystem::path& folder;
  };
  SweptContent(const JsonValue& base, std::vector<SweptValue> values, Place place)
      : base_(base), values_(std::move(values)), place_(place) {}

  std::string text() const {
    std::string text;
    for (const auto& [pointer, value] : values_) {
      if (!value.is_string() && !value.is_object() && !value.is_array()) continue;
      for (JsonValue& tree : trees_around(pointer)) {
        apply(tree, pointer, value);
        const JsonValue* content = find_at(tree, pointer);
        if (content != nullptr) text += canonical_text(*content);
      }
    }
    return text;
  }

 private:
  /// The scenarios that a value at `pointer` may be set in: the base, and with each swept value around it.
  std::vector<JsonValue> trees_around(const std::string& pointer) const {
    std::vector<JsonValue> trees{base_};
    for (const auto& [outer, value] : values_) {
      if (!lies_inside(pointer, outer)) continue;
      for (JsonValue& tree : trees_around(outer)) {
        apply(tree, outer, value);
        trees.push_back(std::move(tree));
      }
    }
    return trees;
  }

  void apply(JsonValue& tree, const std::string& pointer, const JsonValue& value) const {
    Problems ignored;  // each point will say it
    ScenarioFiles files(place_.library, place_.folder, ignored);
    apply_value(tree, pointer, value, files, ignored);
    expand_names(tree, files);
  }

  const JsonValue& base_;
  std::vector<SweptValue> values_;
  Place place_;
};

/// True if values of a point may put it right: what is missing, and degrees and batches that do not go together.
bool points_may_mend(const Problem& problem) {
  const std::string& pointer = problem.pointer;
  return problem.message.starts_with("missing key") ||
         (!problem.message.starts_with("unknown key") &&
          (is_at_or_in(pointer, "/parallel") || pointer == "/nodes" ||
           pointer == "/training/global_batch" || pointer == "/training/micro_batch"));
}

}  // namespace

Sweep::Sweep(const std::filesystem::path& file, const Library& library, const ReadOptions& options,
             PlanChooser chooser)
    : Sweep(merged_scenario(file, library, options), file.parent_path(), library, options,
            std::move(chooser)) {}

Sweep::Sweep(JsonValue merged, std::filesystem::path folder, const Library& library,
             const ReadOptions& options, PlanChooser chooser)
    : library_(library),
      folder_(std::move(folder)),
      seed_(options.seed),
      base_(std::move(merged)),
      name_(base_.find("name")->string()),
      chooser_(std::move(chooser)),
      points_(read_points()),
      template_(base_, folder_, library_) {
  expect_effect(options.overrides);
}

void Sweep::expect_effect(const Overrides& overrides) const {
  Problems problems;
  for (const auto& [pointer, text] : overrides) {
    // The swept pointer whose values replace what --set puts there.
    const auto outer = std::ranges::find_if(
        points_.columns(),
        [&inner = pointer](const std::string& each) { return lies_inside(inner, each); });
    if (outer == points_.columns().end() && !points_.all_set(pointer)) continue;
    const std::string column = outer == points_.columns().end() ? pointer : *outer;
    const JsonValue value = value_of_override(pointer, text, problems);
    problems.add({value.origin, pointer,
                  "the sweep replaces " + column + ", and with it --set " + pointer,
                  "write --set '" + pointer_join("/sweep/matrix", pointer) + "=[" +
                      canonical_text(value) + "]'"});
  }
  problems.throw_if_any();
}

SweepPoints Sweep::read_points() try {
  return SweepPoints(take_sweep());
} catch (const InputError& of_sweep) {
  Problems all;
  for (const Problem& problem : of_sweep.problems()) all.add(problem);
  for (Problem& problem : problems_around_sweep()) all.add(std::move(problem));
  throw InputError(all.in_order());
}

std::vector<Problem> Sweep::problems_around_sweep() const {
  try {
    read_with_any_plan(base_, [&](const PointValues& plan) {
      return read_scenario(base_, folder_, library_,
                           {{}, seed_, LeftToCaller::neighbours_and_placement, plan});
    });
  } catch (const UnsupportedError&) {
  } catch (const EnvironmentError&) {
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    std::erase_if(problems, [](const Problem& problem) {
      return is_at_or_in(problem.pointer, "/sweep") || points_may_mend(problem);
    });
    return problems;
  }
  return {};
}

JsonValue Sweep::take_sweep() {
  JsonValue* const found = base_.find("sweep");
  if (found == nullptr || found->is_null())
    throw InputError({{base_.origin,
                       {},
                       "\"" + name_ + "\" has no sweep: which values to try",
                       R"(add "sweep": {"matrix": {"/nodes": [8, 16, 32]}})"}});
  Problems problems;
  choices_ = check_sweep(ObjectReader(*found, "/sweep", problems));
  problems.throw_if_any();
  written_ = base_;
  JsonValue block = std::move(*found);
  base_.erase("sweep");
  base_.erase("$schema");
  if (choices_.plan == JobPlan::given && !job_wants_best_plan(base_) &&
      !some_point_wants_best_plan(block))
    base_.erase("search");
  JsonValue inputs = block;
  inputs.erase("baseline");  // rows do not depend on it
  std::string text = canonical_text(base_) + canonical_text(inputs) + std::to_string(seed_);
  if (const auto file = residuals_of(library_)) text += read_source(*file)->text;
  const SweptContent content(base_, swept_values(inputs), {library_, folder_});
  hash_ = fnv1a_128_hex(text + content.text());
  return block;
}

ReadOptions Sweep::options_of(std::size_t point) const {
  // In an order in which no value replaces another: the platform, then its network cards.
  PointValues values = points_.values(point);
  std::ranges::stable_sort(values, {},
                           [](const auto& value) { return std::ranges::count(value.first, '/'); });
  return {{}, seed_, LeftToCaller::nothing, std::move(values)};
}

JsonValue Sweep::written_plan(const PointValues& values) const {
  JsonValue written(JsonValue::Object{});
  for (const char* key : {"nodes", "parallel", "job"})
    if (const JsonValue* found = base_.find(key)) written.set(key, *found);
  Problems ignored;  // reading the point says it
  ScenarioFiles files(library_, folder_, ignored);
  for (const auto& [pointer, value] : values)
    for (const char* part : {"/nodes", "/parallel", "/job"})
      if (pointer == part || lies_inside(pointer, part))
        apply_value(written, pointer, value, files, ignored);
  return written;
}

Scenario Sweep::with_any_plan(const ReadOptions& options, const JsonValue& written) const {
  return read_with_any_plan(written, [&](const PointValues& plan) {
    ReadOptions with_plan = options;
    with_plan.values.insert(with_plan.values.end(), plan.begin(), plan.end());
    return template_.read(with_plan);
  });
}

Scenario Sweep::scenario(std::size_t point) const {
  const ReadOptions options = options_of(point);
  if (choices_.plan == JobPlan::given) return template_.read(options);
  return with_any_plan(options, written_plan(options.values));
}

Scenario Sweep::job_scenario(std::size_t point) const {
  const ReadOptions options = options_of(point);
  const JsonValue written = written_plan(options.values);
  if (choices_.plan == JobPlan::given && !job_wants_best_plan(written))
    return template_.read(options);
  return with_any_plan(options, written);
}

Scenario Sweep::planned(Scenario scenario) const {
  if (choices_.plan == JobPlan::given) return scenario;
  WT_EXPECT(chooser_ != nullptr);
  // Points are compared by the sweep's objective, so that their plans are chosen by it too.
  if (scenario.search.objective == Objective::time) scenario.search.objective = choices_.objective;
  return chooser_(std::move(scenario));
}

std::vector<std::string> Sweep::asked_figures() const {
  std::vector<std::string> figures;
  if (points_.baseline()) figures.emplace_back(speedup_key);
  if (choices_.plan == JobPlan::best) figures.emplace_back("plan");
  // Every row has these two.
  if (choices_.objective == Objective::cost_per_token ||
      choices_.objective == Objective::energy_per_token || choices_.objective == Objective::days)
    figures.emplace_back(name_of(choices_.objective));
  // Days against money, where points are compared as alternatives for a job.
  const bool compares_jobs = figures.size() > (points_.baseline() ? 1 : 0);
  if (!compares_jobs || find_at(base_, "/job/price") == nullptr) return figures;
  if (choices_.objective != Objective::days) figures.emplace_back("days");
  figures.emplace_back("cost");
  return figures;
}

void Sweep::expect_a_readable_point(Scenario (Sweep::*read)(std::size_t point) const) const {
  std::vector<Problem> common;
  for (std::size_t point = 0; point < points_.size(); ++point) {
    try {
      (this->*read)(point);
      return;
    } catch (const InputError& error) {
      const auto is_here = [&](const Problem& problem) {
        return std::ranges::any_of(error.problems(), [&](const Problem& other) {
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
