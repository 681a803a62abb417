#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/program_simulator.hpp"
#include "platform/network.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Equivalence classes of the devices of a program set that provably do the same at the same times, and of the channels, links and
/// collectives they use. In a job of 64 identical replicas that share no link, each class has the 64 copies of one device, and simulating
/// one replica gives the times of all.
///
/// Classes are such that
///  1. devices of a class run the same program with the same times of work; their channels, in order, are of the same classes, so are
///     those that lead to them and the collectives of each slot;
///  2. channels of a class have the same ends by class, latency, and links by class, in order; so have the flows of collectives, of the same
///     bytes; collectives of a class have the same parts in nodes, latency, and as many members and flows of each class;
///  3. links of a class have the same bandwidth and as many channels and flows of each class over them.
/// Then all members of a class go through the same times, by induction over what happens: up to some time they did. What a device does next
/// depends on its program and on what has come over the channels and collectives of (1), which came at the same times. A flow's rate is
/// the max-min fair one, found by raising all rates alike and freezing the flows on links that are full (Bertsekas & Gallager, Data
/// Networks, 1992, section 6.5.2): by (3) links of one class fill together, so by (2) flows of one class are frozen together.
///
/// They are the coarsest such classes, found by splitting until nothing splits (Paige & Tarjan, SIAM J. Comput. 16(6), 1987). One slow link, one
/// slow device or one ring with an edge more makes its replica another class, and through the rings the others after it.
struct DeviceClasses {
  using Numbers = std::vector<std::uint32_t>;
  Numbers of_device, of_channel, of_collective, of_link;
  Numbers of_flow;              ///< of all collectives, one after the other
  std::size_t num_devices = 0;  ///< classes of devices

  /// Number of classes, which are numbered from 0.
  static std::size_t count_of(const Numbers& numbers);
};

/// The classes, where there are fewer than devices and one member of each class can be simulated for all: no link has two channels or flows of one
/// class over it, since then replicas would share the link. `paths`: the links of each path of the network that can limit a flow
/// (engine/link_flows.hpp). Nothing also where splitting takes long: a ring passes a difference on by one node in a round.
std::optional<DeviceClasses> find_device_classes(const ProgramSet& programs, const Network& network,
                                                 const std::vector<std::vector<LinkId>>& paths);

/// The replicas to simulate: each, or one for all that provably do the same.
enum class Replicas { each, collapsed_when_exact };

/// Programs in which one device of each class is simulated on behalf of all (DeviceClasses): in a job of identical replicas that share no
/// link, one replica.
///
/// Times are those of simulating every device, on either engine: the same bits, unless SimGrid solves for flows that contend, where they
/// may round differently. A collective's flows come once for each of their classes.
struct CollapsedPrograms {
  ProgramSet programs;                 ///< of the devices that are simulated
  Network network;                     ///< the links they use
  std::vector<DeviceId> stands_for;    ///< maps each device of `programs` to the first of its class
  std::vector<DeviceId> simulated_as;  ///< by device of the whole: the one simulated for it
  std::uint64_t activities = 0;        ///< of the whole
  std::uint64_t flows = 0;             ///< of the whole
};

/// Nothing where no two devices do provably the same, or where they share links.
std::optional<CollapsedPrograms> collapse(const ProgramSet& programs, const Network& network);

/// Simulates them, and returns the result for the whole. The listener hears of the devices, channels and collectives that are simulated.
EngineResult simulate_programs(const CollapsedPrograms& collapsed, Engine& engine,
                               SimulationListener* listener = nullptr);

}  // namespace windtunnel
