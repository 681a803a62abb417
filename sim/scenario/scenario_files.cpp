#include "scenario/scenario_files.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/number_in.hpp"

namespace windtunnel {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_extends_depth = 16;
constexpr std::size_t max_bytes = std::size_t{64} << 20;  ///< of all files that one scenario names
constexpr std::size_t max_copied_values = max_json_values;  ///< of files named again
constexpr std::size_t max_files =
    256;  ///< two files that each extend two files, and so on, end here

/// Number of values in a JSON value, itself included.
std::size_t count_values(const JsonValue& value) {
  std::size_t count = 1;
  if (value.is_array())
    for (const JsonValue& each : value.array()) count += count_values(each);
  if (value.is_object())
    for (const JsonValue::Member& member : value.object()) count += count_values(member.value);
  return count;
}

/// Why `path` cannot be read as an input file; empty when it can, as far as one sees. Pipes and devices could block
/// or never end.
std::string why_unreadable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) && (!error || error == std::errc::no_such_file_or_directory ||
                              error == std::errc::not_a_directory))
    return "there is no such file";
  if (error) return error.message();
  if (!fs::is_regular_file(status)) return "it is no regular file";
  return "";
}

std::string chain_text(const std::vector<fs::path>& chain, const fs::path& last) {
  std::string text;
  for (const fs::path& path : chain) text += path.filename().string() + " -> ";
  return text + last.filename().string();
}

/// True if `path` leads to a file below `folder`, where nobody keeps secrets.
bool lies_in(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path relative =
      fs::canonical(path, error).lexically_relative(fs::canonical(folder, error));
  return !error && !relative.empty() && *relative.begin() != "..";
}

constexpr const char* extends_pointer = "/extends";

/// Pointer at which the values of the file named at `pointer` are placed: an extended file may hold any value of the scenario.
std::string place_of_content(const std::string& pointer) {
  return pointer == extends_pointer ? std::string() : pointer;
}

/// Cuts the release off a software's name ("megatron-core-2026@26.04") and returns it; empty: there is none.
std::string take_release(JsonValue& slot, const LibraryKind& kind) {
  const std::string text = slot.string();
  const std::size_t at = text.rfind('@');
  if (std::string_view(kind.name) != software_files.name || at == std::string::npos || at == 0 ||
      at + 1 == text.size() || text.find('/', at) != std::string::npos)
    return {};
  slot.content = text.substr(0, at);
  return text.substr(at + 1);
}

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

/// Lets the experts of a profile, or of a release's overlay, take precedence over `experts_elsewhere`.
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

void overlay_json(JsonValue& base, const JsonValue& overlay) {
  for (const JsonValue::Member& member : overlay.object()) {
    JsonValue* const target = base.find(member.key);
    if (target != nullptr && target->is_object() && member.value.is_object())
      overlay_json(*target, member.value);
    else if (!member.value.is_null() || !base.erase(member.key))
      base.set(member.key, member.value, member.key_origin);
  }
}

JsonValue ScenarioFiles::merge_extended(JsonValue value) {
  if (value.find("extends") == nullptr) return value;
  std::vector<fs::path> chain;
  if (value.origin.source) {
    std::error_code ignored;
    chain.push_back(fs::weakly_canonical(value.origin.source->name, ignored));
  }
  return merge_extended(std::move(value), chain);
}

JsonValue ScenarioFiles::merge_extended(JsonValue value, std::vector<fs::path>& chain) {
  const JsonValue* extends = value.find("extends");
  if (extends == nullptr) return value;
  JsonValue base(JsonValue::Object{}, value.origin);
  if (extends->is_array()) {
    for (const JsonValue& entry : extends->array())
      if (!lay_over(base, entry, chain)) break;
  } else if (!extends->is_null()) {
    lay_over(base, *extends, chain);
  }
  value.erase("extends");
  overlay_scenario(base, value);
  return base;
}

void ScenarioFiles::overlay_scenario(JsonValue& base, const JsonValue& overlay) {
  for (const NamedPart& named : named_parts) check_replacement(base, overlay, named);
  overlay_json(base, overlay);
}

void ScenarioFiles::check_replacement(const JsonValue& base, const JsonValue& overlay,
                                      const NamedPart& named) {
  const JsonValue* const name = base.find(named.key);
  const JsonValue* const part = overlay.find(named.key);
  if (name == nullptr || !name->is_string() || part == nullptr || !part->is_object() ||
      part->find("extends") != nullptr || *named.needed_key == '\0' ||
      part->find(named.needed_key) != nullptr)
    return;
  const std::string pointer = pointer_join("", named.key);
  std::error_code ignored;
  const std::string written = text_for_message(
      looks_like_path(name->string()) ? JsonValue(fs::absolute(resolve(*name), ignored).string())
                                      : *name);
  problem(part->origin, pointer,
          "what stands here replaces the " + std::string(named.kind->noun) + " " + written +
              ", but has no \"" + named.needed_key + "\"",
          "to change some of its values, add \"extends\": " + written);
  failed_.insert(pointer);
}

bool ScenarioFiles::lay_over(JsonValue& base, const JsonValue& entry,
                             std::vector<fs::path>& chain) {
  const char* const pointer = extends_pointer;
  if (!entry.is_string()) {
    problem(entry.origin, pointer, "extends is " + text_for_message(entry) + ", which is no path",
            "write a path, or a list of paths");
    return false;
  }
  const std::string& text = entry.string();
  fs::path path = resolve(entry);
  std::error_code ignored;
  if (!looks_like_path(text) && !fs::exists(path, ignored)) {  // a built-in scenario has a name
    path = path_for_people(library_file(*library_, scenario_files, text));
    if (!fs::exists(path, ignored)) {
      problem(entry.origin, pointer, "unknown scenario " + text_for_message(entry),
              suggest_name(*library_, scenario_files, text));
      return false;
    }
  }
  const fs::path canonical = fs::weakly_canonical(path, ignored);
  if (std::ranges::find(chain, canonical) != chain.end()) {
    problem(entry.origin, pointer, "the file extends itself: " + chain_text(chain, canonical));
    return false;
  }
  if (chain.size() >= max_extends_depth) {
    problem(entry.origin, pointer,
            "extends is more than " + std::to_string(max_extends_depth) + " files deep");
    return false;
  }
  JsonValue file = read(path, entry, pointer);
  if (!file.is_object()) return false;
  chain.push_back(canonical);
  overlay_scenario(base, merge_extended(std::move(file), chain));
  chain.pop_back();
  return true;
}

bool ScenarioFiles::expand(JsonValue& slot, const LibraryKind& kind, const std::string& pointer) {
  if (!slot.is_string()) return lay_over_base(slot, kind, pointer);
  if (failed_.count(pointer) != 0) return false;
  const std::string release = take_release(slot, kind);
  const std::string text = slot.string();
  JsonValue content;
  if (looks_like_path(text)) {
    content = read_once(resolve(slot), slot, pointer);
  } else {
    const fs::path path = path_for_people(library_file(*library_, kind, text));
    const auto is_named = [&] {
      const std::vector<std::string> names = library_->names(kind.name);
      return std::ranges::find(names, text) != names.end();
    };
    if (known_.count({path, is_unquotable(path, slot)}) > 0 || is_named())
      content = read_once(path, slot, pointer);
    else
      problem(slot.origin, pointer,
              std::string("unknown ") + kind.noun + " " + text_for_message(slot),
              suggest_name(*library_, kind, text));
  }
  for (const char* key : {"training", "parallel", "model", "platform"})
    if (std::string_view(kind.name) != scenario_files.name && content.find(key) != nullptr) {
      problem(slot.origin, pointer,
              text_for_message(slot) + " holds a scenario, where a " + kind.noun + " is needed",
              std::string("name a ") + kind.noun + ", or put that of the scenario into a file");
      content = {};
      break;
    }
  if (!content.is_object()) {
    failed_.insert(pointer);
    return false;
  }
  if (content.find("name") == nullptr)
    content.set("name", JsonValue(looks_like_path(text) ? fs::path(text).stem().string() : text));
  // Rows of measurement sets name the container they ran in; the release is taken from it if the profile has releases.
  if (!release.empty() && slot.origin.source && content.find("releases") == nullptr)
    problem(slot.origin, pointer, text_for_message(slot) + " does not tell releases apart",
            "write " + text_for_message(slot));
  else if (!release.empty())
    content.set("release", JsonValue(release));  // without a place: nobody gives it a source
  slot = std::move(content);
  return lay_over_base(slot, kind, pointer);
}

bool ScenarioFiles::lay_over_base(JsonValue& part, const LibraryKind& kind,
                                  const std::string& pointer) {
  const std::string_view name = kind.name;
  void (*overlay)(JsonValue&, const JsonValue&) = nullptr;
  if (name == software_files.name) overlay = overlay_software;
  if (name == platform_files.name || name == device_files.name) overlay = overlay_platform;
  if (name == model_files.name) overlay = overlay_json;
  const JsonValue* const extends = overlay != nullptr ? part.find("extends") : nullptr;
  if (failed_.count(pointer) != 0 || extends == nullptr) return failed_.count(pointer) == 0;
  JsonValue base = *extends;
  part.erase("extends");
  if (base.is_null()) return true;
  bool is_whole = false;
  if (!base.is_string()) {
    problem(base.origin, pointer + extends_pointer,
            "extends is " + text_for_message(base) + ", which is no " + kind.noun,
            std::string("write the name of a ") + kind.noun + ", or a path");
  } else {
    std::error_code ignored;
    const fs::path file =
        base.origin.source ? fs::weakly_canonical(base.origin.source->name, ignored) : fs::path();
    const bool is_cycle = std::ranges::find(parts_, file) != parts_.end();
    if (is_cycle || parts_.size() == max_extends_depth) {
      problem(base.origin, pointer + extends_pointer,
              is_cycle
                  ? std::string("the ") + kind.noun + " extends itself: " + chain_text(parts_, file)
                  : "extends is more than " + std::to_string(max_extends_depth) + " files deep");
    } else {
      parts_.push_back(file);
      is_whole = expand(base, kind, pointer);
      parts_.pop_back();
    }
  }
  if (!is_whole) {
    failed_.insert(pointer);
    return false;
  }
  // A profile, platform or device in place keeps the name under which evidence knows it; of another size, a model is another.
  const JsonValue* const base_name = base.find("name");
  if (name == model_files.name && part.find("name") == nullptr && base_name != nullptr &&
      base_name->is_string())
    part.set("name", JsonValue("changed " + base_name->string()));
  overlay(base, part);
  part = std::move(base);
  return true;
}

void ScenarioFiles::expand_node_type(JsonValue& type, const std::string& pointer) {
  for (std::size_t depth = 0; type.find("extends") != nullptr; ++depth) {
    const std::string place = pointer + extends_pointer;
    JsonValue base = *type.find("extends");
    type.erase("extends");
    if (base.is_null()) return;
    if (!base.is_string() || depth == max_extends_depth)
      problem(base.origin, place,
              base.is_string() ? "node types extend each other in more than " +
                                     std::to_string(max_extends_depth) + " platforms"
                               : "extends is " + text_for_message(base) + ", which is no platform",
              "write the name of a platform, or a path: its first node type is meant");
    else
      expand(base, platform_files, place);
    problems_->throw_if_any();  // each key that the type has from there would be missed
    JsonValue* const first = find_at(base, "/node_types/0");
    if (first == nullptr || !first->is_object()) return;  // the platform's own problem
    overlay_platform(*first, type);
    type = std::move(*first);
  }
}

JsonValue ScenarioFiles::read_once(const fs::path& path, const JsonValue& reference,
                                   const std::string& pointer) {
  const std::pair key(path, is_unquotable(path, reference));
  const auto known = known_.find(key);
  if (known == known_.end()) {
    const std::size_t problems = problems_->size();
    JsonValue value = read(path, reference, pointer);
    if (value.is_object() && problems_->size() == problems)
      known_.emplace(key, Known{value, count_values(value)});
    return value;
  }
  num_copied_values_ += known->second.num_values;
  if (num_copied_values_ <= max_copied_values) return known->second.value;
  problem(reference.origin, pointer,
          "cannot read " + text_for_message(reference) +
              ": the files that the scenario names again and again hold more than 4,000,000 "
              "values together");
  return {};
}

bool ScenarioFiles::is_unquotable(const fs::path& path, const JsonValue& reference) const {
  return reference.origin.kind == OriginKind::file && !lies_in(library_->root, path);
}

JsonValue ScenarioFiles::read(const fs::path& path, const JsonValue& reference,
                              const std::string& pointer) {
  std::string why = why_unreadable(path);
  if (sources_.size() >= max_files)
    why = "the scenario already consists of " + std::to_string(max_files) + " files";
  std::shared_ptr<const SourceText> source;
  try {
    if (why.empty()) source = read_source(path);
  } catch (const EnvironmentError& error) {
    why = error.what();
  } catch (const FileTooLargeError& error) {
    why = error.problems().front().message;
  }
  if (source && (num_bytes_ += source->text.size()) > max_bytes) {
    why = "the files of the scenario are larger than 64 MiB together";
    source.reset();
  }
  if (!source) {
    problem(reference.origin, pointer, "cannot read " + text_for_message(reference) + ": " + why);
    return {};
  }
  if (is_unquotable(path, reference)) {
    SourceText unquotable = *source;
    unquotable.quoting = Quoting::named_by_a_file;
    source = std::make_shared<const SourceText>(std::move(unquotable));
  }
  sources_.push_back(source);
  folder_of_[source.get()] = path.parent_path();
  problems_->begin_source(*source);
  Problems of_text;
  JsonValue value = parse_json(source, of_text);
  if (!value.is_object() && of_text.empty())
    of_text.add({value.origin,
                 {},
                 "the file holds " + value.kind_name() + ", where an object is needed",
                 "write { ... }"});
  problems_->append(of_text, place_of_content(pointer));
  return value;
}

fs::path ScenarioFiles::resolve(const JsonValue& reference) const {
  fs::path path = reference.string();
  if (path.is_absolute() || reference.origin.kind == OriginKind::command_line) return path;
  const auto folder = folder_of_.find(reference.origin.source.get());
  return ((folder == folder_of_.end() ? folder_ : folder->second) / path).lexically_normal();
}

void ScenarioFiles::problem(const Origin& origin, const std::string& pointer, std::string message,
                            std::string suggestion) {
  problems_->add({origin, pointer, std::move(message), std::move(suggestion)},
                 {place_of_content(pointer)});
}

void make_room_for_node_type(JsonValue& platform, std::string_view pointer, std::size_t most) {
  constexpr std::string_view of_type = "/node_types/";
  if (!pointer.starts_with(of_type)) return;
  pointer.remove_prefix(of_type.size());
  const auto index = number_in<std::size_t>(pointer.substr(0, pointer.find('/')));
  if (!index || *index >= most) return;
  if (platform.find("node_types") == nullptr)
    platform.set("node_types", JsonValue(JsonValue::Array{}));
  JsonValue::Array& types = platform.find("node_types")->array();
  while (types.size() <= *index) types.push_back(JsonValue(JsonValue::Object{}));
}

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

void win_over_exceptions(JsonValue& software, const std::string& path, const JsonValue& value) {
  if (path.starts_with("/release")) return;  // which release it is, and what releases there are
  win_over_experts_elsewhere(software, path);
  const std::string memory = "/memory";  // whose keys a release has in addition to the others
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
