#include "scenario/recompute_json.hpp"

#include <algorithm>
#include <string>

namespace windtunnel {
namespace {

std::string known_modules() {
  std::string names;
  for (const RecomputedModule module : RecomputedModules::all)
    names += (names.empty() ? "" : ", ") + std::string(name_of(module));
  return names;
}

/// Adds the module that `value` names.
void add_module(ObjectReader& reader, const std::string& key, const JsonValue& value,
                RecomputedModules& modules) {
  const auto found = std::find_if(RecomputedModules::all.begin(), RecomputedModules::all.end(),
                                  [&value](RecomputedModule module) {
                                    return value.is_string() && value.string() == name_of(module);
                                  });
  if (found != RecomputedModules::all.end()) return modules.add(*found);
  reader.problem(key, text_for_message(value) + " is no module that can be recomputed",
                 "one of " + known_modules());
}

}  // namespace

void read_recomputed_modules(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  const std::string name = key.name();
  const JsonValue* const list = reader.take(name);
  if (list == nullptr) return;
  if (!list->is_array() || list->array().empty())
    return reader.problem(name, "expected a list of at least one module",
                          "some of " + known_modules());
  if (reader.are_sound({"recompute"}) && choice.training.recompute != Recompute::selective)
    return reader.problem(name,
                          std::string("says what selective recomputation computes again, but "
                                      "recompute is \"") +
                              name_of(choice.training.recompute) + '"',
                          R"(write "recompute": "selective", or leave recompute_modules out)");
  RecomputedModules modules;
  for (const JsonValue& value : list->array()) add_module(reader, name, value, modules);
  choice.training.recompute_modules = modules;
}

}  // namespace windtunnel
