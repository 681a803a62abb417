#include "noise/noise_draws.hpp"

#include <cmath>
#include <numbers>

#include "core/philox.hpp"

namespace windtunnel {
namespace {

/// In (0, 1]: 53 bits.
double unit(std::uint32_t high, std::uint32_t low) {
  constexpr int unused_bits = 11, half = 32;
  constexpr double scale = 0x1p-53;
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << half | low) >> unused_bits;
  return static_cast<double>(bits + 1) * scale;
}

PhiloxCounter bits(std::uint64_t seed, NoiseKind kind, NoiseDraws::Place place) {
  constexpr int half = 32;
  return philox({place.part, place.step, place.number, static_cast<std::uint32_t>(kind)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> half)});
}

}  // namespace

double NoiseDraws::uniform(NoiseKind kind, Place place) const {
  const PhiloxCounter drawn = bits(seed_, kind, place);
  return unit(drawn[0], drawn[1]);
}

double NoiseDraws::normal(NoiseKind kind, Place place) const {
  const PhiloxCounter drawn = bits(seed_, kind, place);
  const double radius = std::sqrt(-2 * std::log(unit(drawn[0], drawn[1])));
  return radius * std::cos(2 * std::numbers::pi * unit(drawn[2], drawn[3]));
}

}  // namespace windtunnel
