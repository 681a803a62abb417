#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "memory/memory_correction.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "platform/software_profile.hpp"
#include "scenario/search_json.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Where ranks go.
enum class PlacementRequest {
  as_planned,  ///< as the plan has it
  search,      ///< the scenario asks for a search, which has not been made: the plan is Megatron's
};

/// A what-if question, complete and checked: what a scenario file says with everything it names loaded.
struct Scenario {
  std::string name;
  Transformer model;
  Platform platform;
  std::vector<NodeType> nodes;  ///< the type of each node in use, in order
  SoftwareProfile software;
  Plan plan;
  PlacementRequest placement_request = PlacementRequest::as_planned;
  std::string placement_note;  ///< of a search: what it found, in one line; else empty
  std::shared_ptr<const MemoryCorrection> memory_correction;  ///< the user's; null: none
  SearchBlock search;                                         ///< what `rank` tries
  std::uint64_t seed = 0;
  std::string hash;    ///< of the resolved scenario, file names left out
  JsonValue resolved;  ///< merged, defaults written in, each value with its origin
};

/// Where built-in models, platforms and software profiles are found.
struct Library {
  std::filesystem::path root;  ///< folder with models/, platforms/, scenarios/
  /// $WINDTUNNEL_DATA, else beside the executable's checkout or installation.
  static Library find();
  std::vector<std::string> names(
      const std::string& kind) const;  ///< kind: models, platforms, scenarios, software
};

/// Treatment of "placement": "search" when a scenario is read.
enum class PlacementSearch {
  refused,  ///< an UnsupportedError: the reader's caller does not search
  allowed,  ///< Scenario::placement_request says so, and the caller searches
};

/// Values of `--set`, pointer and text, in the order in which they apply.
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// Changes on top of the file.
struct ReadOptions {
  Overrides overrides;
  std::uint64_t seed = 0;
  PlacementSearch placement_search = PlacementSearch::refused;
  /// JSON pointers and what stands there, in order, on top of the overrides: one point of a sweep.
  std::vector<std::pair<std::string, JsonValue>> values = {};
};

/// Reads, merges and checks a scenario file. Throws InputError with every problem found, or EnvironmentError.
Scenario read_scenario(const std::filesystem::path& file, const Library& library,
                       const ReadOptions& options = {});
/// The same from a JSON value (measurement sets, sweeps). `folder` is what relative paths are relative to.
Scenario read_scenario(JsonValue value, const std::filesystem::path& folder, const Library& library,
                       const ReadOptions& options = {});

/// The first half of reading a file, which the points of a sweep share: extended, changed by the overrides, and with the content of every
/// named file in place of its name. Nothing else is checked; read_scenario() takes the result.
JsonValue merged_scenario(const std::filesystem::path& file, const Library& library,
                          const ReadOptions& options = {});

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
