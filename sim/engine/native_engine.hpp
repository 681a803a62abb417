#pragma once

#include <memory>

#include "engine/engine.hpp"

namespace windtunnel::detail {

/// Flows share links max-min fairly, by our own solver (engine/max_min.hpp). Any number of these engines may play at the same time.
std::unique_ptr<Engine> make_native_engine(const Network& network);

}  // namespace windtunnel::detail
