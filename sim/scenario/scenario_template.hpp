#pragma once

#include <filesystem>
#include <optional>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// merged_scenario() of a JSON value. `folder` is what relative paths are relative to.
JsonValue merged_scenario(JsonValue value, const std::filesystem::path& folder,
                          const Library& library, const ReadOptions& options = {});

/// A scenario that is read again and again with other values, as the points of a sweep are: files, and what of model, platform and
/// software no value touches, are read and checked once. Gives what read_scenario() would, problems included; may be used by several threads.
class ScenarioTemplate {
 public:
  /// `tree`: as merged_scenario() gives it, or as a file has it. `folder` is what relative paths are relative to. Nothing is said of
  /// what is wrong: read() will.
  ScenarioTemplate(JsonValue tree, std::filesystem::path folder, Library library);

  /// Throws InputError.
  Scenario read(const ReadOptions& options) const;

 private:
  /// A block of the scenario, and what the reader made of its JSON value: defaults written in.
  template <class Part>
  struct Block {
    Part part;
    JsonValue resolved;
  };
  template <class Part, class Reader>
  std::optional<Block<Part>> read_block(const char* key, Reader reader) const;
  /// The platform of `platform_`, with nothing but its devices resolved.
  JsonValue with_devices_resolved(const JsonValue& platform) const;

  JsonValue tree_;
  std::filesystem::path folder_;
  Library library_;
  std::optional<Block<Transformer>> model_;  ///< none: something is wrong with it
  std::optional<Block<Platform>> platform_;
  std::optional<Block<SoftwareProfile>> software_;
  JsonValue platform_of_known_devices_;
};

}  // namespace windtunnel
