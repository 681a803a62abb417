#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "core/testing.hpp"
#include "platform/platform_json.hpp"

/// What the tests of this folder share; included by *_test.cpp only.
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

/// Loads devices from platforms/devices/, as the program does.
inline std::optional<Device> load_shipped_device(const std::string& name, const Origin&,
                                                 const std::string&, Problems& problems) {
  JsonValue value = parse_file(source_dir() / "platforms/devices" / (name + ".json"), problems);
  return read_device(value, "", problems);
}

inline Platform shipped_platform(const std::string& name) {
  Problems problems;
  JsonValue value = parse_file(source_dir() / "platforms" / (name + ".json"), problems);
  Platform platform = read_platform(value, "", problems, load_shipped_device);
  problems.throw_if_any();
  return platform;
}

}  // namespace windtunnel::testing
