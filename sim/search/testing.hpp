#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "scenario/scenario.hpp"
#include "scenario/testing.hpp"

namespace windtunnel {

inline Library shipped_library() { return Library{source_dir()}; }

/// A scenario of the shipped library, written in place.
inline Scenario scenario_from(const std::string& text, const Overrides& overrides = {}) {
  return testing::read_text(text, overrides);
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
