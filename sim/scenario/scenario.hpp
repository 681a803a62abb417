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

struct Scenario;

/// Another job on nodes of the same platform, from `first_node` on.
struct NeighbourJob {
  std::string name;
  int first_node = 0;
  std::shared_ptr<const Scenario> scenario;  ///< on its nodes; without neighbours of its own
};

/// What a job and a neighbour cost each other: iteration times alone, and beside the other.
struct NeighbourCost {
  std::string name;
  int first_node = 0, nodes = 0;
  int shared_links = 0;  ///< that carry messages of both
  Seconds alone{}, beside{};
};

/// A what-if question, complete and checked: what a scenario file says with everything it names loaded.
struct Scenario {
  std::string name;
  Transformer model;
  Platform platform;
  std::vector<NodeType> nodes;  ///< the type of each node in use, in order
  SoftwareProfile software;
  Plan plan;
  std::vector<NeighbourJob> neighbour_jobs;    ///< to be simulated, by beside_neighbours()
  std::vector<NeighbourCost> neighbour_costs;  ///< of those that were
  Seconds time_alone{};                        ///< of an iteration, where any were
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

/// What the reader of a scenario leaves to its caller, because it takes simulations; anything else of it is an UnsupportedError.
enum class LeftToCaller {
  nothing,
  neighbours,                ///< Scenario::neighbour_jobs, for beside_neighbours()
  neighbours_and_placement,  ///< also "placement": "search", for settled()
};

/// Values of `--set`, pointer and text, in the order in which they apply.
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// Changes on top of the file.
struct ReadOptions {
  Overrides overrides;
  std::uint64_t seed = 0;
  LeftToCaller left = LeftToCaller::nothing;
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

}  // namespace windtunnel
