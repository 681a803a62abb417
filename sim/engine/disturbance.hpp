#pragma once

#include "engine/engine.hpp"
#include "engine/player.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Differences between iterations, here none: the player asks it how long ops take this time. Every device asks in the order of its own
/// ops, so that an answer that depends on the device and its earlier questions alone does not depend on the engine.
class Disturbance {
 public:
  virtual ~Disturbance() = default;
  /// How long a compute op that begins now takes. `usual`: its row of the work table.
  virtual Seconds duration(DeviceId, Stream, const Work& usual, Seconds /*now*/) {
    return usual.duration;
  }
  /// How long the CPU takes for launches of a pass that usually take so long.
  virtual Seconds launches(DeviceId, Seconds usual) { return usual; }
  /// The latency of a message on its way from `from`, or of a collective whose first member is `from`.
  virtual Seconds latency(DeviceId /*from*/, Seconds usual) { return usual; }
};

/// Plays every device's streams on the engine, disturbed.
Played play(const ProgramSet& programs, Engine& engine, Disturbance& disturbance,
            PlayListener* listener = nullptr);

}  // namespace windtunnel
