#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

inline Library shipped_library() { return Library{std::filesystem::path(WINDTUNNEL_SOURCE_DIR)}; }

/// A scenario of the shipped library, written in place.
inline Scenario scenario_from(const std::string& text,
                              std::vector<std::pair<std::string, std::string>> overrides = {}) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"test.json", text}), problems);
  problems.throw_if_any();
  const Library library = shipped_library();
  ReadOptions options;
  options.overrides = std::move(overrides);
  return read_scenario(std::move(value), library.root, library, options);
}

}  // namespace windtunnel
