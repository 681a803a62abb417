#include "scenario/any_plan.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "core/problem.hpp"

namespace windtunnel {
namespace {

bool is_of_plan(const Problem& problem) {
  return problem.pointer.starts_with("/parallel") || problem.pointer == "/training/global_batch" ||
         problem.pointer == "/training/micro_batch";
}

}  // namespace

Scenario read_with_any_plan(const ReadWithValues& read) {
  std::optional<InputError> own;
  try {
    return read({});
  } catch (const InputError& error) {
    if (!std::all_of(error.problems().begin(), error.problems().end(), is_of_plan)) throw;
    own = error;
  }
  constexpr std::array<std::int64_t, 4> tensor{8, 4, 2, 1};
  constexpr std::array<std::int64_t, 10> pipeline{1, 2, 3, 4, 5, 6, 8, 10, 16, 32};
  for (const std::int64_t stages : pipeline)
    for (const std::int64_t ways : tensor) try {
        return read({{"/training/micro_batch", JsonValue(std::int64_t{1})},
                     {"/parallel/tensor", JsonValue(ways)},
                     {"/parallel/pipeline", JsonValue(stages)},
                     {"/parallel/data", JsonValue()},
                     {"/parallel/stage_layers", JsonValue()}});
      } catch (const InputError&) {
        continue;
      }
  throw *own;
}

}  // namespace windtunnel
