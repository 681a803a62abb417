#pragma once

#include <memory>

#include "engine/engine.hpp"

namespace windtunnel::detail {

/// Flows share links max-min fairly, by SimGrid's solver. See simgrid_engine.cpp for how SimGrid is
/// driven.
std::unique_ptr<Engine> make_simgrid_engine(const Network& network);

}  // namespace windtunnel::detail
