#pragma once

#include <optional>
#include <string>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Request for a first scenario. Model and platform are names of the library, or paths.
struct NewScenarioRequest {
  std::string model, platform;
  int gpus = 0;
  std::optional<int> global_batch = {};  ///< samples; none: about 4 M tokens
  std::optional<int> sequence = {};      ///< tokens of a sample; none: the model's
  std::optional<int> lora_rank = {};     ///< trains adapters of this rank alone
  Overrides overrides =
      {};  ///< the stack, keys of `training` and `parallel`, and what is in `platform`: the search keeps to them, and the file has them
};

/// Adds why each --set is none that `new` takes.
void check_values_of_new(const Overrides& overrides, Problems& problems);

/// A scenario that runs as it is: JSON, and the same as a file with a comment on each key.
///
///   // llama3-70b on 512 GPUs of dgx-h100. …
///   {
///     "version": 1,
///     …
///     "parallel": {
///       "tensor": 8,      // ways each layer is split
struct NewScenario {
  JsonValue document;
  std::string text;
  std::string doubt;  ///< of its memory, where no plan is sure to fit; else empty
};

/// The newest stack that trains the model on these GPUs in 16 bits, a batch of a usual size, and the fastest plan of a short search that
/// is sure to fit: sizes of all groups, recomputation, ZeRO 1 (3 where nothing else fits), experts where there are any, and parts of long
/// sequences. Where no plan is sure to fit, one that may. Throws InputError where none fits, and for GPUs that are not whole nodes, with
/// the counts next to it.
NewScenario new_scenario(const NewScenarioRequest& request, const Library& library);

}  // namespace windtunnel
