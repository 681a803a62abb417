#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "memory/memory_correction.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "platform/software_profile.hpp"
#include "scenario/cluster_shape.hpp"
#include "scenario/library.hpp"
#include "scenario/search_block.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Requested placement of ranks.
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

/// Mutual slowdown of a job and a neighbour: iteration times alone, and while both run.
struct NeighbourCost {
  std::string name;
  int first_node = 0, nodes = 0;
  int shared_links = 0;  ///< that carry messages of both
  Seconds alone{}, together{};
  bool fits = true;  ///< in memory
};

/// A what-if question, complete and checked: a scenario file with every model, platform and software profile that it names loaded, its
/// overrides applied, defaults filled in, and its plan laid out on the cluster. All amounts have units (units/quantity.hpp).
///
/// read_scenario() makes it and reports every problem of the input at once, so the rest of the program only meets scenarios that can be
/// simulated. simulate() turns it into a Report; rank, sweep, explain and job read variants of it with other values. `resolved` keeps the
/// same content as JSON, each value with the line it came from, for messages, hashes and re-reading.
struct Scenario {
  std::string name;
  Transformer model;
  Platform platform;
  std::vector<NodeType> nodes;  ///< the type of each node in use, in order
  SoftwareProfile software;
  Plan plan;
  std::vector<NeighbourJob> neighbour_jobs;    ///< to be simulated, by with_neighbours()
  std::vector<NeighbourCost> neighbour_costs;  ///< of those that were
  Seconds time_alone{};                        ///< of an iteration, where any were
  bool balances_stages =
      false;  ///< the file asks for layers "balanced"; `resolved` has what it got
  PlacementRequest placement_request = PlacementRequest::as_planned;
  std::string placement_note;  ///< of a search: what it found, in one line; else empty
  std::shared_ptr<const MemoryCorrection> memory_correction;  ///< the user's; null: none
  SearchBlock search;                                         ///< what `rank` tries
  std::uint64_t seed = 0;
  std::string hash;    ///< of the resolved scenario, file names left out
  JsonValue resolved;  ///< merged, defaults written in, each value with its origin
};

/// Requests of a scenario that its reader leaves to the caller because they take simulations; any other such request is an
/// UnsupportedError.
enum class LeftToCaller {
  nothing,
  neighbours,                ///< Scenario::neighbour_jobs, for with_neighbours()
  neighbours_and_placement,  ///< also "placement": "search", for prepare_scenario()
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

/// The scenario is correct, but asks for what this version does not simulate. Thrown only when nothing else is wrong, so
/// that a measurement set can list the point as skipped, with the reason.
class UnsupportedError : public InputError {
 public:
  using InputError::InputError;
};

/// Everything `scenario` asks for that this version does not simulate; `tree` is its resolved form, still with the nulls.
/// Nothing a user writes is silently ignored: what is not simulated is refused here, and only here.
Problems unsupported_requests(const Scenario& scenario, JsonValue& tree,
                              const ReadOptions& options);

/// Reads the scenario with these values on top: ReadOptions::values.
using ReadWithValues =
    std::function<Scenario(const std::vector<std::pair<std::string, JsonValue>>& values)>;

/// True if the job of the scenario, `written` as a file has it, uses the plan that a search finds: `job.plan` is "best".
inline bool job_wants_best_plan(const JsonValue& written) {
  const JsonValue* const plan = find_at(written, "/job/plan");
  return plan != nullptr && plan->is_string() && plan->string() == "best";
}

/// A scenario whose plan a search will replace ("plan": "best"). As it is where its own plan is legal; else with the first plan that is,
/// of few tensor and pipeline degrees, so that nobody has to write one for each size of a cluster. It is for as many GPUs as the scenario
/// asks for: those of `nodes` or, where `written` has none, the product of the degrees of its `parallel` block; of `written`, the scenario
/// as a file has it, nothing else is looked at. Throws the InputError of its own plan where none is legal, where the number of GPUs is not
/// known, or where something else is wrong.
///
/// Unlike a search, which never catches, it catches the InputError of each plan that it tries, 84 at most: only reading a scenario tells
/// whether a plan is legal, and a search needs a scenario that has been read to begin with. It is called once for a scenario.
Scenario read_with_any_plan(const JsonValue& written, const ReadWithValues& read);

/// Makes the tree that was read into one that can be read again on its own: nulls, which mean absence, go; numbers of
/// platform and software that are defaults or came from --set get the `source` entry that their files demand.
void make_self_contained(JsonValue& tree);

/// The resolved scenario as JSON with comments, each line saying where its value comes from:
///
///   "training": {              // base.json:7
///     "global_batch": 1536,    // scenario.json:4
///     "optimizer": "adam",     // default
///     "micro_batch": 4,        // --set
std::string resolved_text(const JsonValue& resolved);

/// Hash of what is simulated: 32 hexadecimal digits. Left out: $schema, sweep, search, names (but a device's, which the
/// software profile refers to), descriptions and sources. Written and defaulted values count alike.
std::string resolved_hash(const JsonValue& resolved);

/// Puts the scenario's plan on these nodes of its platform. What is returned, makes it illegal there: then it stays where it is.
std::vector<PlanRejection> move_to_nodes(Scenario& scenario, const std::vector<NodeId>& nodes);

/// Values that the software profile declares as supported; they were checked when the scenario was read.
SearchLists supported_values(const Scenario& scenario);

}  // namespace windtunnel
