#include "importers/base_platform.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "core/contracts.hpp"
#include "core/option_error.hpp"
#include "platform/platform_json.hpp"
#include "platform/source_json.hpp"
#include "scenario/scenario_files.hpp"

namespace windtunnel {
namespace {

/// Puts devices in place of their names; those in files of the library keep their name in `kept`.
void expand_devices(JsonValue& document, JsonValue& kept, ScenarioFiles& files) {
  JsonValue* types = document.find("node_types");
  JsonValue* kept_types = kept.find("node_types");
  if (types == nullptr || !types->is_array()) return;
  for (std::size_t i = 0; i < types->array().size(); ++i) {
    JsonValue* device = types->array()[i].find("device");
    if (device == nullptr || !device->is_string()) continue;
    const bool is_path = looks_like_path(device->string());
    files.expand(*device, device_files, "/node_types/" + std::to_string(i) + "/device");
    if (is_path) kept_types->array()[i].set("device", *device);
  }
}

/// Devices are in place of their names already; a name that is left could not be found.
std::optional<Device> no_device(const std::string&, const Origin&, const std::string&, Problems&) {
  return std::nullopt;
}

Origin option_origin(const std::string& option, const std::string& text) {
  Origin origin;
  origin.kind = OriginKind::command_line;
  origin.source = std::make_shared<const SourceText>(SourceText{option + " " + text, text});
  return origin;
}

}  // namespace

BasePlatform::BasePlatform(const std::string& name, const Library& library) : given_(name) {
  Problems problems;
  ScenarioFiles files(library, {}, problems);
  document_ = JsonValue(name, option_origin("--base", name));
  files.expand(document_, platform_files, {});
  problems.throw_if_any();
  JsonValue expanded = document_;
  expand_devices(expanded, document_, files);
  problems.throw_if_any();
  platform_ = read_platform(expanded, {}, problems, no_device);
  problems.throw_if_any();
  name_ = platform_.name;
}

JsonValue& BasePlatform::only_node_type() {
  JsonValue::Array& types = document_.find("node_types")->array();
  if (types.size() != 1)
    throw option_error("--base", given_,
                       name_ + " has " + std::to_string(types.size()) +
                           " kinds of node, and the file does not say which it describes",
                       "name a base with one kind of node");
  return types.front();
}

JsonValue& BasePlatform::only_device(const Library& library) {
  JsonValue& device = *only_node_type().find("device");
  Problems problems;
  ScenarioFiles files(library, {}, problems);
  if (device.is_string()) files.expand(device, device_files, "/node_types/0/device");
  problems.throw_if_any();
  return device;
}

void set_number(JsonValue& object, const std::string& key, JsonValue value,
                const std::string& source) {
  object.set(key, std::move(value));
  set_source(object, key, source);
}

Platform read_back(const JsonValue& document, const Library& library) {
  Problems problems;
  ScenarioFiles files(library, {}, problems);
  JsonValue expanded = document, kept = document;
  expand_devices(expanded, kept, files);
  Platform platform = read_platform(expanded, {}, problems, no_device);
  if (!problems.empty()) throw ContractViolation(to_text(problems.all().front()));
  return platform;
}

}  // namespace windtunnel
