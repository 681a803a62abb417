#include "scenario/overrides.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "scenario/key_table.hpp"
#include "scenario/plan_json.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"

namespace windtunnel {
namespace {

bool leads_through(const std::string& pointer, const std::string& part) {
  return pointer.empty() || pointer.starts_with(part + "/");
}

void expand_node_types(JsonValue& platform, ScenarioFiles& files, const std::string& pointer) {
  JsonValue* const types = platform.find("node_types");
  if (types == nullptr || !types->is_array()) return;
  for (std::size_t i = 0; i < types->array().size(); ++i) {
    JsonValue& type = types->array()[i];
    const std::string part = "/platform/node_types/" + std::to_string(i);
    if (type.is_object() && leads_through(pointer, part)) files.expand_node_type(type, part);
    JsonValue* const device = type.find("device");
    if (device != nullptr && leads_through(pointer, part + "/device"))
      files.expand(*device, device_files, part + "/device");
  }
}

/// A file in place of its path; what is no path stays.
void expand_path(JsonValue& scenario, ScenarioFiles& files, const std::string& pointer,
                 const std::string& part, const LibraryKind& kind) {
  JsonValue* const value = find_at(scenario, part);
  if (value == nullptr || !value->is_string() || !looks_like_path(value->string())) return;
  if (leads_through(pointer, part)) files.expand(*value, kind, part);
}

std::shared_ptr<const SourceText> source_of(const std::string& pointer, const std::string& text) {
  return std::make_shared<const SourceText>(SourceText{"--set " + pointer + "=" + text, text});
}

Origin origin_of(const std::shared_ptr<const SourceText>& source) {
  return {OriginKind::command_line, source, 1, 1, static_cast<int>(source->text.size())};
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

using Values = std::vector<std::pair<std::string, std::string>>;

/// Keys that say something of a value, or of the file.
constexpr std::array<std::string_view, 5> describing{"source", "description", "$schema", "version",
                                                     "sweep"};

/// A string as --set takes it: in quotes only where it would be read as a number or the like.
std::string text_of(const JsonValue& value) {
  if (!value.is_string()) return canonical_text(value);
  Problems problems;
  parse_json(std::make_shared<const SourceText>(SourceText{"value", value.string()}), problems);
  return problems.empty() ? canonical_text(value) : value.string();
}

void add_values(const JsonValue& value, const std::string& pointer, Values& values) {
  if (value.is_object()) {
    for (const JsonValue::Member& member : value.object())
      if (std::ranges::find(describing, member.key) == describing.end())
        add_values(member.value, pointer + "/" + member.key, values);
  } else if (value.is_array() &&
             std::ranges::any_of(value.array(), std::mem_fn(&JsonValue::is_object))) {
    for (std::size_t i = 0; i < value.array().size(); ++i)
      add_values(value.array()[i], pointer + "/" + std::to_string(i), values);
  } else {
    values.emplace_back(pointer, text_of(value));
  }
}

/// "/model=gpt-39b" for each part that has the name of a file of the library.
void add_names(const JsonValue& resolved, const Library& library, Values& values) {
  for (const NamedPart& part : named_parts) {
    const JsonValue* const content = resolved.find(part.key);
    const JsonValue* const name = content == nullptr ? nullptr : content->find("name");
    if (name == nullptr || !name->is_string()) continue;
    if (std::ranges::count(library.names(part.kind->name), name->string()) > 0)
      values.emplace_back(std::string("/") + part.key, name->string());
  }
}

/// Blocks whose inner pointers are allowed here and checked by their own readers.
bool lies_in_open_block(const std::string& pointer) {
  for (const char* block :
       {"/model/", "/platform/", "/software/", "/parallel/stage_layers/", "/parallel/placement/",
        "/job/", "/noise/", "/neighbours/", "/training/recompute_layers/"})
    if (pointer.starts_with(block)) return true;
  const std::vector<std::string>& leaves = known_pointers();
  return std::ranges::any_of(leaves, [&](const std::string& leaf) {
    return leaf.starts_with("/compression/") && pointer.starts_with(leaf + "/");
  });
}

std::string last_key(const std::string& pointer) { return pointer.substr(pointer.rfind('/') + 1); }

}  // namespace

JsonValue value_of_override(const std::string& pointer, const std::string& text,
                            Problems& problems) {
  const auto source = source_of(pointer, text);
  problems.begin_source(*source);
  Problems syntax;
  JsonValue value = parse_json(source, syntax, OriginKind::command_line);
  const bool meant_as_json =
      text.starts_with('{') || text.starts_with('[') || text.starts_with('"');
  if (!value.origin.source) value.origin = origin_of(source);
  if (syntax.empty()) return value;
  if (!meant_as_json) return JsonValue(text, origin_of(source));
  problems.append(syntax, pointer);
  return value;  // what could be read of it, so that nothing is said twice
}

bool lies_inside(const std::string& inner, const std::string& outer) {
  return inner.starts_with(outer + "/");
}

void expect_independent(const Overrides& overrides) {
  Problems problems;
  for (const auto& [inner, text] : overrides)
    for (const auto& [outer, whole] : overrides)
      if (lies_inside(inner, outer))
        problems.add({origin_of(source_of(inner, text)), inner,
                      "--set " + outer + " replaces the whole that " + inner + " is part of",
                      "write the value of " + inner + " inside that of " + outer +
                          ", or one of them into a file"});
  problems.throw_if_any();
}

Overrides laid_over(const Overrides& earlier, const Overrides& later, const JsonValue& resolved) {
  Overrides all;
  for (const auto& kept : earlier) {
    const bool is_replaced = std::ranges::any_of(later, [&](const auto& change) {
      return change.first == kept.first || lies_inside(kept.first, change.first);
    });
    if (!is_replaced) all.push_back(kept);
  }
  const auto lies_in_any = [](const std::string& inner, const Overrides& outer) {
    return std::ranges::any_of(outer,
                               [&](const auto& each) { return lies_inside(inner, each.first); });
  };
  const bool writes_out = std::ranges::any_of(later, [&](const auto& change) {
    return lies_in_any(change.first, all) || lies_in_any(change.first, later);
  });
  JsonValue changed = writes_out ? resolved : JsonValue{};
  Problems ignored;  // whoever asks for the changes has read them
  for (const auto& [pointer, text] : later) {
    const auto around = std::ranges::find_if(
        all, [&, &inner = pointer](const auto& kept) { return lies_inside(inner, kept.first); });
    if (writes_out) set_at(changed, pointer, value_of_override(pointer, text, ignored));
    if (around == all.end())
      all.emplace_back(pointer, text);
    else
      around->second = canonical_text(*find_at(changed, around->first));
  }
  return all;
}

void expand_names(JsonValue& scenario, ScenarioFiles& files, const std::string& pointer) {
  for (const NamedPart& named : named_parts) {
    const std::string part = std::string("/") + named.key;
    JsonValue* const value = scenario.find(named.key);
    if (value == nullptr || !leads_through(pointer, part)) continue;
    files.expand(*value, *named.kind, part);
    if (named.kind == &platform_files) expand_node_types(*value, files, pointer);
  }
  expand_path(scenario, files, pointer, "/parallel/schedule", schedule_files);
  expand_path(scenario, files, pointer, "/memory_correction", memory_files);
}

void apply_value(JsonValue& scenario, const std::string& pointer, JsonValue value,
                 ScenarioFiles& files, Problems& problems) {
  const Origin origin = value.origin;
  if (!pointer.starts_with('/') || pointer.ends_with('/') || pointer == "/extends") {
    const std::string nearest = closest_known_pointer(pointer);
    problems.add({origin,
                  {},
                  "\"" + pointer + "\" is no JSON pointer to a value of a scenario",
                  nearest.empty() ? "such as /parallel/tensor" : "did you mean " + nearest + "?"},
                 nearest.empty() ? std::vector<std::string>{} : std::vector{nearest});
    return;
  }
  if (pointer == "/model/extends")  // what is named is already laid over what it extends
    return problems.add({origin, pointer, "a model's extends cannot be changed alone",
                         R"(write the model: '/model={"extends": "llama3-70b", "layers": 20}')"});
  if (pointer.starts_with("/platform/node_types/") && pointer.ends_with("/extends"))
    return problems.add({origin, pointer, "a node type's extends cannot be changed alone",
                         "change the platform's file, or write /platform/node_types whole"});
  expand_names(scenario, files, pointer);
  const std::string software = "/software";
  JsonValue* const profile = find_at(scenario, software);
  if (pointer.starts_with(software + "/") && profile != nullptr && profile->is_object())
    win_over_exceptions(*profile, pointer.substr(software.size()), value);
  // Null where nothing is leaves things as they are at a known key; elsewhere it is a misspelling for the reader to find.
  if (value.is_null() &&
      (erase_at(scenario, pointer) || std::ranges::count(known_pointers(), pointer) > 0))
    return;
  if (!set_at(scenario, pointer, std::move(value)))
    problems.add({origin, pointer, why_unreachable(scenario, pointer), {}});
}

void apply_override(JsonValue& scenario, const std::string& pointer, const std::string& text,
                    ScenarioFiles& files, Problems& problems) {
  apply_value(scenario, pointer, value_of_override(pointer, text, problems), files, problems);
}

std::vector<std::pair<std::string, std::string>> settable_values(const Scenario& scenario,
                                                                 const Library& library) {
  Values values;
  add_names(scenario.resolved, library, values);
  add_values(scenario.resolved, "", values);
  // Values in the files of second jobs are not the scenario's.
  std::erase_if(values, [](const auto& value) {
    return value.first.starts_with("/neighbours/") &&
           value.first.find("/scenario/") != std::string::npos;
  });
  for (const std::string& pointer : known_pointers())
    if (find_at(scenario.resolved, pointer) == nullptr && pointer != "/version")
      values.emplace_back(pointer, "null");
  return values;
}

const std::vector<std::string>& known_pointers() {
  static const std::vector<std::string> pointers = [] {
    std::vector<std::string> all{"/version", "/name",     "/model",       "/platform",
                                 "/nodes",   "/software", "/compression", "/memory_correction",
                                 "/job",     "/noise",    "/neighbours"};
    for (const Key& key : key_table()) all.push_back(key.pointer);
    for (const char* traffic : compression_classes)
      all.push_back(std::string("/compression/") + traffic);
    return all;
  }();
  return pointers;
}

bool is_known_pointer(const std::string& pointer) {
  if (pointer == "/training" || pointer == "/parallel") return true;
  const std::vector<std::string>& leaves = known_pointers();
  return std::ranges::find(leaves, pointer) != leaves.end() || lies_in_open_block(pointer);
}

std::string closest_known_pointer(const std::string& text) {
  std::string slashed = text.starts_with('/') ? text : "/" + text;
  std::ranges::replace(slashed, '.', '/');
  const std::vector<std::string>& leaves = known_pointers();
  std::vector<std::string> keys;
  keys.reserve(leaves.size());
  for (const std::string& leaf : leaves) keys.push_back(last_key(leaf));
  // A key written alone, or in the wrong block, is found by its last name.
  const std::string key = closest_match(last_key(slashed), keys);
  std::string whole = closest_match(slashed, leaves);
  if (!whole.empty() && (key.empty() || last_key(whole) == key)) return whole;
  for (const std::string& leaf : leaves)
    if (!key.empty() && last_key(leaf) == key) return leaf;
  return whole;
}

}  // namespace windtunnel
