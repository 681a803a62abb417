#pragma once

#include "core/object_reader.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// Reads `platform/fabric` into a platform that has its nodes. `knows_nodes`: these are what was meant.
void read_fabric(ObjectReader reader, Platform& platform, bool knows_nodes);

/// The value of a key as --set takes it.
std::string text_of(const FabricKey& key, const FabricValue& value);

}  // namespace windtunnel
