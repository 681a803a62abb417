#include "scenario/objective.hpp"

#include <array>

namespace windtunnel {
namespace {

struct Words {
  const char *name, *unit;
};
constexpr std::array<Words, num_objectives> words{{{"time", "s"},
                                                   {"tokens_per_second", "tokens/s"},
                                                   {"cost_per_token", "per token"},
                                                   {"energy_per_token", "J/token"},
                                                   {"days", "days"}}};

const Words& words_of(Objective objective) { return words[static_cast<std::size_t>(objective)]; }

}  // namespace

const char* name_of(Objective objective) { return words_of(objective).name; }
const char* unit_of(Objective objective) { return words_of(objective).unit; }

Objective read_objective(ObjectReader& reader, Objective otherwise) {
  using enum Objective;
  return reader.optional_enum<Objective>("objective", otherwise,
                                         {{name_of(time), time},
                                          {name_of(tokens_per_second), tokens_per_second},
                                          {name_of(cost_per_token), cost_per_token},
                                          {name_of(energy_per_token), energy_per_token},
                                          {name_of(days), days}});
}

}  // namespace windtunnel
