#include <cstdint>
#include <memory>
#include <utility>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "scenario/key_table.hpp"

namespace windtunnel {
namespace {

JsonValue json(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"table of keys", text}), problems);
  WT_ENSURE(problems.empty());
  return value;
}

JsonValue type(const char* name, bool or_null) {
  return or_null ? JsonValue(JsonValue::Array{JsonValue(std::string(name)),
                                              JsonValue(std::string("null"))})
                 : JsonValue(std::string(name));
}

/// What is allowed: one value. Words that are listed elsewhere stand beside the reference, and null does not.
JsonValue allowed(const Key& key, bool or_null) {
  const KeyValue& value = key.value;
  JsonValue schema = empty_object();
  if (value.kind == KeyValue::Kind::flag) schema.set("type", type("boolean", or_null));
  if (value.kind == KeyValue::Kind::whole_number) {
    schema.set("type", type("integer", or_null));
    schema.set("minimum", JsonValue(std::int64_t{value.least}));
    schema.set("maximum", JsonValue(std::int64_t{value.most}));
  }
  if (value.kind != KeyValue::Kind::word) return schema;
  JsonValue::Array words;
  for (const std::string& word : value.words) words.emplace_back(word);
  if (!key.words_at.empty())
    schema.set("$ref", JsonValue("#/definitions/" + key.words_at));
  else if (or_null)
    words.emplace_back();
  schema.set("enum", JsonValue(std::move(words)));
  return schema;
}

/// What is allowed, null and all other forms too.
JsonValue allowed_in_all(const Key& key) {
  if (key.words_at.empty() && key.also.empty()) return allowed(key, true);
  JsonValue::Array choices;
  if (key.value.kind != KeyValue::Kind::other) choices.push_back(allowed(key, true));
  if (!key.words_at.empty()) choices.push_back(json(R"({"type": "null"})"));
  JsonValue others = json(key.also.empty() ? "[]" : key.also);
  for (JsonValue& other : others.array()) choices.push_back(std::move(other));
  JsonValue schema = empty_object();
  schema.set("anyOf", JsonValue(std::move(choices)));
  return schema;
}

JsonValue described(const std::string& meaning, const Key& key) {
  JsonValue schema = empty_object();
  schema.set("description", JsonValue(meaning));
  if (!key.unit.empty()) schema.set("x-unit", JsonValue(key.unit));
  return schema;
}

void set_example(JsonValue& schema, const std::string& example) {
  schema.set("examples", JsonValue(JsonValue::Array{json(example)}));
}

/// The value that a plan begins with.
JsonValue default_of(const Key& key) {
  const int value = key.value.get({});
  const std::string text = text_of(key, value);
  return key.value.kind == KeyValue::Kind::word ? JsonValue(text) : json(text);
}

}  // namespace

JsonValue schema_of(const Key& key) {
  JsonValue schema = described(key.meaning, key);
  merge_json(schema, allowed_in_all(key));
  if (!key.fallback_words.empty())
    schema.set("x-default", JsonValue(key.fallback_words));
  else if (key.absent == Absent::fallback)
    schema.set("default", default_of(key));
  set_example(schema, key.example);
  return schema;
}

JsonValue schema_of(const SearchKey& key) {
  JsonValue schema = described(key.meaning, *key.key);
  schema.set("type", type("array", true));
  schema.set("minItems", JsonValue(std::int64_t{1}));
  schema.set("items", allowed(*key.key, false));
  schema.set("x-default", JsonValue(key.fallback_words));
  set_example(schema, key.example);
  return schema;
}

}  // namespace windtunnel
