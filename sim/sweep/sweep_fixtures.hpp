#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel::testing {

inline JsonValue json(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"test", text}), problems);
  problems.throw_if_any();
  return value;
}

/// A small library and a scenario that takes a millisecond, with the sweep given.
struct SweepFixture {
  TemporaryFolder folder;
  Library library{source_dir() / "sim/scenario/corpus/library"};

  std::filesystem::path file(const std::string& sweep) const {
    return folder.write("scenario.json", R"({
      "version": 1, "name": "small", "model": "tiny", "platform": "boxes",
      "training": {"global_batch": 64, "micro_batch": 1},
      "parallel": {"tensor": 2, "pipeline": 2},
      "sweep": )" + sweep + "}");
  }
  Sweep sweep(const std::string& block, const Overrides& overrides = {},
              PlanChooser chooser = {}) const {
    return Sweep(file(block), library, {overrides, 0}, std::move(chooser));
  }
};

/// Message of the error that `act` throws.
inline std::string problem_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no problem";
}

inline double number_in(const std::string& row, const char* key) {
  return *number_of(parse_row(row)->content.find(key));
}

}  // namespace windtunnel::testing
