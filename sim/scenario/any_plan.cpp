#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/problem.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

/// The product of the degrees of the `parallel` block; none where it has none, or one that is no degree.
std::optional<std::int64_t> gpus_of_degrees(const JsonValue& written) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::int64_t product = 1;
  bool has_any = false;
  for (const char* degree : {"tensor", "context", "pipeline", "data"}) {
    const JsonValue* const value = find_at(written, std::string("/parallel/") + degree);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_integer()) return std::nullopt;
    const std::int64_t ways = std::get<std::int64_t>(value->content);
    if (ways < 1 || ways > most / product) return std::nullopt;
    product *= ways;
    has_any = true;
  }
  return has_any ? std::optional(product) : std::nullopt;
}

/// The context degree, which no other plan replaces; gpus_of_degrees() must have accepted it.
std::int64_t context_of(const JsonValue& written) {
  const JsonValue* const value = find_at(written, "/parallel/context");
  return value == nullptr || value->is_null() ? 1 : std::get<std::int64_t>(value->content);
}

}  // namespace

Scenario read_with_any_plan(const JsonValue& written, const ReadWithValues& read) {
  std::optional<InputError> own;
  try {
    return read({});
  } catch (const InputError& error) {
    const auto is_of_plan = [](const Problem& problem) {
      return problem.pointer.starts_with("/parallel") ||
             problem.pointer == "/training/global_batch" ||
             problem.pointer == "/training/micro_batch";
    };
    if (!std::ranges::all_of(error.problems(), is_of_plan)) throw;
    own = error;
  }
  const JsonValue* const nodes = written.find("nodes");
  const bool leaves_data = nodes != nullptr && !nodes->is_null();
  const std::optional<std::int64_t> gpus = leaves_data ? std::nullopt : gpus_of_degrees(written);
  if (!leaves_data && !gpus) throw *own;
  constexpr std::array<std::int64_t, 4> tensor{8, 4, 2, 1};
  constexpr std::array<std::int64_t, 10> pipeline{1, 2, 3, 4, 5, 6, 8, 10, 16, 32};
  for (const std::int64_t stages : pipeline)
    for (const std::int64_t ways : tensor) {
      JsonValue data;
      if (gpus) {
        const std::int64_t of_replica = ways * stages * context_of(written);
        if (*gpus % of_replica != 0) continue;
        data = JsonValue(*gpus / of_replica);
      }
      try {
        return read({{"/training/micro_batch", JsonValue(std::int64_t{1})},
                     {"/parallel/tensor", JsonValue(ways)},
                     {"/parallel/pipeline", JsonValue(stages)},
                     {"/parallel/data", data},
                     {"/parallel/stage_layers", JsonValue()}});
      } catch (const InputError&) {
        continue;
      }
    }
  throw *own;
}

}  // namespace windtunnel
