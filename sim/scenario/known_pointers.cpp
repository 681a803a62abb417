#include "scenario/known_pointers.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "scenario/compression_json.hpp"
#include "scenario/key_table.hpp"
#include "scenario/library_files.hpp"

namespace windtunnel {
namespace {

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

bool holds_objects(const JsonValue& value) {
  return std::ranges::any_of(value.array(), [](const JsonValue& each) { return each.is_object(); });
}

void add_values(const JsonValue& value, const std::string& pointer, Values& values) {
  if (value.is_object()) {
    for (const JsonValue::Member& member : value.object())
      if (std::ranges::find(describing, member.key) == describing.end())
        add_values(member.value, pointer + "/" + member.key, values);
  } else if (value.is_array() && holds_objects(value)) {
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
    const std::vector<std::string> names = library.names(part.kind->name);
    if (std::ranges::find(names, name->string()) != names.end())
      values.emplace_back(std::string("/") + part.key, name->string());
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settable_values(const Scenario& scenario,
                                                                 const Library& library) {
  Values values;
  add_names(scenario.resolved, library, values);
  add_values(scenario.resolved, "", values);
  for (const std::string& pointer : known_pointers())
    if (find_at(scenario.resolved, pointer) == nullptr && pointer != "/version")
      values.emplace_back(pointer, "null");
  return values;
}

namespace {

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
