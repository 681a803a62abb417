#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "platform/fabric.hpp"

/// Keys of the kinds of fabric between whose ends there are several ways.
namespace windtunnel::fabrics {

inline constexpr const char* routing = "routing";
inline constexpr const char* routing_seed = "routing_seed";

/// How a way is chosen. The first word is the default.
inline FabricKey routing_key(std::vector<std::string> words) {
  return {.name = routing,
          .label = "routing",
          .type = FabricKey::Type::word,
          .words = std::move(words)};
}

/// Of the hash that picks one (hashed_choice()).
inline FabricKey routing_seed_key(std::function<bool(const Fabric&)> matters = {}) {
  return {.name = routing_seed,
          .label = "seed of the routing",
          .type = FabricKey::Type::whole,
          .least = 0,
          .most = 1e6,
          .matters = std::move(matters)};
}

}  // namespace windtunnel::fabrics
