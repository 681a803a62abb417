#include "scenario/platform_overlay.hpp"

#include <string>
#include <utility>
#include <vector>

namespace windtunnel {
namespace {

constexpr const char* source_key = "source";
constexpr const char* no_source = "assumed: changed in the file that extends this one";

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

namespace {

/// Takes a key out of an object that is laid over another, and its source with it.
void erase_with_source(JsonValue& object, const std::string& path) {
  if (!erase_at(object, path)) return;
  const std::size_t key = path.rfind('/') + 1;
  const JsonValue* sources = find_at(object, path.substr(0, key) + source_key);
  if (sources != nullptr && sources->is_object())
    erase_at(object, path.substr(0, key) + source_key + "/" + path.substr(key));
}

/// The objects of a list; none where there is no such list.
std::vector<JsonValue*> objects_of(JsonValue* list) {
  std::vector<JsonValue*> objects;
  if (list == nullptr || !list->is_array()) return objects;
  for (JsonValue& each : list->array())
    if (each.is_object()) objects.push_back(&each);
  return objects;
}

/// Of a profile, or of what a release lays over it.
void win_over_experts_elsewhere(JsonValue& profile, const std::string& path) {
  const std::string experts = "/experts";
  if (!path.starts_with(experts + "/") || path.starts_with(experts + "/elsewhere")) return;
  for (JsonValue* entry : objects_of(find_at(profile, experts + "/elsewhere")))
    erase_with_source(*entry, path.substr(experts.size()));
}

/// For each value in an object that is laid over a profile.
void win_over_exceptions_in(JsonValue& software, const std::string& path, const JsonValue& object) {
  for (const JsonValue::Member& member : object.object()) {
    const std::string place = pointer_join(path, member.key);
    if (is_text(member.key) || member.key == "elsewhere") continue;
    if (member.value.is_object())
      win_over_exceptions_in(software, place, member.value);
    else
      win_over_exceptions(software, place, member.value);
  }
}

}  // namespace

void win_over_exceptions(JsonValue& software, const std::string& path, const JsonValue& value) {
  if (path.starts_with("/release")) return;  // which release it is, and what releases there are
  win_over_experts_elsewhere(software, path);
  const std::string memory = "/memory";  // whose keys a release has beside the others
  for (JsonValue* release : objects_of(software.find("releases"))) {
    win_over_experts_elsewhere(*release, path);
    erase_with_source(*release, path.starts_with(memory + "/") ? path.substr(memory.size()) : path);
  }
  for (const std::string& direction : {std::string("forward"), std::string("backward")})
    if (path == "/flash_" + direction + "_efficiency")
      for (JsonValue* entry : objects_of(software.find("flash_elsewhere")))
        entry->set(direction + "_efficiency", value);
}

void overlay_software(JsonValue& base, const JsonValue& overlay) {
  win_over_exceptions_in(base, {}, overlay);
  overlay_platform(base, overlay);
}

}  // namespace windtunnel
