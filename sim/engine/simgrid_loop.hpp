#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/id.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The links that SimGrid shares among flows, and which of them each path passes.
struct SimGridNetwork {
  std::vector<BytesPerSecond> bandwidths;  ///< by LinkId
  std::vector<std::vector<LinkId>> paths;  ///< by PathId
};

/// SimGrid's event loop, clock and solver. What implements it is a module of its own (simgrid_module.cpp), loaded when flows first meet: libsimgrid
/// and the libraries it needs take longer to load than most runs take.
class SimGridLoop {
 public:
  /// Whoever has events of its own, which SimGrid's loop plays among those of its flows.
  class Companion {
   public:
    virtual ~Companion() = default;
    /// How long after `now` its next event is; negative when it has none.
    virtual double time_to_next(double now) = 0;
    /// The clock has come to `now`: plays what is due.
    virtual void reach(double now) = 0;
    virtual void on_flow_end(std::uint32_t flow) = 0;
  };

  virtual ~SimGridLoop() = default;
  virtual double clock() const = 0;
  virtual void set_bandwidth(LinkId link, BytesPerSecond bandwidth) = 0;
  /// Whom run() plays beside its flows; null: who was set is no more.
  virtual void set_companion(Companion* companion) = 0;
  /// Moves at most `longest_part` bytes from now on.
  virtual void start_flow(std::uint32_t flow, PathId up, PathId down, Bytes bytes) = 0;
  /// Plays until neither it nor its companion has anything left.
  virtual void run() = 0;

  /// 9.2e12 bytes in SimGrid's units are a signed integer's limit.
  static constexpr Bytes longest_part{4e12};
};

/// The function of the module that makes one. Once in a process, ever; never destroyed.
using MakeSimGridLoop = SimGridLoop* (*)(const SimGridNetwork&);
inline constexpr const char* make_simgrid_loop_symbol = "windtunnel_make_simgrid_loop";
/// Found beside the program or in its library folder, by the run path it was linked with.
inline constexpr const char* simgrid_module = "windtunnel-simgrid.so";
/// Loads empty libraries under the names of ns-3's, before the module (docs/decisions/simgrid-without-ns3.md). Not everywhere.
inline constexpr const char* ns3_stand_ins = "windtunnel-no-ns3.so";

}  // namespace windtunnel::detail
