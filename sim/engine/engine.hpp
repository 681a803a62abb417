#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
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
};

/// Simulated time: timers, and flows over the shared links of a network.
class Engine {
 public:
  virtual ~Engine() = default;
  /// "native", "simgrid" or "heap", for reports.
  virtual std::string_view name() const = 0;
  virtual Seconds now() const = 0;
  /// Calls the handler with `token` at now() + delay.
  virtual void after(Seconds delay, std::uint64_t token) = 0;
  /// Moves `bytes` over the links of both paths from now on, and calls the handler with `token` at the end.
  /// Latency is the caller's to pay, through after().
  virtual void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) = 0;
  /// Runs until no event is left.
  virtual void run(EventHandler& handler) = 0;
  /// Number of timers and flows started so far.
  virtual std::uint64_t num_activities() const = 0;
  virtual std::uint64_t num_flows() const = 0;
};

/// SimGrid would take minutes for this: make_simgrid_engine().
class TooManySharedFlows : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes an engine for the flows of a network, which must outlive it.
using MakeEngine = std::unique_ptr<Engine> (*)(const Network&);

/// Flows share links max-min fairly, by our own solver (engine/max_min.hpp): any number of engines in a process, one on a thread.
std::unique_ptr<Engine> make_native_engine(const Network& network);
/// The same by SimGrid's solver. One in a process, ever: SimGrid's clock is never reset. EnvironmentError where SimGrid cannot be loaded,
/// TooManySharedFlows from Engine::run() once it has taken about five seconds.
std::unique_ptr<Engine> make_simgrid_engine(const Network& network);
/// Every flow has its links to itself, time = bytes / slowest link: the oracle where nothing contends, and the speed limit.
std::unique_ptr<Engine> make_heap_engine(const Network& network);

/// The engine called "native", "simgrid" or "heap", as in `--engine`.
MakeEngine engine_named(std::string_view name);

}  // namespace windtunnel
