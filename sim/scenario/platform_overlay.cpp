#include "scenario/platform_overlay.hpp"

#include <string>
#include <utility>

namespace windtunnel {
namespace {

constexpr const char* source_key = "source";
constexpr const char* no_source = "assumed: changed in the platform that extends this one";

/// The source of `key` as `object` gives it: its own, or that of all; null where there is none.
const JsonValue* source_in(const JsonValue& object, const std::string& key) {
  const JsonValue* sources = object.find(source_key);
  if (sources == nullptr || !sources->is_object()) return sources;
  const JsonValue* own = sources->find(key);
  return own != nullptr ? own : sources->find("*");
}

/// A single text as that of all keys.
JsonValue by_key(const JsonValue* sources) {
  if (sources != nullptr && sources->is_object()) return *sources;
  JsonValue result{JsonValue::Object{}};
  if (sources != nullptr) result.set("*", *sources);
  return result;
}

bool is_text(const std::string& key) {
  return key == source_key || key == "name" || key == "description" || key == "$schema";
}

/// The sources of an object after `overlay` is laid over it. Only where it has numbers, which objects in it do not count for.
void merge_sources(JsonValue& base, const JsonValue& overlay) {
  if (base.find(source_key) == nullptr) return;
  JsonValue merged = by_key(base.find(source_key));
  for (const JsonValue::Member& member : overlay.object()) {
    if (is_text(member.key) || member.value.is_object()) continue;
    if (member.value.is_array() && base.find(member.key) != nullptr) continue;  // merged one by one
    if (member.value.is_null()) {
      merged.erase(member.key);
      continue;
    }
    const JsonValue* own = source_in(overlay, member.key);
    merged.set(member.key, own != nullptr ? *own : JsonValue(std::string(no_source)));
  }
  base.set(source_key, std::move(merged));
}

void overlay_list(JsonValue::Array& base, const JsonValue::Array& overlay) {
  for (std::size_t i = 0; i < overlay.size(); ++i) {
    if (i >= base.size())
      base.push_back(overlay[i]);
    else if (base[i].is_object() && overlay[i].is_object())
      overlay_platform(base[i], overlay[i]);
    else
      base[i] = overlay[i];
  }
}

}  // namespace

void overlay_platform(JsonValue& base, const JsonValue& overlay) {
  merge_sources(base, overlay);
  const bool has_sources = base.find(source_key) != nullptr;
  for (const JsonValue::Member& member : overlay.object()) {
    if (member.key == source_key && has_sources) continue;
    JsonValue* const target = base.find(member.key);
    if (target != nullptr && target->is_object() && member.value.is_object())
      overlay_platform(*target, member.value);
    else if (target != nullptr && member.key == "node_types" && target->is_array() &&
             member.value.is_array())
      overlay_list(target->array(), member.value.array());
    else if (!member.value.is_null() || !base.erase(member.key))
      base.set(member.key, member.value, member.key_origin);
  }
}

}  // namespace windtunnel
