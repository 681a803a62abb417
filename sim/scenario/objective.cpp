#include "scenario/objective.hpp"

#include <array>

namespace windtunnel {

const char* unit_of(Objective objective) {
  constexpr std::array units{"s", "tokens/s", "per token", "J/token", "days"};
  static_assert(units.size() == enumerators<Objective>().size());
  return units.at(static_cast<std::size_t>(objective));
}

Objective read_objective(ObjectReader& reader, Objective otherwise) {
  return reader.optional_enum("objective", otherwise);
}

}  // namespace windtunnel
