#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/contracts.hpp"
#include "platform/platform_json.hpp"

namespace windtunnel {
namespace {

constexpr std::string_view wildcard = "*";

std::optional<Source> parse_source(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto evidence = enumerator_named<Evidence>(text.substr(0, colon));
  const std::size_t start = text.find_first_not_of(' ', colon + 1);
  if (!evidence || start == std::string_view::npos) return std::nullopt;
  return Source{*evidence, std::string(text.substr(start))};
}

/// The entries of "source" as written, key -> Source; a single text stands under the wildcard.
Sources read_entries(ObjectReader& reader) {
  Sources entries;
  JsonValue* value = reader.take("source");
  if (value == nullptr) return entries;
  const auto read_one = [&](const std::string& key, const JsonValue& text, const std::string& at) {
    std::optional<Source> source;
    if (text.is_string()) source = parse_source(text.string());
    if (!source) {
      reader.problems().add({text.origin, at, "source of " + key + " does not say what kind it is",
                             "begin with \"measured: \", \"datasheet: \", \"fitted: \" or "
                             "\"assumed: \""});
      source = Source{};
    }
    entries.emplace(key, *source);
  };
  const std::string pointer = pointer_join(reader.pointer(), "source");
  if (!value->is_object()) {
    read_one(std::string(wildcard), *value, pointer);
    return entries;
  }
  for (const JsonValue::Member& member : value->object()) {
    read_one(member.key, member.value, pointer_join(pointer, member.key));
    if (member.key != wildcard && reader.value().find(member.key) == nullptr)
      reader.problems().add({member.key_origin,
                             pointer_join(pointer, member.key),
                             "source of " + member.key + ", but there is no such key here",
                             {}},
                            {pointer_join(reader.pointer(), member.key)});
  }
  return entries;
}

std::optional<Source> source_of(const JsonValue::Member& member, const Sources& entries) {
  if (member.value.origin.kind == OriginKind::command_line)
    return Source{Evidence::assumed, "given on the command line"};
  if (const auto own = entries.find(member.key); own != entries.end()) return own->second;
  if (const auto rest = entries.find(std::string(wildcard)); rest != entries.end())
    return rest->second;
  return std::nullopt;
}

}  // namespace

bool carries_number(const JsonValue& value) {
  if (value.is_string())
    return !value.string().empty() && value.string().front() >= '0' &&
           value.string().front() <= '9';
  if (value.is_array()) return std::ranges::any_of(value.array(), carries_number);
  return value.is_number();
}

Sources read_sources(ObjectReader& reader, const std::string& prefix) {
  Sources sources;
  const Sources entries = read_entries(reader);
  if (!reader.value().is_object()) return sources;
  for (const JsonValue::Member& member : reader.value().object()) {
    const JsonValue& value = member.value;
    if (member.key == "name" || member.key == "description" || member.key == "source" ||
        value.origin.kind == OriginKind::defaulted || !carries_number(value))
      continue;
    if (const std::optional<Source> source = source_of(member, entries)) {
      sources.emplace(prefix + member.key, *source);
    } else {
      const std::vector<std::string> nothing;  // the number itself is none the worse
      reader.problems().add({value.origin, pointer_join(reader.pointer(), member.key),
                             member.key + " has no source, and every number needs one",
                             "add \"source\": {\"" + member.key + "\": \"assumed: why\"}"},
                            nothing);
    }
  }
  return sources;
}

void set_source(JsonValue& object, const std::string& key, const std::string& source) {
  const JsonValue* old = object.find("source");
  if (old == nullptr || !old->is_object()) {
    JsonValue sources{JsonValue::Object{}};
    if (old != nullptr) sources.set("*", *old);
    object.set("source", std::move(sources));
  }
  object.find("source")->set(key, JsonValue(source));
}

std::string read_preamble(ObjectReader& reader) {
  reader.take("$schema");
  return reader.has("description") ? reader.required_text("description") : std::string{};
}

}  // namespace windtunnel
