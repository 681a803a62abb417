#pragma once

#include <optional>
#include <vector>

#include "engine/player.hpp"
#include "platform/network.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Whether every replica is played, or one for all that provably do the same.
enum class Replicas { each, collapsed_when_exact };

/// Programs of which one device of each class is played for all that provably do the same (engine/device_classes.hpp): in a job of identical
/// replicas that share no link, one replica.
///
/// Times are those of playing every device, on either engine: the same bits, unless SimGrid solves for flows that contend, where they may
/// round differently. A collective's flows come once for each of their classes.
struct CollapsedPrograms {
  ProgramSet programs;               ///< of the devices that are played
  Network network;                   ///< the links they use
  std::vector<DeviceId> stands_for;  ///< by device of `programs`: the first device of its class
  std::vector<DeviceId>
      played_as;                 ///< by device of the whole: the device of `programs` of its class
  std::uint64_t activities = 0;  ///< of the whole
  std::uint64_t flows = 0;       ///< of the whole
};

/// Nothing where no two devices do provably the same, or where they share links.
std::optional<CollapsedPrograms> collapse(const ProgramSet& programs, const Network& network);

/// Plays them, and says what came out for the whole. The listener hears of the devices, channels and collectives that are played.
Played play(const CollapsedPrograms& collapsed, Engine& engine, PlayListener* listener = nullptr);

}  // namespace windtunnel
