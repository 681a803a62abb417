#include "sweep/shard.hpp"

#include <algorithm>
#include <charconv>

namespace windtunnel {
namespace {

/// More processes than any machine has: the product of two such numbers fits.
constexpr std::size_t most_processes = std::size_t{1} << 31;

std::optional<std::size_t> number_in(const std::string& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number > most_processes ? std::nullopt : std::optional(number);
}

using Variable = std::function<std::string(const std::string&)>;

std::optional<Shard> shard_of(const Variable& variable, const std::string& rank,
                              const std::string& size) {
  const auto index = number_in(variable(rank)), count = number_in(variable(size));
  if (!index || !count || *index >= *count) return std::nullopt;
  return Shard{*index, *count, rank};
}

/// A step of `srun`. SLURM_NTASKS will not do: a batch script that calls no srun has it too, and runs once.
std::optional<Shard> shard_of_step(const Variable& variable) {
  return shard_of(variable, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
}

std::optional<Shard> shard_of_array(const Variable& variable) {
  const auto id = number_in(variable("SLURM_ARRAY_TASK_ID"));
  const auto count = number_in(variable("SLURM_ARRAY_TASK_COUNT"));
  if (!id || !count) return std::nullopt;
  const std::size_t first = number_in(variable("SLURM_ARRAY_TASK_MIN")).value_or(0);
  const std::size_t step =
      std::max<std::size_t>(1, number_in(variable("SLURM_ARRAY_TASK_STEP")).value_or(1));
  if (*id < first || (*id - first) / step >= *count) return std::nullopt;
  return Shard{(*id - first) / step, *count, "SLURM_ARRAY_TASK_ID"};
}

}  // namespace

std::optional<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto index = number_in(text.substr(0, slash)), count = number_in(text.substr(slash + 1));
  if (!index || !count || *count == 0 || *index > *count) return std::nullopt;
  return Shard{*index % *count, *count, "--shard"};
}

Shard shard_from_environment(const Variable& variable) {
  const auto step = shard_of_step(variable);
  if (auto array = shard_of_array(variable)) {
    if (!step) return *array;
    return {array->index * step->count + step->index, array->count * step->count,
            "SLURM_ARRAY_TASK_ID and SLURM_PROCID"};
  }
  if (const auto mpi = shard_of(variable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
    return *mpi;
  if (const auto mpi = shard_of(variable, "PMI_RANK", "PMI_SIZE")) return *mpi;
  if (step) return *step;
  return {};
}

}  // namespace windtunnel
