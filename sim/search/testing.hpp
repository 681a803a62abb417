#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

inline Library shipped_library() { return Library{source_dir()}; }

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

/// A model of 12 layers on two nodes of eight GPUs, with this search block.
inline Scenario on_two_nodes(const std::string& search,
                             const std::string& parallel = R"({"data": 16})") {
  return scenario_from(
      R"({"model": {"layers": 12, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 51200},
          "platform": "selene-a100", "nodes": 2,
          "training": {"global_batch": 64, "micro_batch": 2, "recompute": "full"},
          "parallel": )" +
      parallel + R"(, "search": )" + search + "}");
}

}  // namespace windtunnel
