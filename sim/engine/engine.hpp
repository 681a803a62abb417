#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "platform/network.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Receives what happens, in time order; ties in the order they were asked for. May ask the engine for more.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// The timer or flow that was given `token` has ended; Engine::now() is the time.
  virtual void on_event(std::uint64_t token) = 0;
  /// on_event(token) may come soon: fetches from memory what it will need first. Changes nothing.
  virtual void prefetch_first(std::uint64_t /*token*/) const {}
  /// It may come very soon: fetches what is found through that.
  virtual void prefetch_rest(std::uint64_t /*token*/) const {}
};

/// Simulated time: timers, and flows over the shared links of a network.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual Seconds now() const = 0;
  /// Calls the handler with `token`, less than 2^63, at now() + delay.
  virtual void after(Seconds delay, std::uint64_t token) = 0;
  /// Moves `bytes` over the links of both paths from now on, and calls the handler with `token` at the end.
  /// Latency is the caller's to pay, through after().
  virtual void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) = 0;
  /// Plays until nothing is left to happen.
  virtual void run(EventHandler& handler) = 0;
  /// How many timers and flows have been asked for so far.
  virtual std::uint64_t num_activities() const = 0;
  virtual std::uint64_t num_flows() const = 0;
};

enum class EngineKind {
  simgrid,  ///< flows share links max-min fairly (SimGrid)
  native,   ///< the same by our own solver: any number in a process, one a thread
  heap,  ///< every flow has its links to itself: the oracle where nothing contends, and the speed limit
};

/// "simgrid", "native" or "heap": the --engine of the command line, and in reports.
std::string_view name_of(EngineKind kind);
/// That of the name, which must be one of these.
EngineKind engine_named(std::string_view name);

/// Only one simgrid engine may exist in a process, ever: SimGrid's clock is never reset. A second is a ContractViolation.
std::unique_ptr<Engine> make_engine(EngineKind kind, const Network& network);

}  // namespace windtunnel
