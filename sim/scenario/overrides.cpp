#include "scenario/overrides.hpp"

#include <array>
#include <memory>
#include <utility>

#include "scenario/known_pointers.hpp"

namespace windtunnel {
namespace {

struct NamedPart {
  const char* key;
  const LibraryKind* kind;
};
constexpr std::array named_parts{NamedPart{"model", &model_files},
                                 NamedPart{"platform", &platform_files},
                                 NamedPart{"software", &software_files}};

bool leads_through(const std::string& pointer, const std::string& part) {
  return pointer.empty() || pointer.starts_with(part + "/");
}

void expand_devices(JsonValue& platform, ScenarioFiles& files, const std::string& pointer) {
  JsonValue* const types = platform.find("node_types");
  if (types == nullptr || !types->is_array()) return;
  for (std::size_t i = 0; i < types->array().size(); ++i) {
    const std::string part = "/platform/node_types/" + std::to_string(i) + "/device";
    JsonValue* const device = types->array()[i].find("device");
    if (device != nullptr && leads_through(pointer, part))
      files.expand(*device, device_files, part);
  }
}

/// A file in place of its path; what is no path stays.
void expand_path(JsonValue& scenario, ScenarioFiles& files, const std::string& pointer,
                 const std::string& part, const LibraryKind& kind) {
  JsonValue* const value = find_at(scenario, part);
  if (value == nullptr || !value->is_string() || !looks_like_path(value->string())) return;
  if (leads_through(pointer, part)) files.expand(*value, kind, part);
}

JsonValue parse_value(const std::shared_ptr<const SourceText>& source, Problems& problems) {
  Problems syntax;
  JsonValue value = parse_json(source, syntax, OriginKind::command_line);
  const std::string& text = source->text;
  const bool meant_as_json =
      text.starts_with('{') || text.starts_with('[') || text.starts_with('"');
  if (syntax.empty()) return value;
  if (meant_as_json)
    for (const Problem& problem : syntax.all()) problems.add(problem);
  return JsonValue(text,
                   Origin{OriginKind::command_line, source, 1, 1, static_cast<int>(text.size())});
}

/// "there is nothing at /training/x/y: /training/x is an integer".
std::string why_unreachable(JsonValue& scenario, const std::string& pointer) {
  for (std::string part = pointer; !part.empty();) {
    part.erase(part.rfind('/'));
    const JsonValue* reached = find_at(scenario, part);
    if (reached == nullptr) continue;
    std::string what = reached->kind_name();
    if (reached->is_array())
      what += " of " + std::to_string(reached->array().size()) + ", counted from 0";
    return "nothing can be set there: " + (part.empty() ? "the scenario" : part) + " is " + what;
  }
  return "nothing can be set there";
}

}  // namespace

void expand_names(JsonValue& scenario, ScenarioFiles& files, const std::string& pointer) {
  for (const NamedPart& named : named_parts) {
    const std::string part = std::string("/") + named.key;
    JsonValue* const value = scenario.find(named.key);
    if (value == nullptr || !leads_through(pointer, part)) continue;
    files.expand(*value, *named.kind, part);
    if (named.kind == &platform_files) expand_devices(*value, files, pointer);
  }
  expand_path(scenario, files, pointer, "/parallel/schedule", schedule_files);
  expand_path(scenario, files, pointer, "/memory_correction", memory_files);
}

void apply_value(JsonValue& scenario, const std::string& pointer, JsonValue value,
                 ScenarioFiles& files, Problems& problems) {
  const Origin origin = value.origin;
  expand_names(scenario, files, pointer);
  JsonValue* const parent = find_at(scenario, pointer.substr(0, pointer.rfind('/')));
  const std::string key = pointer.substr(pointer.rfind('/') + 1);
  if (value.is_null() && parent != nullptr && parent->is_object() && parent->erase(key)) return;
  if (!set_at(scenario, pointer, std::move(value)))
    problems.add({origin, pointer, why_unreachable(scenario, pointer), {}});
}

void apply_override(JsonValue& scenario, const std::string& pointer, const std::string& text,
                    ScenarioFiles& files, Problems& problems) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"--set " + pointer + "=" + text, text});
  const Origin origin{OriginKind::command_line, source, 1, 1, static_cast<int>(text.size())};
  if (!pointer.starts_with('/') || pointer.ends_with('/') || pointer == "/extends") {
    const std::string nearest = closest_known_pointer(pointer);
    problems.add({origin,
                  {},
                  "\"" + pointer + "\" is no JSON pointer to a value of a scenario",
                  nearest.empty() ? "such as /parallel/tensor" : "did you mean " + nearest + "?"});
    return;
  }
  JsonValue value = parse_value(source, problems);
  if (!value.origin.source) value.origin = origin;
  apply_value(scenario, pointer, std::move(value), files, problems);
}

}  // namespace windtunnel
