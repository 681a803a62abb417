#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Why a stream stood still, and from when on the thing it waited for was under way.
struct Waiting {
  Seconds begin{};  ///< the op was reached
  /// Collectives: the time at which this device entered; until then its own earlier work on that stream was awaited. Within [begin, sent]
  /// or before.
  Seconds entered{};
  /// The awaited message was handed over, or the awaited collective had all its members; within [begin, end] or before.
  Seconds sent{};
  Seconds end{};
  Phase cause = Phase::forward;  ///< of the awaited message or collective
  Traffic traffic = Traffic::pipeline_forward;
};

/// Listens to a program being simulated. All calls come in time order of their end.
class SimulationListener {
 public:
  virtual ~SimulationListener() = default;
  /// A compute op has ended.
  virtual void on_compute(DeviceId, Stream, const Op&, const Work&, Seconds begin, Seconds end) {
    (void)begin;
    (void)end;
  }
  /// A receive, exchange, collective or wait has ended (also when it did not have to wait: begin == end).
  virtual void on_wait(DeviceId, Stream, const Op&, const Waiting&) {}
  /// A message has arrived. posted: the sender handed it over; begin: its transfer started (both ends ready, channel free).
  virtual void on_message(ChannelId, const Op& /*send*/, Bytes, Seconds posted, Seconds begin,
                          Seconds end) {
    (void)posted;
    (void)begin;
    (void)end;
  }
  /// A collective has ended for all its members; begin: the last member entered.
  virtual void on_collective(CollectiveId, const Op&, Seconds begin, Seconds end) {
    (void)begin;
    (void)end;
  }
  /// A device has ended its last op.
  virtual void on_device_end(DeviceId, Seconds end) { (void)end; }
};

/// The program cannot finish: which device waits for what.
class DeadlockError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Result of simulating a program set.
struct EngineResult {
  Seconds end{};                    ///< of the last device
  std::vector<Seconds> device_end;  ///< by device
  DeviceId last_device;             ///< ends last; the lowest among equals
  std::uint64_t activities = 0;     ///< compute ops and messages and collectives
  std::uint64_t flows = 0;          ///< over shared links
  std::string_view engine;          ///< Engine::name() of the engine that ran
};

/// Simulates every device's streams on the engine. Throws DeadlockError when ops are left and nothing can happen.
EngineResult simulate_programs(const ProgramSet&, Engine&, SimulationListener* listener = nullptr);

/// Differences between iterations: simulate_programs() asks it how long ops take this time. Every device asks in the order of its own
/// ops, so that an answer that depends on the device and its earlier questions alone does not depend on the engine.
class Disturbance {
 public:
  virtual ~Disturbance() = default;
  /// Duration of a compute op that begins now. `usual`: its row of the work table.
  virtual Seconds duration(DeviceId, Stream, const Work& usual, Seconds now) = 0;
  /// CPU time for launches of a pass that usually take `usual`.
  virtual Seconds launches(DeviceId, Seconds usual) = 0;
  /// The latency of a message on its way from `from`, or of a collective whose first member is `from`.
  virtual Seconds latency(DeviceId from, Seconds usual) = 0;
};

/// The same, disturbed.
EngineResult simulate_programs(const ProgramSet& programs, Engine& engine, Disturbance& disturbance,
                               SimulationListener* listener = nullptr);

}  // namespace windtunnel
