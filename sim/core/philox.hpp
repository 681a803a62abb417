#pragma once

#include <array>
#include <cstdint>

namespace windtunnel {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32 with 10 rounds: 128 random bits that depend on nothing but counter and key.
/// J. K. Salmon, M. A. Moraes, R. O. Dror & D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3 and
/// table 2; its constants are theirs.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t first_multiplier = 0xD2511F53, second_multiplier = 0xCD9E8D57;
  constexpr std::uint32_t first_step = 0x9E3779B9, second_step = 0xBB67AE85;
  constexpr int rounds = 10, half = 32;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = first_multiplier * counter[0];
    const std::uint64_t second = second_multiplier * counter[2];
    counter = {static_cast<std::uint32_t>(second >> half) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> half) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + first_step, key[1] + second_step};
  }
  return counter;
}

}  // namespace windtunnel
