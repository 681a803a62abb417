#pragma once

#include <cstddef>
#include <vector>

#include "platform/network.hpp"

namespace windtunnel {

/// What of a network decides which SimGrid platform it needs; bandwidths only where they decide which links can limit a flow.
struct NetworkShape {
  std::size_t num_links = 0;
  std::vector<std::vector<LinkId>> paths;  ///< engine/binding_links.hpp

  bool operator==(const NetworkShape&) const = default;
};
NetworkShape shape_of(const Network& network);

/// Loads SimGrid, if it is there: children forked from here on need not.
void preload_simgrid();

/// Makes the platform of the simgrid engine ahead of time: children forked from here on make their engine, for a network of the same shape, in
/// no time. Once in a process, which can then make none itself. Results are those of an engine made from nothing.
void prepare_simgrid_engine(const Network& network);

}  // namespace windtunnel
