#include "plan/stage_split.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

constexpr Seconds never{std::numeric_limits<double>::infinity()};

enum class Memory { respected, ignored };

/// Something by stage and number of parts.
template <typename Value>
using Table = std::vector<std::vector<Value>>;

/// The least value of stages s.. that hold n parts together, by [s][n]; `combined` makes it of one stage's and the others'.
template <typename Value, typename Combined>
Table<Value> least_values(const Table<Value>& of_stage, Value impossible,
                          const Combined& combined) {
  const std::size_t stages = of_stage.size(), parts = of_stage.front().size() - 1;
  Table<Value> least(stages + 1, std::vector<Value>(parts + 1, impossible));
  least[stages][0] = Value{};
  for (std::size_t s = stages; s-- > 0;)
    for (std::size_t all = 0; all <= parts; ++all)
      for (std::size_t own = 0; own <= all; ++own)
        least[s][all] =
            std::min(least[s][all], combined(of_stage[s][own], least[s + 1][all - own]));
  return least;
}

Table<Seconds> allowed_times(const Table<StageOption>& options, Memory memory) {
  Table<Seconds> times;
  for (const auto& stage : options) {
    times.emplace_back();
    for (const StageOption& option : stage)
      times.back().push_back(memory == Memory::respected && !option.fits ? never : option.time);
  }
  return times;
}

/// What a split is to have the least sum of, among those no slower than `slowest`:  t (1 + e t/slowest). The second term is far below
/// the first and only chooses among equal sums: of those, the one of the least squares.
Table<Seconds> weighed(const Table<Seconds>& times, Seconds slowest) {
  constexpr double evenness = 1e-6;  // e
  Table<Seconds> weights;
  for (const auto& stage : times) {
    weights.emplace_back();
    for (const Seconds time : stage) {
      const bool is_instant = slowest == Seconds{0};
      const Seconds weight = is_instant ? time : time * (1 + evenness * (time / slowest));
      weights.back().push_back(time <= slowest ? weight : never);
    }
  }
  return weights;
}

std::vector<int> split_of_least_sum(const Table<Seconds>& weights) {
  const auto sum = [](Seconds a, Seconds b) { return a + b; };
  const Table<Seconds> least = least_values(weights, never, sum);
  std::vector<int> chosen;
  std::size_t left = weights.front().size() - 1;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    std::size_t own = 0;
    while (sum(weights[s][own], least[s + 1][left - own]) != least[s][left]) ++own;
    chosen.push_back(static_cast<int>(own));
    left -= own;
  }
  WT_ENSURE(left == 0);
  return chosen;
}

std::optional<std::vector<int>> split(const Table<StageOption>& options, Memory memory) {
  const Table<Seconds> times = allowed_times(options, memory);
  const auto slower = [](Seconds a, Seconds b) { return std::max(a, b); };
  const Seconds slowest = least_values(times, never, slower)[0].back();
  if (slowest == never) return std::nullopt;
  return split_of_least_sum(weighed(times, slowest));
}

}  // namespace

std::vector<int> split_stages(const std::vector<std::vector<StageOption>>& options) {
  WT_EXPECT(!options.empty() && !options.front().empty());
  for (const auto& stage : options) WT_EXPECT(stage.size() == options.front().size());
  if (auto fitting = split(options, Memory::respected)) return *fitting;
  return *split(options, Memory::ignored);
}

}  // namespace windtunnel
