#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "scenario/scenario.hpp"

/// Fixtures of tests that read scenarios; included by tests and their fixtures only.
namespace windtunnel::testing {

/// A scenario written in place. The library is the shipped one unless a test brings its own.
inline Scenario read_text_with(const ReadOptions& options, const std::string& text,
                               const Library& library = Library{source_dir()}) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"test.json", text}), problems);
  problems.throw_if_any();
  return read_scenario(std::move(value), library.root, library, options);
}

/// The same with values changed.
inline Scenario read_text(const std::string& text, const Overrides& overrides = {},
                          const Library& library = Library{source_dir()}) {
  ReadOptions options;
  options.overrides = overrides;
  return read_text_with(options, text, library);
}

}  // namespace windtunnel::testing
