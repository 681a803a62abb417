#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "core/testing.hpp"
#include "platform/platform_json.hpp"

/// Fixtures of this folder's tests; included by *_test.cpp only.
namespace windtunnel::testing {

inline JsonValue parse(std::string_view text, Problems& problems) {
  return parse_json(std::make_shared<const SourceText>(SourceText{"test.json", std::string(text)}),
                    problems);
}

/// `text` with 'single' for "double" quotes, so that JSON reads well inside a string.
inline JsonValue parse_quoted(std::string text, Problems& problems) {
  for (char& c : text)
    if (c == '\'') c = '"';
  return parse(text, problems);
}

inline JsonValue parse_file(const std::filesystem::path& path, Problems& problems) {
  return parse_json(read_source(path), problems);
}

/// Laid over the device that it extends, without the merging of sources that sim/scenario does.
inline JsonValue shipped_device_file(const std::string& name, Problems& problems) {
  JsonValue file = parse_file(source_dir() / "platforms/devices" / (name + ".json"), problems);
  const JsonValue* const extends = file.find("extends");
  if (extends == nullptr) return file;
  JsonValue whole = shipped_device_file(extends->string(), problems);
  file.erase("extends");
  merge_json(whole, file);
  return whole;
}

/// A platform with the devices of platforms/devices/ in place of their names, as the program reads it.
inline JsonValue with_shipped_devices(JsonValue platform, Problems& problems) {
  JsonValue* const types = platform.find("node_types");
  for (std::size_t i = 0; types != nullptr && types->is_array() && i < types->array().size(); ++i)
    if (JsonValue* device = types->array()[i].find("device");
        device != nullptr && device->is_string())
      *device = shipped_device_file(device->string(), problems);
  return platform;
}

inline Platform shipped_platform(const std::string& name) {
  Problems problems;
  JsonValue value = with_shipped_devices(
      parse_file(source_dir() / "platforms" / (name + ".json"), problems), problems);
  Platform platform = read_platform(value, "", problems);
  problems.throw_if_any();
  return platform;
}

}  // namespace windtunnel::testing
